// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	"github.com/lockstep-k8s/lockstep/internal/terminal"
	"github.com/lockstep-k8s/lockstep/internal/text"
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

	// often is how often logs -f looks for new Pods, and opens logs again that were interrupted.
	often time.Duration

	// lines keeps lines of different tasks apart.
	lines sync.Mutex
	// shown is the number of logs that were shown. failed is the number of logs that could not be shown. broken is the
	// number of logs that were interrupted.
	shown, failed, broken atomic.Int32
}

func newLogs(s *session) *cobra.Command {
	o := &logOptions{session: s, often: 2 * time.Second}
	cmd := &cobra.Command{
		Use:   "logs NAME [ROLE[/INDEX]]",
		Short: "Show the logs of all tasks, or of a role, or of one task",
		Long: `Show the logs of all tasks, or of a role, or of one task; the task is written before each line.

Logs are read from Pods, and the Pods of an attempt are deleted when the attempt is over. If your cluster collects logs, name
the store by --log-store: a URL that answers with the lines of a task, in which {namespace}, {framework}, {uid}, {attempt},
{role}, {index}, {pod}, {start} and {end} are replaced. The variable ` + tokenVariable + ` may have a token for the store.

With -f, up to 100 tasks are followed, including retries of tasks, until the Framework has ended. After a broken connection, a
log is opened again behind its last line. On a terminal, control characters are shown and not obeyed.`,
		Example: `  kubectl lockstep logs train worker/0 -f
  kubectl lockstep logs train --attempt 0 --log-store 'https://logs.example.com/{namespace}/{pod}?from={start}&to={end}'`,
		Args: cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args) },
	}
	cmd.Flags().Int32Var(&o.attempt, "attempt", -1, "the attempt of the Framework, from 0; by default the current or last one")
	cmd.Flags().BoolVarP(&o.follow, "follow", "f", false, "go on as lines are written")
	cmd.Flags().StringVarP(&o.container, "container", "c", "", "the container; by default the annotation kubectl.kubernetes.io/default-container, or the first one")
	cmd.Flags().Int64Var(&o.tail, "tail", -1, "show only this many of the last lines of each task")
	cmd.Flags().DurationVar(&o.since, "since", 0, "only lines newer than this, such as 5m")
	cmd.Flags().StringVar(&o.storeURL, "log-store", os.Getenv(storeVariable), "URL of the logs of a task whose Pod is gone; by default "+storeVariable+" of the environment")
	cmd.Flags().StringVar(&o.storeField, "log-store-field", "", "where each line of the log store is an object of JSON, its field with the text, such as _msg")
	return cmd
}

// chosen selects the tasks whose logs are requested. An empty role means all roles, an index of -1 all indexes.
type chosen struct {
	role  string
	index int
}

func parseTask(arg string) (chosen, error) {
	role, number, one := strings.Cut(arg, "/")
	c := chosen{role: role, index: -1}
	if one {
		n, err := strconv.ParseInt(number, 10, 32)
		if err != nil || n < 0 || role == "" {
			return c, misuse(fmt.Sprintf("%q is not ROLE or ROLE/INDEX", arg), "for example worker/0")
		}
		c.index = int(n)
	}
	return c, nil
}

func (c chosen) has(pod *corev1.Pod) bool {
	role, index := view.TaskOf(pod)
	return (c.role == "" || role == c.role) && (c.index < 0 || index == strconv.Itoa(c.index))
}

// check says what is wrong with the flags. Those of -1 are not set.
func (o *logOptions) check() error {
	switch {
	case o.attempt < -1:
		return misuse(fmt.Sprintf("--attempt=%d: must be 0 or more", o.attempt), "attempts are counted from 0")
	case o.tail < -1:
		return misuse(fmt.Sprintf("--tail=%d: must be 0 or more", o.tail), "such as --tail=10")
	case o.since < 0:
		return misuse(fmt.Sprintf("--since=%s: must not be negative", o.since), "such as --since=5m")
	default:
		return nil
	}
}

