// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	"github.com/lockstep-k8s/lockstep/internal/informing"
	"github.com/lockstep-k8s/lockstep/internal/reading"
	"github.com/lockstep-k8s/lockstep/internal/terminal"
	"github.com/lockstep-k8s/lockstep/internal/view"
)

// Words for wait --for that are not states.
const (
	forDeleted   = "Deleted"
	forCompleted = "Completed"
)

const (
	// lookTime is how long one read of a Framework may take. The first read may also take this long if the user allows
	// no time to wait.
	lookTime = 30 * time.Second
	// lookAgain is how long after a look that failed there is another one.
	lookAgain = 2 * time.Second
)

func newWait(s *session) *cobra.Command {
	var state string
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "wait NAME --for=STATE",
		Short: "Wait until a job is in a state",
		Long: fmt.Sprintf(`Wait until a Framework is in a state: %s; Completed, which is any of
the last three; or Deleted. Jobs of other kinds and PodGroups have the states that 'get' shows. Completed is a
state of Volcano Jobs and PodGroups; for Kubeflow's jobs it means any end. The exit code is 6 if the job ended in another
state, and 5 after a time-out.`, strings.Join(view.States(), ", ")),
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			wanted, err := parseState(state)
			if err != nil {
				return err
			}
			c, err := s.connect()
			if err != nil {
				return err
			}
			t, last, err := s.waitFor(cmd.Context(), c, args[0], wanted, timeout)
			if err != nil {
				return err
			}
			fmt.Fprintf(s.out, "%s %s\n", terminal.Clean(t), terminal.Clean(last))
			return nil
		},
	}
	cmd.Flags().StringVar(&state, "for", "", "the state, in upper or lower case")
	cmd.Flags().DurationVar(&timeout, "timeout", 24*time.Hour, "how long to wait, such as 30s or 2h")
	if err := cmd.RegisterFlagCompletionFunc("for", cobra.FixedCompletions(append(view.JobStates(), forDeleted), cobra.ShellCompDirectiveNoFileComp)); err != nil {
		panic(err) // There is such a flag.
	}
	return cmd
}

func parseState(state string) (string, error) {
	all := append(view.JobStates(), forDeleted)
	i := slices.IndexFunc(all, func(s string) bool { return strings.EqualFold(s, state) })
	if i < 0 {
		return "", misuse(fmt.Sprintf("unknown state %q for --for", state), "states are "+strings.Join(all, ", "))
	}
	return all[i], nil
}

// waitFor waits until the job that text names has a state. waitFor returns the job's name as users write it, and the
// job's last state. A name without a kind is the name of a Framework.
func (s *session) waitFor(ctx context.Context, c *cluster, text, wanted string, timeout time.Duration) (named, last string, err error) {
	n, err := reading.ParseName(c.namespace, text)
	if err != nil {
		return "", "", err
	}
	if n.IsFramework() {
		last, err = s.wait(ctx, c.in(n.Namespace), n.Name, "", wanted, timeout)
		if !isGone(err) && last != gone || n.IsFrameworkOnly() {
			return "framework/" + n.Name, last, err
		}
	}
	_, job, missing := c.reader.Named(ctx, n)
	switch {
	case missing == nil && job != nil:
		last, err = s.waitJob(ctx, c, job, wanted, timeout)
		return target{job: job}.String(), last, err
	case wanted == forDeleted && isGone(missing):
		return map[bool]string{true: "framework/" + n.Name, false: text}[n.IsFramework()], gone, nil
	default:
		return text, last, cmp.Or(err, missing)
	}
}

// waitJob waits until a PodGroup, or a job that is no Framework, is in the state `wanted`. It returns the last state
// that was seen.
func (s *session) waitJob(ctx context.Context, c *cluster, job *reading.Job, wanted string, timeout time.Duration) (string, error) {
	var out outage
	name, until, again := target{job: job}.String(), now().Add(timeout), lookAgain/20
	for {
		state, ended := job.State, view.JobFinal(job.State)
		switch {
		case state == wanted, wanted == forCompleted && ended && isCompletedAnEnd(job):
			return state, nil
		case ended && wanted != forDeleted:
			return state, &failure{code: exitOtherState, message: fmt.Sprintf("%s has ended, and is %s, not %s", name, state, wanted), hint: "`describe` shows how it ended"}
		case !now().Before(until):
			return state, &failure{code: exitTimeout, message: fmt.Sprintf("timed out after %s waiting for %s to be %s: it is %s", timeout, name, wanted, state), hint: "`why` shows why it waits"}
		}
		if err := pause(ctx, min(again, max(0, until.Sub(now())))); err != nil {
			return state, err
		}
		again = min(2*again, lookAgain)
		seen, err := c.reader.JobAgain(ctx, job)
		switch {
		case isGone(err) && wanted == forDeleted:
			return gone, nil
		case isGone(err):
			return state, &failure{code: exitNotFound, message: fmt.Sprintf("%s was deleted before it was %s", name, wanted)}
		case err == nil:
			job = seen
		}
		if err := out.judge(err, s.note); err != nil {
			return state, fmt.Errorf("can't read the state of %s: %w", name, err)
		}
	}
}

