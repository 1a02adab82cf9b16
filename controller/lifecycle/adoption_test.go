// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"maps"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
)

// crashed is a world whose controller has died after it created the only Pod, and
// before it wrote anything of it.
func crashedWorld(t *testing.T) *world {
	t.Helper()
	w := newWorld(t, framework(role("w", 1)))
	w.writeFrom = PersistSoon
	w.run()
	if w.pods["fw-w-0"] == nil || w.written.AttemptStatus.ConfigMapUID != nil {
		t.Fatalf("want a Pod that no status knows, have %v and %s", w.podNames(), transcript(w.written))
	}
	w.crash()
	return w
}

func TestAdoptionKeepsTheConfigMapAndThePodOfTheAttempt(t *testing.T) {
	w := crashedWorld(t)
	configMap, pod := w.configMap.UID, w.pods["fw-w-0"].UID
	w.writeFrom = PersistLater
	w.run()
	if w.configMap == nil || w.configMap.UID != configMap || w.pods["fw-w-0"] == nil || w.pods["fw-w-0"].UID != pod {
		t.Errorf("a crash has cost the ConfigMap or the Pod")
	}
	if got := w.written.AttemptStatus.TaskRoleStatuses[0].TaskStatuses[0].AttemptStatus.PodUID; !ptr.Equal(got, &pod) {
		t.Errorf("the status has the Pod %v, want %s", got, pod)
	}
}

func TestAdoptionOfOtherPodsIsRefused(t *testing.T) {
	tests := map[string]func(*corev1.Pod){
		"a Pod of another attempt of the task": func(p *corev1.Pod) { p.Annotations[frameworkv1.KeyTaskAttemptID] = "1" },
		"a Pod of another task":                func(p *corev1.Pod) { p.Annotations[frameworkv1.KeyTaskUID] = "other" },
		"a Pod of another role":                func(p *corev1.Pod) { p.Annotations[frameworkv1.KeyTaskRoleUID] = "other" },
		"a Pod that joined a gang":             func(p *corev1.Pod) { p.Labels[schedulingv1alpha1.LabelPodGroup] = "fw-attempt" },
		"a Pod of another owner":               func(p *corev1.Pod) { p.OwnerReferences[0].UID = "other" },
		"a Pod that its owner does not wait for": func(p *corev1.Pod) {
			p.OwnerReferences[0].BlockOwnerDeletion = ptr.To(false)
		},
	}
	for name, change := range tests {
		t.Run(name, func(t *testing.T) {
			w := crashedWorld(t)
			pod := w.pods["fw-w-0"]
			change(pod)
			w.podChanged(pod)
			w.run()
			w.endPod("fw-w-0")
			w.run()
			if again := w.pods["fw-w-0"]; again == nil || again.UID == pod.UID {
				t.Errorf("the task has the Pod %v, want a new one", again)
			}
		})
	}
}

func TestAdoptionOfOtherConfigMapsIsRefused(t *testing.T) {
	tests := map[string]func(*metav1.ObjectMeta){
		"a ConfigMap of another attempt":           func(m *metav1.ObjectMeta) { m.Annotations[frameworkv1.KeyFrameworkAttemptID] = "7" },
		"a ConfigMap that does not wait for Pods":  func(m *metav1.ObjectMeta) { m.Finalizers = nil },
		"a ConfigMap that its owner does not mind": func(m *metav1.ObjectMeta) { m.OwnerReferences[0].BlockOwnerDeletion = nil },
	}
	for name, change := range tests {
		t.Run(name, func(t *testing.T) {
			w := crashedWorld(t)
			before := w.configMap
			change(before)
			w.configMapChanged()
			w.run()
			w.endPod("fw-w-0")
			w.collectGarbage()
			w.run()
			w.endPod("fw-w-0")
			w.collectGarbage()
			w.run()
			if w.configMap == nil || w.configMap.UID == before.UID {
				t.Errorf("the attempt has the ConfigMap %v, want a new one", w.configMap)
			}
		})
	}
}

func TestAdoptedPodHasRunSinceItSaysSo(t *testing.T) {
	w := crashedWorld(t)
	began := metav1.NewTime(w.now.Add(3 * time.Second))
	w.now = w.now.Add(time.Hour)
	w.pods["fw-w-0"].Status.StartTime = &began
	w.setPhase("fw-w-0", corev1.PodRunning, 0)
	w.writeFrom = PersistLater
	w.run()
	got := w.written.AttemptStatus.TaskRoleStatuses[0].TaskStatuses[0].AttemptStatus.RunTime
	if got == nil || !got.Equal(&began) {
		t.Errorf("the task has run since %v, want %v", got, began)
	}
}