func (o *logOptions) run(ctx context.Context, args []string) error {
	which := chosen{index: -1}
	err := o.check()
	if err != nil {
		return err
	}
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
	t, err := c.named(ctx, args[0])
	switch {
	case err != nil:
		return err
	case t.fw == nil:
		return o.ofJob(ctx, c.in(t.job.Namespace), t, which)
	}
	fw := t.fw
	c = c.in(fw.Namespace)
	pods, err := o.podsOf(ctx, c, fw, which)
	if err != nil {
		return err
	}
	attempt, current, over := o.attemptOf(fw)
	// Attempts of before may have had more tasks, and so has one while tasks are taken away.
	if err := which.check(fw, len(pods) > 0 || attempt < current); err != nil {
		return err
	}
	if comes := o.follow && attempt == current && (!over || o.attempt < 0 && !view.Final(view.FrameworkState(fw))); len(pods) == 0 && !comes {
		if !over || store == nil {
			return o.noPods(fw, which)
		}
		tasks, err := storedTasks(fw, attempt, which)
		if err != nil {
			return err
		}
		return o.showStored(ctx, store, tasks)
	}
	if err := o.checkContainer(fw, which, pods); err != nil {
		return err
	}
	if o.follow {
		return o.followAll(ctx, c, fw.Name, func(ctx context.Context) ([]corev1.Pod, bool, error) { return o.look(ctx, c, fw, which) })
	}
	return o.streamAll(ctx, c, t, pods)
}

// streamAll writes the logs of Pods. For a Pod that has not started, it prints why.
func (o *logOptions) streamAll(ctx context.Context, c *cluster, t target, pods []corev1.Pod) error {
	streams, ctx := errgroup.WithContext(ctx)
	streams.SetLimit(maxStreams)
	var waiting []*corev1.Pod
	for i := range pods {
		if pods[i].Spec.NodeName == "" && !begun(&pods[i]) {
			waiting = append(waiting, &pods[i])
			continue
		}
		streams.Go(func() error { return o.stream(ctx, c, &pods[i], i) })
	}
	if err := streams.Wait(); err != nil {
		return err
	}
	if len(waiting) > 0 {
		says := fmt.Sprintf("%d of %s %s no node yet, and so no log", len(waiting), text.Counted(len(pods), "Pod"), map[bool]string{true: "has", false: "have"}[len(waiting) == 1])
		hint := "`why " + t.object().GetName() + "` shows why"
		if len(waiting) == len(pods) {
			return &failure{code: exitFailed, message: says, hint: hint}
		}
		o.note("%s: %s.", says, hint)
	}
	return o.result()
}

// ofJob shows the logs of a PodGroup's members, or of a job that is no Framework.
func (o *logOptions) ofJob(ctx context.Context, c *cluster, t target, which chosen) error {
	if o.attempt >= 0 {
		return misuse(t.String()+" has no logs of single attempts", "leave --attempt out")
	}
	look := func(ctx context.Context) ([]corev1.Pod, bool, error) {
		job, err := c.reader.JobAgain(ctx, t.job)
		if isGone(err) {
			return nil, true, nil
		}
		if err != nil {
			return nil, false, err
		}
		pods, err := c.reader.JobPods(ctx, job)
		return slices.DeleteFunc(pods, func(pod corev1.Pod) bool { return !which.has(&pod) }), view.JobFinal(job.State), err
	}
	pods, over, err := look(ctx)
	switch {
	case err != nil:
		return err
	case len(pods) == 0 && which.role != "":
		return &failure{code: exitNotFound, message: fmt.Sprintf("%s has no Pod of %s now", t, which), hint: "`describe` lists its Pods"}
	case len(pods) == 0 && (over || !o.follow):
		return &failure{code: exitNotFound, message: t.String() + " has no Pods now", hint: "`why " + t.String() + "` shows why it waits, or how it ended"}
	case o.follow:
		return o.followAll(ctx, c, t.String(), look)
	}
	return o.streamAll(ctx, c, t, pods)
}

func (c chosen) String() string {
	if c.index < 0 {
		return c.role
	}
	return view.TaskName(c.role, int32(c.index))
}