// isCompletedAnEnd reports whether waiting for Completed means waiting for any end of the job, because jobs of this
// kind have no state Completed.
func isCompletedAnEnd(job *reading.Job) bool {
	return !job.IsPodGroup() && !(target{job: job}).isVolcano()
}

// gone is the state of what was deleted.
const gone = "deleted"

// wait waits until a Framework has a state, and returns its last state. If the UID is empty, any Framework with this
// name counts.
func (s *session) wait(ctx context.Context, c *cluster, name string, of types.UID, wanted string, timeout time.Duration) (string, error) {
	ctx, refuse := context.WithCancelCause(ctx)
	defer refuse(nil)
	trouble := &trouble{refuse: refuse, note: s.note}
	begun := now()
	first, over := context.WithTimeoutCause(ctx, cmp.Or(max(timeout, 0), lookTime), context.DeadlineExceeded)
	defer over()
	fw, err := trouble.look(first, c, name)
	switch cause := context.Cause(first); {
	case err == nil:
	case wanted == forDeleted && isGone(err):
		return gone, nil
	case errors.Is(cause, context.DeadlineExceeded):
		return "", &failure{code: exitTimeout, message: fmt.Sprintf("can't read the state of %s: timed out waiting for %s after %s", name, wanted, timeout), hint: trouble.hint("the API server has not answered")}
	case isRefusal(cause):
		return "", fmt.Errorf("can't read the state of %s: %w", name, cause)
	default:
		return "", err
	}
	uid := cmp.Or(of, fw.UID)
	state := view.FrameworkState(fw)
	var ended error
	done := func(event watch.Event) (bool, error) {
		fw, ok := event.Object.(*frameworkv1.Framework)
		if !ok {
			return false, nil
		}
		if event.Type == watch.Deleted || fw.UID != uid {
			if wanted == forDeleted {
				state = gone
				return true, nil
			}
			ended = &failure{code: exitNotFound, message: fmt.Sprintf("%s was deleted before it was %s", name, wanted)}
			return true, nil
		}
		state = view.FrameworkState(fw)
		if state == wanted || wanted == forCompleted && view.Final(state) {
			return true, nil
		}
		if view.Final(state) && wanted != forDeleted {
			ended = &failure{code: exitOtherState, message: fmt.Sprintf("%s has ended, and is %s, not %s", name, state, wanted), hint: "`describe` shows how it ended"}
			return true, nil
		}
		return false, nil
	}
	// The state that was just read may already be the wanted one.
	if enough, _ := done(watch.Event{Type: watch.Modified, Object: fw}); enough {
		return state, ended
	}
	ctx, cancel := context.WithDeadlineCause(ctx, begun.Add(timeout), context.DeadlineExceeded)
	defer cancel()
	frameworks := c.reader.Lockstep.FrameworkcontrollerV1().Frameworks(c.namespace)
	only := func(options *metav1.ListOptions) {
		options.FieldSelector = fields.OneTermEqualSelector("metadata.name", name).String()
	}
	_, err = watchtools.UntilWithSync(ctx, &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			informing.WantCurrent(&options) // an older state may lack it
			only(&options)
			list, err := frameworks.List(ctx, options)
			if err != nil {
				trouble.failed(ctx, err)
			}
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			only(&options)
			events, err := frameworks.Watch(ctx, options)
			if err != nil {
				trouble.failed(ctx, err)
			} else {
				trouble.watches()
			}
			return events, err
		},
	}, &frameworkv1.Framework{}, func(store cache.Store) (bool, error) {
		if len(store.List()) == 0 {
			return done(watch.Event{Type: watch.Deleted, Object: fw})
		}
		return false, nil
	}, done)
	switch cause := context.Cause(ctx); {
	case ended != nil:
		return state, ended
	case err == nil:
		return state, nil
	case errors.Is(cause, context.DeadlineExceeded):
		return state, &failure{code: exitTimeout, message: fmt.Sprintf("timed out after %s waiting for %s to be %s: it is %s", timeout, name, wanted, state), hint: trouble.hint("`describe` shows why it waits")}
	case isRefusal(cause):
		return state, fmt.Errorf("can't read the state of %s: %w", name, cause)
	case cause != nil:
		return state, context.Canceled
	default:
		return state, err
	}
}

// isGone reports whether an error means that the Framework does not exist, and not that the API server does not know
// the kind.
func isGone(err error) bool { return apierrors.IsNotFound(err) && !reading.IsUnserved(err) }

