// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/gangs"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/kube"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/room"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/status"
)

// refusedPause and failedPause are how long the scheduler waits before it tries again to delete a Pod, after the
// deletion was refused or has failed. A webhook that refused will probably refuse again, and a server that failed may
// fail again. Meanwhile gangs look for other victims.
const (
	refusedPause = 5 * time.Minute
	failedPause  = 30 * time.Second
)

// evictor evicts Pods for gangs, and the remains of preempted gangs.
type evictor struct {
	handle framework.Framework
	// pods has all Pods, including ended ones.
	pods   cache.Store
	gangs  *gangs.Gangs
	reader gangs.Reader
	// evictions has the victims that have not ended yet.
	evictions *room.Evictions
	metrics   *status.Metrics
}

// evict deletes the victims of a gang, outside of the scheduling goroutine. If a deletion fails, the gang looks for
// other victims. Nothing is deleted for a gang that was deleted, or got its minimum, since its cycle began.
func (e *evictor) evict(ctx context.Context, view *gangs.View, pods []*corev1.Pod) {
	waits := func() bool { return e.reader.Waits(view.Key, view.Group.UID, 0) }
	if !waits() {
		return
	}
	e.evictions.Add(pods, time.Now())
	e.gangs.SetLeaving(pods, true)
	e.metrics.Preemptions.Inc()
	e.metrics.Victims.Add(float64(len(pods)))
	kube.ObservePreemption(len(pods))
	klog.FromContext(ctx).V(2).Info("Preempting Pods for a pod group", "victims", len(pods))
	by := &kube.Preemptor{Object: standIn(view.Group, view.Waiting[0]), Scheduler: view.Waiting[0].Spec.SchedulerName, Priority: view.Rank.Priority, Kind: "PodGroup"}
	go func() {
		if pause := e.deletePods(ctx, by, pods, waits); pause > 0 {
			e.gangs.Wake(view.Key)            // the gang may find other victims,
			e.dissolveLater(ctx, pods, pause) // and some of a gang that goes as a whole may be deleted
		}
	}()
}

// dissolveLater dissolves the remains of the gangs of some Pods after a pause.
func (e *evictor) dissolveLater(ctx context.Context, pods []*corev1.Pod, pause time.Duration) {
	select {
	case <-time.After(pause):
		e.gangs.DissolveAgain(pods)
	case <-ctx.Done():
	}
}

// standIn returns the object of a group or, without one, one of its Pods.
func standIn(group *dialect.Group, pod *corev1.Pod) kube.Object {
	if group.IsImplied() {
		return pod
	}
	return group.Object()
}

// dissolve deletes the rest of a gang that was preempted in part and can't go on, and retries until all are gone.
// Preemption may take a gang only as a whole.
func (e *evictor) dissolve(ctx context.Context, group *dialect.Group, pods []*corev1.Pod) {
	var rest []*corev1.Pod
	now := time.Now()
	for _, pod := range pods {
		if !e.evictions.IsLeaving(pod, now) {
			rest = append(rest, pod)
		}
	}
	if len(rest) == 0 {
		return
	}
	e.evictions.Add(rest, now)
	e.metrics.Victims.Add(float64(len(rest)))
	logger := klog.LoggerWithValues(klog.FromContext(ctx), "podGroup", klog.KRef(group.Key.Namespace, group.Key.Name))
	logger.V(2).Info("Preempting the rest of a pod group that lost members to preemption", "victims", len(rest))
	by := &kube.Preemptor{Object: standIn(group, rest[0]), Scheduler: rest[0].Spec.SchedulerName, Kind: "Pod, which took other members of the PodGroup"}
	if pause := e.deletePods(klog.NewContext(ctx, logger), by, rest, nil); pause > 0 {
		e.dissolveLater(ctx, rest, pause)
	}
}