// TestAStopWaitsForLeftoverPods without asking for anything again and again.
func TestAStopWaitsForLeftoverPods(t *testing.T) {
	f := framework(role("w", 1))
	f.Spec.ExecutionType = frameworkv1.ExecutionCreate
	w := newWorld(t, f)
	w.run()
	left := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Name: "fw-v-0", UID: "left", OwnerReferences: []metav1.OwnerReference{{UID: "earlier", Controller: ptr.To(true)}},
	}}
	left.Spec.NodeName = "node"
	w.pods[left.Name] = left
	w.deletePod(left.Name, 30)
	w.stop()
	w.run()
	if got, want := transcript(w.written), "F#0 AttemptCreationPending, w-0#0 AttemptCreationPending"; got != want {
		t.Errorf("while the Pod is there: got %s, want %s", got, want)
	}
	w.endPod(left.Name)
	w.run()
	if got, want := transcript(w.written), "F#0 Completed(-210), w-0#0 Completed(-220)"; got != want {
		t.Errorf("once it is gone: got %s, want %s", got, want)
	}
}

// TestNothingIsDeletedForAnOldStatus: the Pods of a later attempt look like leftovers to
// a controller that begins with the status of an earlier one.
func TestNothingIsDeletedForAnOldStatus(t *testing.T) {
	f := framework(role("w", 2))
	f.Spec.RetryPolicy.MaxRetryCount = frameworkv1.AlwaysRetry
	w := newWorld(t, f)
	var first *frameworkv1.FrameworkStatus
	w.onWrite = func(_, after *frameworkv1.FrameworkStatus) {
		if first == nil {
			first = after
		}
	}
	w.run()
	w.runPods()
	w.retryAttempt()
	w.now = w.now.Add(time.Minute)
	w.run()
	w.runPods()
	if w.written.AttemptStatus.ID == 0 || len(w.pods) != 2 {
		t.Fatalf("want a second attempt with two Pods, have %s with %v", transcript(w.written), w.podNames())
	}
	w.controller = w.remembered(first)
	w.onAction = func(action Action) {
		if action.Does() != CheckStatus {
			t.Errorf("%s for an old status", action)
		}
	}
	w.run()
}

// TestADeposedLeaderDeletesNothingOfItsSuccessor: its status was the stored one when it
// led, and what its successor has created looks like leftovers.
func TestADeposedLeaderDeletesNothingOfItsSuccessor(t *testing.T) {
	f := framework(role("w", 2))
	f.Spec.RetryPolicy.MaxRetryCount = frameworkv1.AlwaysRetry
	f.Spec.TaskRoles[0].Task.RetryPolicy.MaxRetryCount = frameworkv1.AlwaysRetry
	successors := map[string]func(w *world){
		"another attempt of a task": func(w *world) {
			w.setPhase("fw-w-1", corev1.PodFailed, 210)
			w.run()
			w.endPod("fw-w-1")
		},
		"another attempt of the Framework": (*world).retryAttempt,
		"more tasks":                       func(w *world) { w.edit(func(f *frameworkv1.Framework) { f.Spec.TaskRoles[0].TaskNumber = 3 }) },
	}
	for name, goOn := range successors {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, f.DeepCopy())
			w.framework.UID = w.NewUID()
			w.run()
			w.runPods()
			deposed, seen, before := w.controller, w.framework, maps.Clone(w.pods)
			w.controller = w.remembered(w.written)
			goOn(w)
			w.run()
			w.now = w.now.Add(time.Hour)
			w.run()
			w.runPods()
			if len(w.pods) < 2 || maps.Equal(before, w.pods) {
				t.Fatalf("want new Pods, have %v with %s", w.podNames(), transcript(w.written))
			}
			w.controller, w.cache.framework = deposed, seen
			w.writeFrom = PersistNow + 1 // Its writes don't get through.
			w.onAction = func(action Action) {
				if action.Does() != CheckStatus && action.Does() != LookForPod && action.Does() != LookForConfigMap {
					t.Errorf("%s for an old status", action)
				}
			}
			for range 5 {
				if _, end := w.round(); end == outdated {
					return
				}
			}
		})
	}
}