// check returns an error if the chosen role or index does not exist. With mayBeMore it accepts any index, because the
// attempt may have more tasks than the spec.
func (c chosen) check(fw *frameworkv1.Framework, mayBeMore bool) error {
	if c.role == "" {
		return nil
	}
	i := slices.IndexFunc(fw.Spec.TaskRoles, func(r frameworkv1.TaskRoleSpec) bool { return r.Name == c.role })
	if i < 0 {
		return &failure{code: exitNotFound, message: fmt.Sprintf("%s has no role %s", fw.Name, c.role), hint: "`describe` lists its roles"}
	}
	if number := fw.Spec.TaskRoles[i].TaskNumber; !mayBeMore && c.index >= int(number) {
		return &failure{code: exitNotFound, message: fmt.Sprintf("%s has no task %s/%d", fw.Name, c.role, c.index),
			hint: fmt.Sprintf("its role %s has %d, counted from 0", c.role, number)}
	}
	return nil
}

// checkContainer returns an error if none of the Pods has the requested container, and no Pod with it can follow. Pods
// of other roles may follow while an attempt begins, and later with -f.
func (o *logOptions) checkContainer(fw *frameworkv1.Framework, which chosen, pods []corev1.Pod) error {
	if o.container == "" || len(pods) == 0 || o.follow && view.FrameworkState(fw) != view.StateRunning {
		return nil
	}
	var names []string
	for i := range pods {
		names = append(names, containersOf(&pods[i])...)
	}
	for i := range fw.Spec.TaskRoles {
		if role := &fw.Spec.TaskRoles[i]; o.follow && (which.role == "" || which.role == role.Name) {
			names = append(names, containersToCome(role)...)
		}
	}
	if slices.Contains(names, o.container) {
		return nil
	}
	slices.Sort(names)
	return &failure{code: exitNotFound, message: "there is no container " + o.container, hint: "there are " + strings.Join(slices.Compact(names), ", ")}
}

// containersToCome returns the names of the containers in a role's Pod template; none if the template can't be decoded.
func containersToCome(role *frameworkv1.TaskRoleSpec) []string {
	type container struct{ Name string }
	var template struct {
		Spec struct{ InitContainers, Containers []container }
	}
	// An invalid template has no containers.
	_ = json.Unmarshal(role.Task.Pod.Raw, &template)
	var names []string
	for _, c := range slices.Concat(template.Spec.InitContainers, template.Spec.Containers) {
		names = append(names, c.Name)
	}
	return names
}

// containersOf returns the names of all containers of a Pod.
func containersOf(pod *corev1.Pod) []string {
	var names []string
	for i := range pod.Spec.InitContainers {
		names = append(names, pod.Spec.InitContainers[i].Name)
	}
	for i := range pod.Spec.Containers {
		names = append(names, pod.Spec.Containers[i].Name)
	}
	for i := range pod.Spec.EphemeralContainers {
		names = append(names, pod.Spec.EphemeralContainers[i].Name)
	}
	return names
}

// result returns an error if there are logs and none of them could be shown, or none could be read to its end.
func (o *logOptions) result() error {
	switch {
	case o.failed.Load() > 0 && o.shown.Load() == 0:
		return &failure{code: exitFailed, message: "no log could be shown"}
	case o.broken.Load() > 0:
		return &failure{code: exitFailed, message: "not every log was shown to its end"}
	default:
		return nil
	}
}

// cannotShow notes that the log of a task can't be shown.
func (o *logOptions) cannotShow(task string, err error) {
	o.failed.Add(1)
	o.note("The log of %s can't be shown: %v", task, err)
}

// attemptOf returns the requested attempt, the current attempt, and whether the requested attempt is over.
func (o *logOptions) attemptOf(fw *frameworkv1.Framework) (asked, current int32, over bool) {
	if fw.Status != nil {
		current = fw.Status.AttemptStatus.ID
	}
	if o.attempt >= 0 && o.attempt != current {
		return o.attempt, current, o.attempt < current
	}
	state := view.FrameworkState(fw)
	return current, current, view.Final(state) || state == view.StateRetrying || state == view.StateEnding
}

