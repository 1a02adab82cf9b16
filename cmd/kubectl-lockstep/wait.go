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

// Words of wait --for that are no states.
const (
	forDeleted   = "Deleted"
	forCompleted = "Completed"
)

const (
	// lookTime is how long one look at a Framework may take; and the first look, where there is no time to wait.
	lookTime = 30 * time.Second
	// lookAgain is how long after a look that failed there is another one.
	lookAgain = 2 * time.Second
)

func newWait(s *session) *cobra.Command {
	var state string
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "wait NAME --for=STATE",
		Short: "Wait until a Framework is in a state",
		Long: fmt.Sprintf(`Wait until a Framework is in a state: %s; Completed, which is any of
the last three; or Deleted. The exit code is 6 if it ended in another one, and 5 if time is over.`, strings.Join(view.States(), ", ")),
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
			n, err := c.named(args[0])
			if err != nil {
				return err
			}
			last, err := s.wait(cmd.Context(), c.in(n.Namespace), n.Name, "", wanted, timeout)
			if err != nil {
				return err
			}
			fmt.Fprintf(s.out, "framework/%s %s\n", terminal.Clean(n.Name), terminal.Clean(last))
			return nil
		},
	}
	cmd.Flags().StringVar(&state, "for", "", "the state, in upper or lower case")
	cmd.Flags().DurationVar(&timeout, "timeout", 24*time.Hour, "how long to wait, such as 30s or 2h")
	if err := cmd.RegisterFlagCompletionFunc("for", cobra.FixedCompletions(append(view.States(), forCompleted, forDeleted), cobra.ShellCompDirectiveNoFileComp)); err != nil {
		panic(err) // There is such a flag.
	}
	return cmd
}

func parseState(state string) (string, error) {
	all := append(view.States(), forCompleted, forDeleted)
	i := slices.IndexFunc(all, func(s string) bool { return strings.EqualFold(s, state) })
	if i < 0 {
		return "", misuse(fmt.Sprintf("--for=%q is no state", state), "states are "+strings.Join(all, ", "))
	}
	return all[i], nil
}

// wait waits for a state and returns that in which the Framework is then. It is that of the UID, or whichever has the name
// now if that is empty.
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
		return "deleted", nil
	case errors.Is(cause, context.DeadlineExceeded):
		return "", &failure{code: exitTimeout, message: fmt.Sprintf("whether %s is %s is not known after %s", name, wanted, timeout), hint: trouble.hint("the API server has not answered")}
	case isRefusal(cause):
		return "", fmt.Errorf("whether %s is %s can't be seen: %w", name, wanted, cause)
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
				state = "deleted"
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
			ended = &failure{code: exitOtherState, message: fmt.Sprintf("%s has ended, and is %s, not %s", name, state, wanted), hint: "`describe` tells how it ended"}
			return true, nil
		}
		return false, nil
	}
	// What was just read may be all that is waited for.
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
		return state, &failure{code: exitTimeout, message: fmt.Sprintf("%s is not %s after %s, but %s", name, wanted, timeout, state), hint: trouble.hint("`describe` tells what it waits for")}
	case isRefusal(cause):
		return state, fmt.Errorf("whether %s is %s can't be seen: %w", name, wanted, cause)
	case cause != nil:
		return state, context.Canceled
	default:
		return state, err
	}
}

// isGone says whether an error is that there is no such Framework, and not that there is no such kind.
func isGone(err error) bool { return apierrors.IsNotFound(err) && !reading.IsUnserved(err) }

// isRefusal says whether an error is that a user may not do something, or is not known.
func isRefusal(err error) bool { return apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) }

// trouble is what becomes of requests that are sent again and again. A refusal ends them; another error is told once,
// until they succeed.
type trouble struct {
	refuse context.CancelCauseFunc
	note   func(format string, args ...any)

	mu sync.Mutex
	// last is the last error since a watch has begun, nil if there was none.
	last error
	// begun says that a watch has, and refusals counts those since one did.
	begun    bool
	refusals int
}

// failed takes the error of a request. Credentials that have expired are renewed by the answer that says so; and an API
// server that has just started may refuse what it does not know yet.
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
		t.note("The API server can't be asked now; this goes on: %v", err)
	}
}

// watches takes that a watch has begun.
func (t *trouble) watches() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last, t.begun, t.refusals = nil, true, 0
}

// look reads a Framework, and again for as long as what fails may pass. What may not be read, or is not there, is told at
// once.
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

// hint is one for who has waited for too long: what failed last or, if nothing did, another one.
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
		Short: "Delete Frameworks, and wait until nothing of them runs",
		Long: `Delete Frameworks in the foreground: each stays until its Pods are gone. Who sees it gone knows
that nothing of it runs.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := w.connect(args)
			if err != nil {
				return err
			}
			var deleted []*frameworkv1.Framework
			failed := w.each(cmd.Context(), c, args, func(fw *frameworkv1.Framework) error {
				err := w.remove(cmd.Context(), c, fw)
				if err == nil {
					deleted = append(deleted, fw)
				}
				return err
			})
			for _, fw := range deleted {
				if wait && w.dryRun == "none" {
					if _, err := w.wait(cmd.Context(), c.in(fw.Namespace), fw.Name, fw.UID, forDeleted, timeout); err != nil {
						if len(deleted) == 1 || cmd.Context().Err() != nil {
							return err
						}
						w.complain(fw, err)
						failed = cmp.Or(failed, err)
						continue
					}
				}
				w.done(fw, "deleted")
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

// remove deletes that very Framework in the foreground, and does not wait.
func (w *write) remove(ctx context.Context, c *cluster, fw *frameworkv1.Framework) error {
	if w.dryRun == "client" {
		return nil
	}
	foreground := metav1.DeletePropagationForeground
	return c.reader.Lockstep.FrameworkcontrollerV1().Frameworks(fw.Namespace).Delete(ctx, fw.Name, metav1.DeleteOptions{
		PropagationPolicy: &foreground, Preconditions: &metav1.Preconditions{UID: &fw.UID}, DryRun: w.options(),
	})
}
