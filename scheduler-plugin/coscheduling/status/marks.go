// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/klog/v2"

	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/kube"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/news"
)

// What refuses to have one Pod of a gang marked probably refuses all of them. So the gang has turns and a
// back-off, and not each of its Pods.

// markTurn is how long Pods of one gang are marked before others have their turns. It is shorter than
// the patience of a worker, so that no more Pods are marked at a time than there are workers.
const markTurn = patience / 2

// unmarked are the Pods that are to be marked, by gang. It is safe for concurrent use.
type unmarked struct {
	mu    sync.Mutex
	gangs map[dialect.Key]*gangMarks
}

// gangMarks are the Pods of one gang that are to be marked: those that were not tried yet, and those
// that have failed.
type gangMarks struct {
	fresh, failed sets.Set[types.UID]
}

// add has Pods be marked.
func (u *unmarked) add(gang dialect.Key, pods []types.UID) {
	u.mu.Lock()
	defer u.mu.Unlock()
	marks := u.of(gang)
	for _, uid := range pods {
		if !marks.failed.Has(uid) {
			marks.fresh.Insert(uid)
		}
	}
}

// fail has Pods be marked that could not be.
func (u *unmarked) fail(gang dialect.Key, pods []types.UID) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(pods) > 0 {
		u.of(gang).failed.Insert(pods...)
	}
}

// of are those of one gang. The caller holds the lock.
func (u *unmarked) of(gang dialect.Key) *gangMarks {
	if u.gangs == nil {
		u.gangs = make(map[dialect.Key]*gangMarks)
	}
	if u.gangs[gang] == nil {
		u.gangs[gang] = &gangMarks{fresh: sets.New[types.UID](), failed: sets.New[types.UID]()}
	}
	return u.gangs[gang]
}

// has says whether Pods of a gang are to be marked.
func (u *unmarked) has(gang dialect.Key) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.gangs[gang] != nil
}

// next takes a Pod of a gang, false if there is none. One that has failed comes after all others.
func (u *unmarked) next(gang dialect.Key) (types.UID, bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	marks := u.gangs[gang]
	if marks == nil {
		return "", false
	}
	uid, ok := marks.fresh.PopAny()
	if !ok {
		uid, ok = marks.failed.PopAny()
	}
	if len(marks.fresh)+len(marks.failed) == 0 {
		delete(u.gangs, gang)
	}
	return uid, ok
}

// turn is what has become of Pods of a gang in one turn.
type turn struct {
	begun time.Time

	mu     sync.Mutex
	marked int
	// events counts the events of members that wait for room.
	events int
	failed []types.UID
	why    error
}

// goesOn says whether the turn is not over: by its time, or as more Pods have failed than were marked.
func (t *turn) goesOn() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.failed) <= t.marked && time.Since(t.begun) < markTurn
}

// maxMarkEvents is how many members of a gang have an event in one turn that says why they wait. All have the condition.
const maxMarkEvents = 10

// mayRecord reports whether a member may have an event with its mark.
func (t *turn) mayRecord(mark *news.Mark) bool {
	if mark.Reason != corev1.PodReasonUnschedulable {
		return mark.Event
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.events++
	return t.events <= maxMarkEvents
}

// note notes what came of the write of a Pod's mark.
func (t *turn) note(pod types.UID, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err != nil {
		t.failed, t.why = append(t.failed, pod), err
	} else {
		t.marked++
	}
}

// markOn has a gang have its turn.
func (r *Reporter) markOn(ctx context.Context, gang dialect.Key) error {
	t := turn{begun: time.Now()}
	var writers sync.WaitGroup
	for range markWriters {
		writers.Go(func() { r.markSome(ctx, gang, &t) })
	}
	writers.Wait()
	r.unmarked.fail(gang, t.failed)
	if t.marked > 0 {
		r.marks.succeeded(gang) // what has failed is not what they have in common
	}
	if t.why == nil && r.unmarked.has(gang) {
		r.marks.after(gang, 0)
	}
	return t.why
}

// markSome marks Pods of a gang, until there is none or its turn is over.
func (r *Reporter) markSome(ctx context.Context, gang dialect.Key, t *turn) {
	for t.goesOn() {
		uid, ok := r.unmarked.next(gang)
		if !ok {
			return
		}
		if written, err := r.mark(ctx, gang, uid, t.mayRecord); written || err != nil {
			t.note(uid, err)
		}
	}
}

// mark sets PodScheduled=False on a Pod that waits, unless it has it, and nominates it for
// the node where it is to go, or for none. An event says the same if it may. It says whether there was anything to write.
func (r *Reporter) mark(ctx context.Context, key dialect.Key, uid types.UID, mayRecord func(*news.Mark) bool) (written bool, err error) {
	gang, waiting, ok := r.gangs.LookAt(key, uid)
	if !ok {
		return false, nil
	}
	pod := waiting.Pod
	var condition *corev1.PodCondition
	mark, tells := gang.MarkOf(waiting)
	if tells = tells && !news.IsMarked(pod, mark.Reason); tells {
		condition = &corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: mark.Reason, Message: mark.Message}
	}
	node, changes := gang.Nomination(waiting)
	if !changes {
		node = pod.Status.NominatedNodeName
	}
	if !tells && !changes {
		return false, nil
	}
	if err := r.write(ctx, pod, condition, node); err != nil {
		return false, r.failed(key, pod, err)
	}
	if tells && mayRecord(&mark) {
		r.record(ctx, pod, news.Event{Kind: corev1.EventTypeWarning, Reason: "FailedScheduling", Message: mark.Message})
	}
	return true, nil
}

func (r *Reporter) write(ctx context.Context, pod *corev1.Pod, condition *corev1.PodCondition, node string) error {
	ctx, cancel := context.WithTimeout(ctx, kube.RequestTime)
	defer cancel()
	return kube.WriteWait(ctx, r.pods, pod, condition, node)
}

// failed is the error of a Pod that could not be marked, nil if that has changed or is gone: it is looked at
// again then. A Pod that is bound meanwhile is as invalid as one that a policy refuses.
func (r *Reporter) failed(gang dialect.Key, pod *corev1.Pod, err error) error {
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	if _, _, waits := r.gangs.LookAt(gang, pod.UID); apierrors.IsInvalid(err) && !waits {
		return nil
	}
	return fmt.Errorf("marking %s as unschedulable: %w", klog.KObj(pod), err)
}
