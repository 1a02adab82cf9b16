// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"maps"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	"github.com/lockstep-k8s/lockstep/internal/view"
)

const (
	// patience is how long an API server that does not answer is asked again.
	patience = 5 * time.Minute
	// triesOfRest is how often this program requests the rest of a log after its Pod has ended.
	triesOfRest = 3
)

// looks finds the Pods to follow, and whether all that is followed has ended.
type looks func(ctx context.Context) (pods []corev1.Pod, over bool, err error)

// followAll follows the logs of what has a name until it has ended.
func (o *logOptions) followAll(ctx context.Context, c *cluster, name string, look looks) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	streams, ctx := errgroup.WithContext(ctx)
	err := o.followEach(ctx, c, name, look, streams)
	if err != nil && ctx.Err() == nil {
		return err
	}
	// The error that ended the others comes first.
	return cmp.Or(streams.Wait(), err, o.result())
}

// followEach begins to follow each log, until all that is followed has ended.
func (o *logOptions) followEach(ctx context.Context, c *cluster, name string, look looks, streams *errgroup.Group) error {
	followed := map[string]bool{}
	var out outage
	for {
		pods, over, err := look(ctx)
		if err = out.judge(err, o.note); err != nil {
			return err
		}
		for i := range pods {
			pod := &pods[i]
			if followed[string(pod.UID)] || !begun(pod) {
				continue
			}
			if len(followed) >= maxFollowed && len(pods) > maxFollowed {
				return misuse(fmt.Sprintf("%s has %d tasks here, and -f follows %d at most", name, len(pods), maxFollowed), "choose ROLE or ROLE/INDEX, or leave -f out")
			}
			followed[string(pod.UID)] = true
			number := len(followed) - 1
			streams.Go(func() error { return o.followOne(ctx, c, pod, number) })
		}
		if over {
			return nil
		}
		if err := pause(ctx, o.often); err != nil {
			return err
		}
	}
}

// look finds the Pods with logs to follow. `over` reports that the Framework or the requested attempt has ended.
func (o *logOptions) look(ctx context.Context, c *cluster, fw *frameworkv1.Framework, which chosen) (pods []corev1.Pod, over bool, err error) {
	current, err := c.reader.Framework(ctx, fw.Namespace, fw.Name)
	switch {
	case apierrors.IsNotFound(err):
		return nil, true, nil
	case err != nil:
		return nil, false, err
	case current.UID != fw.UID || view.Final(view.FrameworkState(current)):
		return nil, true, nil
	}
	if o.attempt >= 0 {
		_, _, over = o.attemptOf(current)
	}
	pods, err = o.podsOf(ctx, c, current, which)
	return pods, over, err
}

// begun reports whether a Pod has a log.
func begun(pod *corev1.Pod) bool {
	return pod.Status.Phase != corev1.PodPending && pod.Status.Phase != ""
}

// followOne writes the log of a Pod line by line, until its container has ended for good. If the connection breaks or
// the container restarts, followOne opens the log again, and continues after the last line that it wrote.
func (o *logOptions) followOne(ctx context.Context, c *cluster, pod *corev1.Pod, number int) error {
	var at place
	var out outage
	told := uint64(0)
	// cut is the error that interrupted the log; nil once the log was read to its end.
	var cut error
	for left := triesOfRest; ; {
		err := o.read(ctx, c, pod, number, &at)
		if err == nil || errors.As(err, new(brokenOff)) {
			cut = err
		}
		switch {
		case errors.As(err, new(unwritable)):
			return err
		case ctx.Err() != nil:
			return context.Canceled
		case err != nil && explain(err).code == exitForbidden:
			// Nor may the others be read.
			return err
		case err != nil && !slices.Contains(containersOf(pod), o.containerOf(pod)):
			o.cannotShow(view.TaskOfPod(pod), err)
			return nil
		}
		gone, ended, failed := fate(ctx, c, pod, o.containerOf(pod))
		if failed = out.judge(failed, o.note); failed != nil {
			return failed
		}
		switch {
		case gone && cut != nil:
			o.endMissing(pod, cut)
			return nil
		case gone || ended && err == nil:
			return nil
		case ended:
			if left--; left == 0 {
				o.endMissing(pod, err)
				return nil
			}
		}
		// Once for each time that it was read.
		if err != nil && told != at.lines+1 {
			told = at.lines + 1
			o.note("The log of %s broke off, and is opened again: %v", view.TaskOfPod(pod), err)
		}
		if err := pause(ctx, o.often); err != nil {
			return err
		}
	}
}