// TestADeposedLeaderForcesNoPodOfItsSuccessor: the node has all the time that the stored
// status gives it to end the Pod.
func TestADeposedLeaderForcesNoPodOfItsSuccessor(t *testing.T) {
	f := framework(role("w", 1))
	f.Spec.TaskRoles[0].Task.PodGracefulDeletionTimeoutSec = ptr.To[int64](0)
	w := newWorld(t, f)
	w.run()
	w.runPods()
	deposed, seen := w.controller, w.framework
	w.controller = w.remembered(w.written)
	w.edit(func(f *frameworkv1.Framework) {
		f.Spec.TaskRoles[0].TaskNumber = 2
		f.Spec.TaskRoles[0].Task.PodGracefulDeletionTimeoutSec = nil
	})
	w.run()
	w.runPods()
	w.deletePod("fw-w-1", 30)
	w.controller, w.cache.framework = deposed, seen
	wantOutdated(t, w)
}

// wantOutdated holds that the next round finds the status outdated, and does nothing else.
func wantOutdated(t *testing.T, w *world) {
	t.Helper()
	w.onAction = func(action Action) {
		if action.Does() != CheckStatus {
			t.Errorf("%s for an old status", action)
		}
	}
	if _, end := w.round(); end != outdated {
		t.Errorf("the round ends with %d, want that it finds the status outdated", end)
	}
}

// TestNothingIsCreatedForAnOldStatus by a controller that begins with it: nothing is left
// that could tell it that the Framework is over.
func TestNothingIsCreatedForAnOldStatus(t *testing.T) {
	w := newWorld(t, framework(role("w", 1)))
	var first *frameworkv1.FrameworkStatus
	w.onWrite = func(_, after *frameworkv1.FrameworkStatus) {
		if first == nil {
			first = after
		}
	}
	w.run()
	w.setPhase("fw-w-0", corev1.PodSucceeded, 0)
	for range 3 {
		w.run()
		w.endPod("fw-w-0")
		w.collectGarbage()
	}
	w.run()
	if w.written.State != frameworkv1.FrameworkCompleted || w.configMap != nil {
		t.Fatalf("want a Completed Framework of which nothing is left, have %s", transcript(w.written))
	}
	w.controller = w.remembered(first)
	wantOutdated(t, w)
}

// TestWhatIsThereAfterTheEndIsDeleted: a controller that does not lead any more has
// created it, of which the status of the leader can't know.
func TestWhatIsThereAfterTheEndIsDeleted(t *testing.T) {
	w := newWorld(t, framework(role("w", 1)))
	w.run()
	pod, configMap := w.pods["fw-w-0"].DeepCopy(), w.configMap.DeepCopy()
	w.runPods()
	w.stop()
	for range 3 {
		w.run()
		w.endPod("fw-w-0")
		w.collectGarbage()
	}
	w.run()
	if w.written.State != frameworkv1.FrameworkCompleted || len(w.pods) > 0 || w.configMap != nil {
		t.Fatalf("want a Completed Framework of which nothing is left, have %s, %v and %v", transcript(w.written), w.podNames(), w.configMap)
	}
	asked := 0
	w.onAction = func(Action) { asked++ }
	w.run()
	if asked > 0 {
		t.Errorf("%d requests while nothing is left, want none", asked)
	}
	pod.UID, configMap.UID = "late", "late"
	pod.Spec.NodeName = "node"
	w.pods["fw-w-0"], w.configMap = pod, configMap
	w.podChanged(pod)
	w.configMapChanged()
	w.run()
	if pod.DeletionTimestamp == nil || configMap.DeletionTimestamp == nil {
		t.Errorf("the Pod is being deleted: %t, the ConfigMap: %t, want both", pod.DeletionTimestamp != nil, configMap.DeletionTimestamp != nil)
	}
}

// TestAnAttemptDoesNotEndBeforeItsLeftovers: a former leader has put on record, late, the
// ConfigMap that somebody had deleted, after its successor had created another for the
// same attempt.
func TestAnAttemptDoesNotEndBeforeItsLeftovers(t *testing.T) {
	w := newWorld(t, framework(role("w", 1)))
	w.run()
	w.runPods()
	pod, configMap := w.pods["fw-w-0"].DeepCopy(), w.configMap.DeepCopy()
	pod.UID, configMap.UID = "second", "second"
	pod.OwnerReferences[0].UID = configMap.UID
	w.pods["fw-w-0"], w.configMap = pod, configMap
	w.podChanged(pod)
	w.configMapChanged()
	w.run()
	if pod.DeletionTimestamp == nil || configMap.DeletionTimestamp == nil {
		t.Errorf("the Pod is being deleted: %t, the ConfigMap: %t, want both", pod.DeletionTimestamp != nil, configMap.DeletionTimestamp != nil)
	}
	if w.written.State != frameworkv1.FrameworkAttemptDeleting {
		t.Errorf("the attempt is %s while a Pod of it is there, want AttemptDeleting", w.written.State)
	}
	w.endPod("fw-w-0")
	w.collectGarbage()
	w.run()
	if w.written.State == frameworkv1.FrameworkAttemptDeleting {
		t.Error("the attempt is still AttemptDeleting although nothing is left of it")
	}
}

