// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	"github.com/lockstep-k8s/lockstep/internal/terminal"
	"github.com/lockstep-k8s/lockstep/internal/view"
)

const (
	// maxStreams is how many logs are read at the same time.
	maxStreams = 20
	// maxFollowed is how many logs -f follows, each by a connection of its own.
	maxFollowed = 100
	// maxLine is how long a line may be before it is broken.
	maxLine = 64 << 10
	// lookForPods is how often -f looks for Pods of tasks that are retried.
	lookForPods = 2 * time.Second
)

// logOptions are the flags of logs.
type logOptions struct {
	*session
	attempt   int32
	follow    bool
	container string
	tail      int64
	since     time.Duration
	// storeURL and storeField are of the log store, for Pods that are gone.
	storeURL, storeField string

	// lines keeps lines of different tasks apart.
	lines sync.Mutex
}

func newLogs(s *session) *cobra.Command {
	o := &logOptions{session: s}
	cmd := &cobra.Command{
		Use:   "logs NAME [ROLE[/INDEX]]",
		Short: "Show the logs of all tasks, or of a role, or of one task",
		Long: `Show the logs of all tasks, or of a role, or of one task; each line has its task before it.

Logs are those of Pods, and Pods of an attempt are deleted when it is over. Where logs are collected, --log-store says
where they are then: a URL that answers with the lines of a task, in which {namespace}, {framework}, {uid}, {attempt}, {role},
{index}, {pod}, {start} and {end} are replaced. A token for it is in ` + tokenVariable + `. With -f, up to 100 tasks are
followed, retries of tasks too, until the Framework has ended. On a terminal, control characters are shown and not obeyed.`,
		Example: `  kubectl lockstep logs train worker/0 -f
  kubectl lockstep logs train --attempt 0 --log-store 'https://logs.example.com/{namespace}/{pod}?from={start}&to={end}'`,
		Args: cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args) },
	}
	cmd.Flags().Int32Var(&o.attempt, "attempt", -1, "the attempt of the Framework, from 0; by default the current or last one")
	cmd.Flags().BoolVarP(&o.follow, "follow", "f", false, "go on as lines are written")
	cmd.Flags().StringVarP(&o.container, "container", "c", "", "the container; by default the annotation kubectl.kubernetes.io/default-container, or the first one")
	cmd.Flags().Int64Var(&o.tail, "tail", -1, "only so many of the last lines of each task")
	cmd.Flags().DurationVar(&o.since, "since", 0, "only lines that are no older, such as 5m")
	cmd.Flags().StringVar(&o.storeURL, "log-store", os.Getenv(storeVariable), "URL of the logs of a task whose Pod is gone; by default "+storeVariable+" of the environment")
	cmd.Flags().StringVar(&o.storeField, "log-store-field", "", "where each line of the log store is an object of JSON, its field with the text, such as _msg")
	return cmd
}

// chosen are the tasks whose logs are asked for. An empty role is all, an index of -1 too.
type chosen struct {
	role  string
	index int
}

func parseTask(arg string) (chosen, error) {
	role, number, one := strings.Cut(arg, "/")
	c := chosen{role: role, index: -1}
	if one {
		n, err := strconv.Atoi(number)
		if err != nil || n < 0 || role == "" {
			return c, misuse(fmt.Sprintf("%q is not ROLE or ROLE/INDEX", arg), "for example worker/0")
		}
		c.index = n
	}
	return c, nil
}

func (c chosen) has(pod *corev1.Pod) bool {
	a := pod.Annotations
	return (c.role == "" || a[frameworkv1.KeyTaskRoleName] == c.role) && (c.index < 0 || a[frameworkv1.KeyTaskIndex] == strconv.Itoa(c.index))
}

func (o *logOptions) run(ctx context.Context, args []string) error {
	which := chosen{index: -1}
	var err error
	if len(args) == 2 {
		if which, err = parseTask(args[1]); err != nil {
			return err
		}
	}
	store, err := newLogStore(o.storeURL, o.storeField)
	if err != nil {
		return err
	}
	c, err := o.connect()
	if err != nil {
		return err
	}
	fw, err := c.framework(ctx, args[0])
	if err != nil {
		return err
	}
	if which.role != "" && !slices.ContainsFunc(fw.Spec.TaskRoles, func(r frameworkv1.TaskRoleSpec) bool { return r.Name == which.role }) {
		return &failure{code: exitNotFound, message: fmt.Sprintf("%s has no role %s", fw.Name, which.role), hint: "`describe` lists its roles"}
	}
	pods, err := o.podsOf(ctx, c, fw, which)
	if err != nil {
		return err
	}
	if len(pods) == 0 && (!o.follow || view.Final(view.FrameworkState(fw)) || o.attempt >= 0) {
		if attempt, _, over := o.attemptOf(fw); over && store != nil {
			tasks, err := storedTasks(fw, attempt, which)
			if err != nil {
				return err
			}
			return o.showStored(ctx, store, tasks)
		}
		return o.noPods(fw, which)
	}
	if o.follow {
		return o.followAll(ctx, c, fw, which)
	}
	var streams errgroup.Group
	streams.SetLimit(maxStreams)
	for i := range pods {
		streams.Go(func() error { return o.stream(ctx, c, &pods[i], i) })
	}
	return streams.Wait()
}

// attemptOf is the attempt that is asked for, the current one, and whether the one that is asked for is over.
func (o *logOptions) attemptOf(fw *frameworkv1.Framework) (asked, current int32, over bool) {
	if fw.Status != nil {
		current = fw.Status.AttemptStatus.ID
	}
	if o.attempt >= 0 && o.attempt != current {
		return o.attempt, current, o.attempt < current
	}
	return current, current, view.Final(view.FrameworkState(fw))
}

