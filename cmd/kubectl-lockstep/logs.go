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

	// often is how often -f looks for Pods, and opens again logs that broke off.
	often time.Duration

	// lines keeps lines of different tasks apart.
	lines sync.Mutex
}

func newLogs(s *session) *cobra.Command {
	o := &logOptions{session: s, often: 2 * time.Second}
	cmd := &cobra.Command{
		Use:   "logs NAME [ROLE[/INDEX]]",
		Short: "Show the logs of all tasks, or of a role, or of one task",
		Long: `Show the logs of all tasks, or of a role, or of one task; each line has its task before it.

Logs are those of Pods, and Pods of an attempt are deleted when it is over. Where logs are collected, --log-store says
where they are then: a URL that answers with the lines of a task, in which {namespace}, {framework}, {uid}, {attempt}, {role},
{index}, {pod}, {start} and {end} are replaced. A token for it is in ` + tokenVariable + `. With -f, up to 100 tasks are
followed, retries of tasks too, until the Framework has ended; a log whose connection breaks is opened again behind its last
line. On a terminal, control characters are shown and not obeyed.`,
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

// stream writes the log of a Pod. A Pod whose log can't be had costs the others nothing.
func (o *logOptions) stream(ctx context.Context, c *cluster, pod *corev1.Pod, number int) error {
	err := o.read(ctx, c, pod, number, nil)
	switch {
	case err == nil, errors.As(err, new(unwritable)):
		return err
	case ctx.Err() != nil:
		return context.Canceled
	}
	o.note("The log of %s can't be shown: %v", taskOf(pod), err)
	if explain(err).code == exitForbidden {
		return err
	}
	return nil
}

// read writes the log of a Pod once; with a place, those lines that are new there, and from then on as they come.
func (o *logOptions) read(ctx context.Context, c *cluster, pod *corev1.Pod, number int, at *place) error {
	options := &corev1.PodLogOptions{Container: o.containerOf(pod), Follow: at != nil, Timestamps: at != nil}
	if at != nil {
		options.SinceTime = at.since()
	}
	if options.SinceTime == nil {
		if o.tail >= 0 {
			options.TailLines = &o.tail
		}
		if o.since > 0 {
			seconds := int64(max(1, o.since.Seconds()))
			options.SinceSeconds = &seconds
		}
	}
	log, err := c.reader.Kube.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, options).Stream(ctx)
	if err != nil {
		return err
	}
	defer log.Close()
	return o.copy(o.prefix(taskOf(pod), number), log, at)
}

// taskOf is the task of a Pod, as ROLE/INDEX.
func taskOf(pod *corev1.Pod) string {
	return pod.Annotations[frameworkv1.KeyTaskRoleName] + "/" + pod.Annotations[frameworkv1.KeyTaskIndex]
}

// prefix is what stands before each line of a task. Its colour goes by the number of the task.
func (o *logOptions) prefix(task string, number int) string {
	colours := terminal.Prefixes()
	return o.style.Paint(colours[number%len(colours)], "["+task+"]") + " "
}

// unwritable is an error of the output, and of no log.
type unwritable struct{ error }

// copy writes lines, each whole; with a place, those that are new there.
func (o *logOptions) copy(prefix string, log io.Reader, at *place) error {
	lines := bufio.NewReaderSize(log, maxLine)
	begins, known := true, false
	for {
		line, err := lines.ReadSlice('\n')
		whole := err == nil || errors.Is(err, io.EOF) || errors.Is(err, bufio.ErrBufferFull)
		// A part of a line whose rest got lost is read again.
		if len(line) > 0 && (whole || at == nil) {
			text := strings.TrimSuffix(string(line), "\n")
			if at != nil && begins {
				text, known = at.take(text)
			}
			if !known {
				if err := o.write(prefix, text); err != nil {
					return err
				}
			}
			begins = err == nil
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return err
		}
	}
}

func (o *logOptions) write(prefix, text string) error {
	if o.screen != nil {
		text = terminal.Clean(text)
	}
	o.lines.Lock()
	defer o.lines.Unlock()
	if _, err := io.WriteString(o.out, prefix+text+"\n"); err != nil {
		return unwritable{err}
	}
	return nil
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