// TestATaskAttemptDoesNotEndBeforeItsLeftover: a former leader has put on record, late, the
// Pod that somebody had deleted, after its successor had created another for the same
// attempt of the task.
func TestATaskAttemptDoesNotEndBeforeItsLeftover(t *testing.T) {
	states := map[frameworkv1.TaskState]func(*world){
		frameworkv1.TaskAttemptPreparing:         func(*world) {},
		frameworkv1.TaskAttemptRunning:           (*world).runPods,
		frameworkv1.TaskAttemptCreationRequested: (*world).putCreationOnRecord,
	}
	for state, reach := range states {
		t.Run(string(state), func(t *testing.T) {
			w := newWorld(t, framework(role("w", 1)))
			w.run()
			reach(w)
			task := func() *frameworkv1.TaskStatus { return w.written.AttemptStatus.TaskRoleStatuses[0].TaskStatuses[0] }
			if task().State != state {
				t.Fatalf("the task is %s, want %s", task().State, state)
			}
			second := w.pods["fw-w-0"].DeepCopy()
			second.UID, second.Spec.NodeName = "second", "node"
			w.pods["fw-w-0"] = second
			w.podChanged(second)
			w.run()
			if second.DeletionTimestamp == nil {
				t.Error("the second Pod is no leftover")
			}
			w.now = w.now.Add(6 * time.Minute) // By now, it is known that the first is gone.
			w.run()
			if task().State != state {
				t.Errorf("the task is %s while a Pod of it is there, want %s", task().State, state)
			}
			w.endPod("fw-w-0")
			w.run()
			if task().State == state {
				t.Errorf("the task is still %s although nothing is left of its Pods", state)
			}
		})
	}
}

// putCreationOnRecord has a controller begin that knows of the only Pod no more than that
// it was created.
func (w *world) putCreationOnRecord() {
	w.t.Helper()
	status := w.readBack(w.written)
	task := status.AttemptStatus.TaskRoleStatuses[0].TaskStatuses[0]
	task.State = frameworkv1.TaskAttemptCreationRequested
	w.written = status
	w.crash()
}

// TestAPodThatAnotherControllerWouldAdoptIsNoLeftover before it is persisted that its
// task has another: who leads by now may have created it.
func TestAPodThatAnotherControllerWouldAdoptIsNoLeftover(t *testing.T) {
	w := crashedWorld(t)
	w.run() // It adopts the Pod, and has not written it.
	first := w.pods["fw-w-0"]
	second := first.DeepCopy()
	second.UID = "second"
	w.pods["fw-w-0"] = second
	w.podChanged(second)
	w.writeFrom = PersistNow + 1
	w.onAction = func(action Action) {
		if action.Does() == DeletePod {
			t.Errorf("%s while no status says that the task has another", action)
		}
	}
	w.run()
	w.onAction = func(Action) {}
	w.writeFrom = PersistSoon
	w.run()
	if w.pods["fw-w-0"] == second && second.DeletionTimestamp == nil {
		t.Errorf("the second Pod is there, although the task has the first by what is persisted: %s", transcript(w.written))
	}
}

// TestAnAttemptThatEndsUnseenWaitsForItsPods: its ConfigMap is on record, its Pods are
// not, and somebody has deleted the ConfigMap in the background.
func TestAnAttemptThatEndsUnseenWaitsForItsPods(t *testing.T) {
	w := newWorld(t, framework(role("w", 1)))
	var requested *frameworkv1.FrameworkStatus
	w.onWrite = func(_, after *frameworkv1.FrameworkStatus) {
		if after.State == frameworkv1.FrameworkAttemptCreationRequested {
			requested = after
		}
	}
	w.prompt = false
	w.run()
	w.deliverAll()
	w.prompt = true
	w.run()
	if requested == nil || w.pods["fw-w-0"] == nil {
		t.Fatalf("want a ConfigMap on record and a Pod, have %v and %v", requested, w.podNames())
	}
	w.pods["fw-w-0"].Spec.NodeName = "node"
	w.podChanged(w.pods["fw-w-0"])
	w.written = w.readBack(requested)
	w.deleteConfigMapInBackground()
	w.crash()
	w.stop()
	w.onWrite = func(_, after *frameworkv1.FrameworkStatus) {
		over := after.State == frameworkv1.FrameworkAttemptCompleted || after.State == frameworkv1.FrameworkCompleted
		if over && w.pods["fw-w-0"] != nil {
			t.Errorf("%s while the Pod is there", transcript(after))
		}
	}
	w.run()
	w.endPod("fw-w-0")
	w.run()
	if w.written.State != frameworkv1.FrameworkCompleted {
		t.Errorf("%s once the Pod is gone, want it Completed", transcript(w.written))
	}
}