// noPods says why there are no logs.
func (o *logOptions) noPods(fw *frameworkv1.Framework, which chosen) error {
	f := &failure{code: exitNotFound, message: fw.Name + " has no Pods yet", hint: "`describe " + fw.Name + "` tells what it waits for"}
	attempt, current, over := o.attemptOf(fw)
	switch {
	case over:
		f.message = "the Pods are gone, and their logs with them: Pods are deleted when their attempt is over"
		f.hint = "follow with -f while it runs, or have logs collected from nodes and say where by --log-store; `history " + fw.Name + "` tells how attempts ended"
	case attempt > current:
		f.message = fmt.Sprintf("there is no attempt %d of %s: the last one is %d", attempt, fw.Name, current)
	case which.index >= 0:
		f.message = "there is no Pod of task " + view.TaskName(which.role, int32(min(which.index, frameworkv1.MaxTasks)))
	}
	return f
}

// podsOf are the Pods whose logs are asked for, by role and index.
func (o *logOptions) podsOf(ctx context.Context, c *cluster, fw *frameworkv1.Framework, which chosen) ([]corev1.Pod, error) {
	attempt := o.attempt
	if attempt < 0 && fw.Status != nil {
		attempt = fw.Status.AttemptStatus.ID
	}
	pods, err := c.reader.Pods(ctx, fw)
	pods = slices.DeleteFunc(pods, func(pod corev1.Pod) bool {
		return !which.has(&pod) || pod.Annotations[frameworkv1.KeyFrameworkAttemptID] != strconv.Itoa(int(max(0, attempt)))
	})
	return pods, err
}

// followAll follows the logs until the Framework has ended.
func (o *logOptions) followAll(ctx context.Context, c *cluster, fw *frameworkv1.Framework, which chosen) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var streams errgroup.Group
	followed := map[string]bool{}
	var running sync.WaitGroup
	for {
		current, err := c.framework(ctx, fw.Name)
		over := err != nil && apierrors.IsNotFound(err) || err == nil && (current.UID != fw.UID || view.Final(view.FrameworkState(current)))
		if err != nil && !over {
			return err
		}
		if !over {
			pods, err := o.podsOf(ctx, c, current, which)
			if err != nil {
				return err
			}
			for i := range pods {
				pod := &pods[i]
				if followed[string(pod.UID)] || !begun(pod) {
					continue
				}
				if len(followed) >= maxFollowed && len(pods) > maxFollowed {
					return misuse(fmt.Sprintf("%s has %d tasks here, and -f follows %d at most", fw.Name, len(pods), maxFollowed), "choose ROLE or ROLE/INDEX, or leave -f out")
				}
				followed[string(pod.UID)] = true
				number := len(followed) - 1
				running.Add(1)
				streams.Go(func() error {
					defer running.Done()
					return o.stream(ctx, c, pod, number)
				})
			}
		}
		if over {
			running.Wait()
			return streams.Wait()
		}
		if err := pause(ctx, lookForPods); err != nil {
			return err
		}
	}
}

// begun says whether a Pod has a log.
func begun(pod *corev1.Pod) bool {
	return pod.Status.Phase != corev1.PodPending && pod.Status.Phase != ""
}

// stream writes the log of a Pod. A Pod whose log can't be had costs the others nothing.
func (o *logOptions) stream(ctx context.Context, c *cluster, pod *corev1.Pod, number int) error {
	options := &corev1.PodLogOptions{Container: o.containerOf(pod), Follow: o.follow}
	if o.tail >= 0 {
		options.TailLines = &o.tail
	}
	if o.since > 0 {
		seconds := int64(max(1, o.since.Seconds()))
		options.SinceSeconds = &seconds
	}
	task := pod.Annotations[frameworkv1.KeyTaskRoleName] + "/" + pod.Annotations[frameworkv1.KeyTaskIndex]
	log, err := c.reader.Kube.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, options).Stream(ctx)
	if err != nil {
		if ctx.Err() != nil {
			return context.Canceled
		}
		o.note("The log of %s can't be shown: %v", task, err)
		if f := explain(err); f.code == exitForbidden {
			return err
		}
		return nil
	}
	defer log.Close()
	if err := o.copy(o.prefix(task, number), log); err != nil && ctx.Err() == nil {
		return fmt.Errorf("reading the log of %s: %w", task, err)
	}
	if ctx.Err() != nil {
		return context.Canceled
	}
	return nil
}

// prefix is what stands before each line of a task. Its colour goes by the number of the task.
func (o *logOptions) prefix(task string, number int) string {
	colours := terminal.Prefixes()
	return o.style.Paint(colours[number%len(colours)], "["+task+"]") + " "
}

// copy writes lines, each whole.
func (o *logOptions) copy(prefix string, log io.Reader) error {
	lines := bufio.NewReaderSize(log, maxLine)
	for {
		line, err := lines.ReadSlice('\n')
		if len(line) > 0 {
			text := strings.TrimSuffix(string(line), "\n")
			if o.screen != nil {
				text = terminal.Clean(text)
			}
			o.lines.Lock()
			_, bad := io.WriteString(o.out, prefix+text+"\n")
			o.lines.Unlock()
			if bad != nil {
				return bad
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return err
		}
	}
}

// containerOf is the container whose log is asked for.
func (o *logOptions) containerOf(pod *corev1.Pod) string {
	switch {
	case o.container != "":
		return o.container
	case pod.Annotations["kubectl.kubernetes.io/default-container"] != "":
		return pod.Annotations["kubectl.kubernetes.io/default-container"]
	case len(pod.Spec.Containers) > 0:
		return pod.Spec.Containers[0].Name
	default:
		return ""
	}
}