// noPods says why there are no logs.
func (o *logOptions) noPods(fw *frameworkv1.Framework, which chosen) error {
	f := &failure{code: exitNotFound, message: fw.Name + " has no Pods yet", hint: "`describe " + fw.Name + "` shows why it waits"}
	attempt, current, over := o.attemptOf(fw)
	switch {
	case over:
		f.message = "the Pods are gone, and their logs with them: Pods are deleted when their attempt is over"
		f.hint = "follow with -f while it runs, or have logs collected from nodes and say where by --log-store; `history " + fw.Name + "` shows how attempts ended"
	case attempt > current:
		f.message = fmt.Sprintf("there is no attempt %d of %s: the last one is %d", attempt, fw.Name, current)
	case which.index >= 0:
		f.message = "there is no Pod of task " + view.TaskName(which.role, int32(which.index)) + " now"
	}
	return f
}

// podsOf returns the Pods with the requested logs, by role and index.
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

// stream writes the log of a Pod. If the log can't be read, the logs of other Pods are still written.
func (o *logOptions) stream(ctx context.Context, c *cluster, pod *corev1.Pod, number int) error {
	err := o.read(ctx, c, pod, number, nil)
	switch {
	case err == nil, errors.As(err, new(unwritable)):
		return err
	case ctx.Err() != nil:
		return context.Canceled
	case explain(err).code == exitForbidden:
		// Nor may the others be read.
		return err
	case errors.As(err, new(brokenOff)):
		o.broken.Add(1)
		o.note("The log of %s broke off: %v", view.TaskOfPod(pod), err)
	default:
		o.cannotShow(view.TaskOfPod(pod), err)
	}
	return nil
}

// read writes the log of a Pod once. If `at` is not nil, read writes only the lines after that place, and continues
// with new lines as they arrive.
func (o *logOptions) read(ctx context.Context, c *cluster, pod *corev1.Pod, number int, at *place) error {
	options := &corev1.PodLogOptions{Container: o.containerOf(pod), Follow: at != nil, Timestamps: at != nil}
	if at != nil {
		options.SinceTime = at.since()
	}
	switch {
	case options.SinceTime != nil:
	case at != nil && at.lines == 0 && !at.opened.IsZero() && o.tail >= 0:
		// All that was written since then is new, however many lines.
		options.SinceTime = &metav1.Time{Time: at.opened}
	case at != nil && at.lines == 0 && !at.opened.IsZero() && o.since > 0:
		options.SinceTime = &metav1.Time{Time: at.opened.Add(-o.since)}
	default:
		if o.tail >= 0 {
			options.TailLines = &o.tail
		}
		if o.since > 0 {
			seconds := int64(max(1, o.since.Seconds()))
			options.SinceSeconds = &seconds
		}
	}
	asked := now()
	log, err := c.reader.Kube.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, options).Stream(ctx)
	if err != nil {
		return err
	}
	defer log.Close()
	o.shown.Add(1)
	if at != nil && at.opened.IsZero() {
		at.opened = asked
	}
	err = o.copy(o.prefix(view.TaskOfPod(pod), number), log, at)
	if err == nil || errors.As(err, new(unwritable)) {
		return err
	}
	return brokenOff{err}
}

// prefix returns the text before each line of a task. number chooses its colour.
func (o *logOptions) prefix(task string, number int) string {
	colours := terminal.Prefixes()
	return o.style.Paint(colours[number%len(colours)], "["+task+"]") + " "
}

// unwritable is an error of the program's output, not of a log. brokenOff is an error in the middle of a log.
type (
	unwritable struct{ error }
	brokenOff  struct{ error }
)

// copy writes lines, each whole; with a place, only new lines there.
func (o *logOptions) copy(prefix string, log io.Reader, at *place) error {
	lines := bufio.NewReaderSize(log, maxLine)
	begins, known := true, false
	for {
		line, err := lines.ReadSlice('\n')
		whole := err == nil || errors.Is(err, io.EOF) || errors.Is(err, bufio.ErrBufferFull)
		// A part of a line without its rest is read again.
		if len(line) > 0 && (whole || at == nil) {
			whole := strings.TrimSuffix(string(line), "\n")
			if at != nil && begins {
				whole, known = at.take(whole)
			}
			if !known {
				if err := o.write(prefix, whole); err != nil {
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

// containerOf returns the container of the requested log.
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