// TestAnOlderPodOfTheNameIsNotTheTask: a cache may still show the Pod of an attempt that
// is over.
func TestAnOlderPodOfTheNameIsNotTheTasks(t *testing.T) {
	w := newWorld(t, framework(role("w", 1)))
	w.run()
	w.runPods()
	older := w.pods["fw-w-0"].DeepCopy()
	older.UID, older.Status.Phase = "older", corev1.PodFailed
	w.cache.pods[older.Name] = older
	w.run()
	if task := w.written.AttemptStatus.TaskRoleStatuses[0].TaskStatuses[0]; task.AttemptStatus.CompletionStatus != nil {
		t.Errorf("the task has ended with %d, by a Pod that is not its own", task.AttemptStatus.CompletionStatus.Code)
	}
}

// TestAnAttemptWhoseConfigMapIsGoneEndsOnlyAfterThePodsThatNobodyHasSeenYet: the controller has
// read the status anew right after it created one, and its cache is behind.
func TestAnAttemptWhoseConfigMapIsGoneEndsOnlyAfterThePodsThatNobodyHasSeenYet(t *testing.T) {
	w := newWorld(t, framework(role("w", 1)))
	w.refuse = func(*corev1.Pod) error { return apierrors.NewTooManyRequestsError("later") }
	w.run()
	if got, want := transcript(w.written), "F#0 AttemptPreparing blocked=CreationRefused, w-0#0 AttemptCreationPending"; got != want {
		t.Fatalf("before the Pod is created: got %s, want %s", got, want)
	}
	w.refuse, w.writeFrom, w.prompt = nil, PersistNow, false
	w.run()
	if w.pods["fw-w-0"] == nil {
		t.Fatal("there is no Pod")
	}
	w.controller, w.writeFrom = nil, PersistLater
	w.deleteConfigMapInBackground()
	w.deliver(configMapKind, 1)
	w.run()
	if w.written.State != frameworkv1.FrameworkAttemptDeleting || w.pods["fw-w-0"].DeletionTimestamp == nil {
		t.Errorf("while the Pod is there: %s, and it is being deleted since %v", transcript(w.written), w.pods["fw-w-0"].DeletionTimestamp)
	}
	w.endPod("fw-w-0")
	w.deliverAll()
	w.run()
	if got := w.written.State; got != frameworkv1.FrameworkCompleted {
		t.Errorf("once it is gone: %s", transcript(w.written))
	}
}

// TestATaskWhosePodIsGoneWaitsForAnotherOneOfTheSameAttempt: the answers to both creations were
// lost, and the cache has shown only the first Pod.
func TestATaskWhosePodIsGoneWaitsForAnotherOneOfTheSameAttempt(t *testing.T) {
	w := newWorld(t, framework(role("w", 2)))
	w.run()
	w.prompt = false
	second := w.pods["fw-w-0"].DeepCopy()
	second.UID = "second"
	second.Spec.NodeName = "node"
	w.pods["fw-w-0"] = second
	delete(w.cache.pods, "fw-w-0")
	w.run()
	if got, want := transcript(w.written), "F#0 AttemptPreparing, w-0#0 AttemptPreparing, w-1#0 AttemptPreparing"; got != want {
		t.Errorf("while it is there: got %s, want %s", got, want)
	}
	if second.DeletionTimestamp == nil {
		t.Error("it is not deleted")
	}
	w.endPod("fw-w-0")
	w.deliverAll()
	w.run()
	if got := w.written.AttemptStatus.TaskRoleStatuses[0].TaskStatuses[0].AttemptStatus.CompletionStatus; got == nil || got.Code != frameworkv1.CodePodExternalDeleted {
		t.Errorf("once it is gone, the task's attempt has ended with %v, want %d", got, frameworkv1.CodePodExternalDeleted)
	}
}