// endMissing notes that a log can't be read to its end.
func (o *logOptions) endMissing(pod *corev1.Pod, err error) {
	o.broken.Add(1)
	o.note("The end of the log of %s is missing: %v", view.TaskOfPod(pod), err)
}

// fate reports whether a Pod is gone, and whether its container has ended for good.
func fate(ctx context.Context, c *cluster, pod *corev1.Pod, container string) (gone, ended bool, err error) {
	now, err := c.reader.Kube.CoreV1().Pods(pod.Namespace).Get(ctx, pod.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return true, true, nil
	}
	if err != nil {
		return false, false, err
	}
	return now.UID != pod.UID, hasEnded(now, container), nil
}

// hasEnded reports whether a container has ended and is not started again.
func hasEnded(pod *corev1.Pod, container string) bool {
	if pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		return true
	}
	for _, status := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses, pod.Status.EphemeralContainerStatuses) {
		if status.Name != container || status.State.Terminated == nil {
			continue
		}
		switch restarts(pod, container) {
		case corev1.RestartPolicyNever:
			return true
		case corev1.RestartPolicyOnFailure:
			return status.State.Terminated.ExitCode == 0
		}
	}
	return false
}

// restarts returns when a container of a Pod is started again.
func restarts(pod *corev1.Pod, container string) corev1.RestartPolicy {
	for i := range pod.Spec.InitContainers {
		init := &pod.Spec.InitContainers[i]
		switch {
		case init.Name != container:
		case init.RestartPolicy != nil:
			return corev1.RestartPolicy(*init.RestartPolicy)
		case pod.Spec.RestartPolicy == corev1.RestartPolicyAlways:
			return corev1.RestartPolicyOnFailure
		}
	}
	for i := range pod.Spec.EphemeralContainers {
		if pod.Spec.EphemeralContainers[i].Name == container {
			return corev1.RestartPolicyNever
		}
	}
	return pod.Spec.RestartPolicy
}

// outage is a period in which the API server does not answer, from since on. The zero value means that it answers.
type outage struct{ since time.Time }

// judge returns the error if retrying is useless or the outage has lasted too long. Otherwise judge returns nil, and
// calls note for the first error of the outage.
func (o *outage) judge(err error, note func(string, ...any)) error {
	switch {
	case err == nil:
		o.since = time.Time{}
		return nil
	case !passes(err):
		return err
	case o.since.IsZero():
		o.since = now()
		note("Asking the API server again: %v", err)
		return nil
	case now().Sub(o.since) > patience:
		return err
	default:
		return nil
	}
}

// passes reports whether a failed request may succeed later: the API server did not answer, or can't at present.
func passes(err error) bool {
	if errors.Is(err, context.Canceled) {
		return false
	}
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return true
	}
	code := status.Status().Code
	return code == 429 || code >= 500
}

// place is how far a log with timestamps has been read. The API accepts only whole seconds, so a log is opened again
// from the second of its last line; place then tells new lines from lines that were read before.
type place struct {
	// opened is when the log was first opened.
	opened time.Time
	second int64
	// read counts the lines of the last second that were read, by their hashes. again counts those of them that are
	// skipped when the log is opened again.
	read, again map[uint64]int
	seed        maphash.Seed
	// lines is how many lines were new.
	lines uint64
}

// since returns the time from which to open the log again; nil means from the beginning.
func (p *place) since() *metav1.Time {
	p.again = maps.Clone(p.read)
	if p.second == 0 {
		return nil
	}
	t := metav1.Unix(p.second, 0)
	return &t
}

// take returns a line without its timestamp. `known` reports that the line was read before.
func (p *place) take(line string) (text string, known bool) {
	stamp, text, _ := strings.Cut(line, " ")
	when, err := time.Parse(time.RFC3339Nano, stamp)
	if err != nil {
		p.lines++
		return line, false
	}
	if p.read == nil {
		p.seed = maphash.MakeSeed()
	}
	if second := when.Unix(); second > p.second || p.read == nil {
		p.second, p.read, p.again = second, map[uint64]int{}, nil
	}
	hash := maphash.String(p.seed, line)
	if p.again[hash] > 0 {
		p.again[hash]--
		return text, true
	}
	// Lines of two streams may be a little out of order.
	if when.Unix() == p.second {
		p.read[hash]++
	}
	p.lines++
	return text, false
}
