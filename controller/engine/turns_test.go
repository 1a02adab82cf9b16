// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	"github.com/lockstep-k8s/lockstep/controller/engine"
	"github.com/lockstep-k8s/lockstep/controller/pacing"
	"github.com/lockstep-k8s/lockstep/internal/testing/apiserver"
)

// The tests of this file have the engine sync a Framework, and look at what one sync does.

// TestALargeFrameworkDoesNotKeepAWorker lets every creation of a Pod take time: a
// sync ends soon all the same, and the next ones go on where it stopped.
func TestALargeFrameworkDoesNotKeepAWorker(t *testing.T) {
	const tasks, each, limit = 1000, 10 * time.Millisecond, time.Second
	inWorld(t, framework(tasks), func(t *testing.T, w *world) {
		w.slowCreations(each)
		syncs := 0
		for ; w.created() < tasks && syncs < tasks; syncs++ {
			time.Sleep(each)
			w.sync()
			created := w.created()
			if created > 0 && created < tasks && w.engine.Queued() == 0 {
				t.Fatalf("the Framework does not wait for its turn after %d of %d Pods", created, tasks)
			}
			if w.took > limit {
				t.Fatalf("a sync took %v and created up to Pod %d, want at most %v", w.took, created, limit)
			}
		}
		if created := w.created(); created != tasks {
			t.Errorf("%d Pods were created in %d syncs, want %d", created, syncs, tasks)
		}
		time.Sleep(time.Second)
		w.sync()
		uids := map[string]int{}
		for _, pod := range apiserver.All[corev1.Pod](w.server, namespace) {
			uids[string(pod.UID)]++
		}
		want := map[frameworkv1.TaskState]int{frameworkv1.TaskAttemptPreparing: tasks}
		got := map[frameworkv1.TaskState]int{}
		for _, task := range w.status().AttemptStatus.TaskRoleStatuses[0].TaskStatuses {
			got[task.State]++
			if uids[string(*task.AttemptStatus.PodUID)] != 1 {
				t.Errorf("task %d has recorded Pod %s, which it has not", task.Index, *task.AttemptStatus.PodUID)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("unexpected states of tasks (-want +got):\n%s", diff)
		}
	})
}

// TestNoAPIServerIsSoSlowThatASyncSeemsToHang: each request takes almost as long as it may, others change
// the Framework before each write of its status, and the status is too large for its first form.
func TestNoAPIServerIsSoSlowThatASyncSeemsToHang(t *testing.T) {
	const each = pacing.RequestTime - time.Millisecond
	inWorld(t, framework(3), func(t *testing.T, w *world) {
		time.Sleep(pacing.EventDelay)
		synctest.Wait()
		writes := 0
		w.server.SetHook(func(r *apiserver.Request) apiserver.Fault {
			slow := apiserver.Fault{Before: each}
			if r.Resource != "frameworks" || r.Subresource != "status" {
				return slow
			}
			writes++
			if writes == engine.MaxConflicts { // After conflicts, as late as it may be.
				slow.Refusal = apierrors.NewRequestEntityTooLargeError("etcdserver: request is too large")
				return slow
			}
			apiserver.Change(w.server, namespace, "fw", func(f *frameworkv1.Framework) {
				f.Finalizers = []string{fmt.Sprintf("example.com/others-%d", writes)}
			})
			return slow
		})
		w.sync()
		if want := (4*engine.MaxConflicts - 1) * each; w.took < want {
			t.Errorf("the sync took %v with %d writes, want at least %v: the test has lost its worst case", w.took, writes, want)
		}
		// After the writes there may be a look, and a batch each of creations and of the rest.
		if took := w.took + pacing.LookTime + 2*pacing.RequestTime; took >= pacing.StuckAfter {
			t.Errorf("the sync took %v, and with a look and two batches %v: after %v it is taken for one that hangs", w.took, took, pacing.StuckAfter)
		}
		w.server.SetHook(nil)
	})
}

// TestAChangeIsNoticedWhileMuchIsLeftToDo: while thousands of Pods are to be created,
// not every sync looks at all tasks anew, but each looks at the Framework.
func TestAChangeIsNoticedWhileMuchIsLeftToDo(t *testing.T) {
	const tasks, each = 10_000, 4 * time.Millisecond
	inWorld(t, framework(tasks), func(t *testing.T, w *world) {
		w.slowCreations(each)
		// A plan that is made anew takes in what was created.
		sync := func() *frameworkv1.FrameworkStatus {
			t.Helper()
			w.sync()
			return w.status()
		}
		for range 2 { // The first ends with the ConfigMap, which is not yet seen.
			time.Sleep(time.Second)
			sync()
		}
		before, decided := w.created(), sync()
		if again := sync(); w.created() <= before || again != decided {
			t.Errorf("a sync created %d Pods, and decided anew: %v, want some, as decided before", w.created()-before, again != decided)
		}
		const look = tasks * 100 * time.Microsecond
		time.Sleep(look)
		if again := sync(); again == decided {
			t.Errorf("nothing was decided anew for %v", look)
		}
		before = w.created()
		apiserver.Change(w.server, namespace, "fw", func(f *frameworkv1.Framework) { f.Spec.ExecutionType = frameworkv1.ExecutionStop })
		for range 3 {
			sync()
		}
		if created := w.created(); created > before {
			t.Errorf("%d Pods were created after the user had stopped the Framework", created-before)
		}
	})
}

// TestASmallFrameworkStartsInOneTurn: it would wait behind all others before each
// next Pod.
func TestASmallFrameworkStartsInOneTurn(t *testing.T) {
	const tasks, each = 4, 300 * time.Millisecond
	inWorld(t, framework(tasks), func(t *testing.T, w *world) {
		w.slowCreations(each)
		w.sync() // It ends with the ConfigMap, which is not yet seen.
		time.Sleep(each)
		w.sync()
		if created := w.created(); created != tasks {
			t.Errorf("%d Pods were created, want %d", created, tasks)
		}
	})
}
