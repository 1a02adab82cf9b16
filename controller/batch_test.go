// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	"github.com/lockstep-k8s/lockstep/controller/lifecycle"
)

func TestActionsBeginSlowlyAndStopAtTheFirstError(t *testing.T) {
	tests := map[string]struct {
		actions, batch int
		failAt         int64
		enoughAfter    int64
		wantRan        int
		wantNextBatch  int
	}{
		"all go well":                         {actions: 100, batch: 1, wantRan: 100, wantNextBatch: 8},
		"the first fails":                     {actions: 100, batch: 1, failAt: 1, wantRan: 1, wantNextBatch: 1},
		"the fourth fails, in a batch of two": {actions: 100, batch: 1, failAt: 3, wantRan: 3, wantNextBatch: 1},
		"it was enough before it began":       {actions: 100, batch: 1, enoughAfter: -1, wantRan: 1, wantNextBatch: 2},
		"it was enough after the third":       {actions: 100, batch: 1, enoughAfter: 3, wantRan: 3, wantNextBatch: 4},
		"nothing to do":                       {batch: 4, wantNextBatch: 4},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var ran atomic.Int64
			enough := func() bool {
				return tc.enoughAfter < 0 || tc.enoughAfter > 0 && ran.Load() >= tc.enoughAfter
			}
			results, next := runSlowly(t.Context(), make([]lifecycle.Action, tc.actions), tc.batch, 8, enough,
				func(context.Context, lifecycle.Action) actionResult {
					if ran.Add(1) == tc.failAt {
						return actionResult{err: errors.New("refused")}
					}
					return actionResult{}
				})
			if int64(len(results)) != ran.Load() {
				t.Errorf("%d results of %d actions", len(results), ran.Load())
			}
			if len(results) != tc.wantRan || next != tc.wantNextBatch {
				t.Errorf("%d actions ran and the next batch is %d, want %d and %d", len(results), next, tc.wantRan, tc.wantNextBatch)
			}
			failed := slices.ContainsFunc(results, func(r actionResult) bool { return r.err != nil })
			if failed != (tc.failAt > 0) {
				t.Errorf("an error is among the results: %t", failed)
			}
		})
	}
}

// TestALargeFrameworkDoesNotKeepAWorker lets every creation of a Pod take time: a
// sync ends soon all the same, and the next ones go on where it stopped.
func TestALargeFrameworkDoesNotKeepAWorker(t *testing.T) {
	const tasks, each, limit = 1000, 10 * time.Millisecond, time.Second
	w := newWorld(t, framework(tasks))
	created := 0
	w.show = func(pod *corev1.Pod, gone bool) {
		created++
		w.clock.SetTime(w.clock.Now().Add(each))
	}
	syncs := 0
	for ; created < tasks && syncs < tasks; syncs++ {
		w.clock.SetTime(w.clock.Now().Add(each))
		begun := w.clock.Now()
		if err := w.sync(); err != nil {
			t.Fatal(err)
		}
		if took := w.clock.Since(begun); took > limit {
			t.Fatalf("a sync took %v and created up to Pod %d, want at most %v", took, created, limit)
		}
		if created > 0 && created < tasks && w.controller.queue.Len() == 0 {
			t.Fatalf("the Framework does not wait for its turn after %d of %d Pods", created, tasks)
		}
	}
	if created != tasks {
		t.Errorf("%d Pods were created in %d syncs, want %d", created, syncs, tasks)
	}
	w.clock.SetTime(w.clock.Now().Add(time.Second))
	if err := w.sync(); err != nil {
		t.Fatal(err)
	}
	uids := map[string]int{}
	for _, pod := range w.podList() {
		uids[string(pod.UID)]++
	}
	want := map[frameworkv1.TaskState]int{frameworkv1.TaskAttemptPreparing: tasks}
	got := map[frameworkv1.TaskState]int{}
	for _, task := range w.controller.records.byKey[key].status.AttemptStatus.TaskRoleStatuses[0].TaskStatuses {
		got[task.State]++
		if uids[string(*task.AttemptStatus.PodUID)] != 1 {
			t.Errorf("task %d has recorded Pod %s, which it has not", task.Index, *task.AttemptStatus.PodUID)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("unexpected states of tasks (-want +got):\n%s", diff)
	}
}