// isRefusal reports whether an error says that the user lacks a right, or could not be authenticated.
func isRefusal(err error) bool { return apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) }

// trouble handles the errors of repeated requests. It reports an error once, until a request succeeds again. A refusal
// ends the repetition.
type trouble struct {
	refuse context.CancelCauseFunc
	note   func(format string, args ...any)

	mu sync.Mutex
	// last is the last error since the watch began; nil if there was none.
	last error
	// begun says that a watch has, and refusals counts those since one did.
	begun    bool
	refusals int
}

// failed handles the error of a request. A single refusal may be temporary: the client renews expired credentials after
// it, and an API server that has just started may not know all rights yet.
func (t *trouble) failed(ctx context.Context, err error) {
	// That a list is too old, or that a list in a watch is not known, are things that clients get along with.
	if ctx.Err() != nil || apierrors.IsResourceExpired(err) || apierrors.IsGone(err) || apierrors.IsInvalid(err) {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	first := t.last == nil
	t.last = err
	if isRefusal(err) {
		t.refusals++
		if t.refusals > 1 || apierrors.IsForbidden(err) && !t.begun {
			t.refuse(err)
		}
		return
	}
	if first {
		t.note("Can't reach the API server, still trying: %v", err)
	}
}

// watches takes that a watch has begun.
func (t *trouble) watches() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last, t.begun, t.refusals = nil, true, 0
}

// look reads a Framework, and repeats the request while the error may be temporary. look returns an error at once if
// the Framework does not exist or can't be decoded.
func (t *trouble) look(ctx context.Context, c *cluster, name string) (*frameworkv1.Framework, error) {
	for {
		once, cancel := context.WithTimeout(ctx, lookTime)
		fw, err := c.reader.Framework(once, c.namespace, name)
		cancel()
		switch {
		case err == nil:
			t.mu.Lock()
			t.last, t.refusals = nil, 0
			t.mu.Unlock()
			return fw, nil
		case ctx.Err() != nil || !passes(err) && !apierrors.IsUnauthorized(err):
			return nil, err
		}
		t.failed(ctx, err)
		if pause(ctx, lookAgain) != nil {
			return nil, err
		}
	}
}

// hint returns what to print after a wait that timed out: the last error, or `other` if there was none.
func (t *trouble) hint(other string) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.last != nil {
		return "the API server could not be asked: " + t.last.Error()
	}
	return other
}

func newDelete(s *session) *cobra.Command {
	w := &write{session: s}
	wait := true
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "delete (NAME... | -l SELECTOR)",
		Short: "Delete jobs, and wait until nothing of them runs",
		Long: `Delete Frameworks and other jobs in the foreground: each stays until its Pods are gone. When the command returns,
nothing of them runs.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := w.connect(args)
			if err != nil {
				return err
			}
			var deleted []target
			failed := w.each(cmd.Context(), c, args, func(t target) error {
				err := w.remove(cmd.Context(), c, t)
				if err == nil {
					deleted = append(deleted, t)
				}
				return err
			})
			for _, t := range deleted {
				if wait && w.dryRun == "none" {
					if err := w.waitGone(cmd.Context(), c, t, timeout); err != nil {
						if len(deleted) == 1 || cmd.Context().Err() != nil {
							return err
						}
						w.complain(t, err)
						failed = cmp.Or(failed, err)
						continue
					}
				}
				w.done(t, "deleted")
			}
			return failed
		},
	}
	cmd.Flags().BoolVar(&wait, "wait", true, "wait until it is gone")
	cmd.Flags().DurationVar(&timeout, "timeout", time.Hour, "how long to wait for each")
	w.addFlags(cmd)
	w.selection.addFlags(cmd)
	return cmd
}

// waitGone waits until a target that was deleted is gone.
func (w *write) waitGone(ctx context.Context, c *cluster, t target, timeout time.Duration) error {
	if t.fw == nil {
		_, err := w.waitJob(ctx, c, t.job, forDeleted, timeout)
		return err
	}
	_, err := w.wait(ctx, c.in(t.fw.Namespace), t.fw.Name, t.fw.UID, forDeleted, timeout)
	return err
}

// remove deletes that very target in the foreground, and does not wait.
func (w *write) remove(ctx context.Context, c *cluster, t target) error {
	if w.dryRun == "client" {
		return nil
	}
	foreground, uid := metav1.DeletePropagationForeground, t.object().GetUID()
	options := metav1.DeleteOptions{PropagationPolicy: &foreground, Preconditions: &metav1.Preconditions{UID: &uid}, DryRun: w.options()}
	if t.fw != nil {
		return c.reader.Lockstep.FrameworkcontrollerV1().Frameworks(t.fw.Namespace).Delete(ctx, t.fw.Name, options)
	}
	return c.reader.Dynamic.Resource(t.job.Resource).Namespace(t.job.Namespace).Delete(ctx, t.job.Name, options)
}
