// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	internalqueue "k8s.io/kubernetes/pkg/scheduler/backend/queue"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// backlog stands in for the scheduler's own queue with more Pods in it than it takes at once, so that it takes time
// to list them.
type backlog struct {
	internalqueue.SchedulingQueue
	active []*corev1.Pod
	takes  time.Duration
	listed int
}

func (b *backlog) PodsInActiveQ() []*corev1.Pod {
	b.listed++
	time.Sleep(b.takes)
	return b.active
}

func (b *backlog) Add(_ context.Context, pod *corev1.Pod)       { b.active = append(b.active, pod) }
func (b *backlog) Update(_ context.Context, _, pod *corev1.Pod) { b.active = append(b.active, pod) }
func (b *backlog) AddUnschedulablePodIfNotPresent(_ klog.Logger, info *framework.QueuedPodInfo, _ int64) error {
	b.active = append(b.active, info.Pod)
	return nil
}

func inFrontOf(b *backlog) *PodQueue {
	return newQueue(b, func(pod *corev1.Pod) bool { return pod.Labels["gang"] != "" }, nil, func(*corev1.Pod) {},
		func(*corev1.Pod) bool { return true })
}

// TestManyOrdinaryPodsMakeTurnsOfGangsNoLonger: after each turn of a gang it is asked whether
// an ordinary Pod outranks it. To list tens of thousands of them takes as long as a turn.
func TestManyOrdinaryPodsMakeTurnsOfGangsNoLonger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const turns, turn = 1000, 5 * time.Millisecond
		b := &backlog{active: []*corev1.Pod{makePod("low", 1, "")}, takes: 5 * time.Millisecond}
		q := inFrontOf(b)
		began := time.Now()
		for range turns {
			time.Sleep(turn)
			if q.Outranked(1) {
				t.Fatal("a Pod of the same priority outranks the gang")
			}
		}
		if took, most := time.Since(began), turns*turn*(lookShare+1)/lookShare+b.takes; took > most {
			t.Errorf("%d turns took %v with %d lists of the queue, want %v at most", turns, took, b.listed, most)
		}
	})
}

// TestAPodThatOutranksAGangIsNoticed at once if it is given to the queue after that was
// looked at, and soon if it was in it and has waited for something that happens now.
func TestAPodThatOutranksAGangIsNoticed(t *testing.T) {
	pod := makePod("high", 2, "")
	tests := map[string]struct {
		comes func(q *PodQueue, b *backlog)
		after time.Duration
	}{
		"that is new":      {comes: func(q *PodQueue, _ *backlog) { q.Add(t.Context(), pod) }},
		"that has changed": {comes: func(q *PodQueue, _ *backlog) { q.Update(t.Context(), pod, pod) }},
		"that found no node": {comes: func(q *PodQueue, _ *backlog) {
			info := &framework.QueuedPodInfo{PodInfo: &framework.PodInfo{Pod: pod}}
			if err := q.AddUnschedulablePodIfNotPresent(klog.Background(), info, 0); err != nil {
				t.Error(err)
			}
		}},
		"that has waited": {
			comes: func(_ *PodQueue, b *backlog) { b.active = append(b.active, pod) },
			after: lookShare * time.Millisecond,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := &backlog{active: []*corev1.Pod{makePod("low", 1, "")}, takes: time.Millisecond}
				q := inFrontOf(b)
				if q.Outranked(1) {
					t.Fatal("it is outranked by nobody")
				}
				tc.comes(q, b)
				time.Sleep(tc.after)
				for _, gang := range []struct {
					priority int32
					want     bool
				}{{1, true}, {2, false}, {1, true}, {0, true}} {
					if got := q.Outranked(gang.priority); got != gang.want {
						t.Errorf("that a gang of priority %d is outranked is %v, want %v", gang.priority, got, gang.want)
					}
				}
				b.active = b.active[:1] // it has its turn
				if q.Outranked(1) {
					t.Error("the gang is outranked by a Pod that has had its turn")
				}
				if !q.Outranked(0) {
					t.Error("a gang that is behind that one is not outranked by a Pod of the priority of that")
				}
			})
		})
	}
}