// deletePods first marks all Pods with DisruptionTarget. If another scheduler takes over, the marks show that the whole
// gang was to go. Then deletePods deletes one Pod and, if that is not refused, the others. `waits` reports whether the
// gang for which the Pods are deleted still waits; nil if they are deleted for no gang. Once the gang no longer waits,
// or a deletion is refused, the remaining Pods stay. deletePods returns how long to wait before retrying the Pods not
// deleted, 0 if all were.
func (e *evictor) deletePods(ctx context.Context, by *kube.Preemptor, pods []*corev1.Pod, waits func() bool) (pause time.Duration) {
	var left, failed, refused atomic.Bool
	marked := e.mark(ctx, by, pods)
	try := func(i int) {
		pod := pods[i]
		switch now := inStore(e.pods, pod); {
		case now != nil && kube.HasEnded(now) && now.DeletionTimestamp == nil: // its room is free, and its result must stay
			e.leave(ctx, pod)
			return
		case waits != nil && refused.Load(), e.gangs.HasNoPlace(pod): // the Pod has returned to the queue, and would be deleted in vain
			left.Store(true)
			e.leave(ctx, pod)
			return
		}
		err := e.deletePod(ctx, by, marked[i], waits)
		switch {
		case err == nil || ctx.Err() != nil:
			return
		case errors.Is(err, kube.ErrHasEnded):
			e.leave(ctx, pod)
			return
		case errors.Is(err, errWaitsNoMore):
			left.Store(true)
			e.leave(ctx, pod)
			return
		}
		klog.FromContext(ctx).Error(err, "Preempting a Pod failed", "pod", klog.KObj(pod))
		pause := failedPause
		if kube.IsRefusal(err) {
			pause = refusedPause
			refused.Store(true)
		} else {
			failed.Store(true)
		}
		left.Store(true)
		e.evictions.Refused(pod, time.Now().Add(pause))
		e.leave(ctx, pod)
	}
	try(0)
	e.handle.Parallelizer().Until(ctx, len(pods)-1, func(i int) { try(i + 1) }, Name)
	switch {
	case refused.Load() && !failed.Load():
		return refusedPause
	case left.Load():
		return failedPause
	default:
		return 0
	}
}

// markTime is how long marking all victims of a gang may take.
const markTime = 5 * time.Second

// mark adds the condition DisruptionTarget to those of the Pods that are bound. It returns all Pods, the marked ones in
// their new state. A Pod that can't be marked in time is marked when it is deleted.
func (e *evictor) mark(ctx context.Context, by *kube.Preemptor, pods []*corev1.Pod) []*corev1.Pod {
	all := slices.Clone(pods)
	if len(pods) == 1 {
		return all
	}
	ctx, cancel := context.WithTimeout(ctx, markTime)
	defer cancel()
	e.handle.Parallelizer().Until(ctx, len(pods), func(i int) {
		if now := inStore(e.pods, pods[i]); now == nil || kube.HasEnded(now) || now.Spec.NodeName == "" {
			return // if it is about to be bound, it returns to the queue instead of being deleted
		}
		if marked, err := kube.Mark(ctx, e.handle, by, pods[i]); err == nil {
			all[i] = marked
		}
	}, Name)
	return all
}

// leave takes back the eviction of a Pod that was not deleted. The Pod no longer counts as ending. leave also removes
// the mark (DisruptionTarget), because it could be taken for the mark of a later preemption.
func (e *evictor) leave(ctx context.Context, pod *corev1.Pod) {
	kube.TakeBack(ctx, e.handle, pod)
	e.evictions.Remove(pod)
	e.gangs.SetLeaving([]*corev1.Pod{pod}, false)
}

// errWaitsNoMore is the error for a Pod that is not deleted, because the gang for which it was to be evicted no longer
// waits.
var errWaitsNoMore = errors.New("the gang waits no more")

// deletePod deletes one Pod, and retries if the API server is overloaded.
func (e *evictor) deletePod(ctx context.Context, by *kube.Preemptor, pod *corev1.Pod, waits func() bool) error {
	var last error
	backoff := wait.Backoff{Duration: bindRetryDelay, Factor: 2, Jitter: 0.1, Steps: 5}
	err := wait.ExponentialBackoffWithContext(ctx, backoff, func(ctx context.Context) (bool, error) {
		if waits != nil && !waits() {
			last = errWaitsNoMore
			return false, last
		}
		ctx, cancel := context.WithTimeout(ctx, kube.RequestTime)
		defer cancel()
		last = kube.Evict(ctx, e.handle, by, pod, Name)
		if last != nil && !retriable(last) {
			return false, last
		}
		return last == nil, nil
	})
	if err != nil && last != nil {
		return fmt.Errorf("deleting %s: %w", klog.KObj(pod), last)
	}
	return err
}
