// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/client/informers/externalversions"
	"github.com/lockstep-k8s/lockstep/controller/pacing"
	"github.com/lockstep-k8s/lockstep/internal/informing"
	"github.com/lockstep-k8s/lockstep/internal/testing/apiserver"
)

type groups = []*schedulingv1alpha1.PodGroup

// TestLifeOfAGroup follows a group that a user made.
func TestLifeOfAGroup(t *testing.T) {
	inWorld(t, groups{newGroup("g", 2)}, func(w *world) {
		pods := members("g", 3)
		steps := []struct {
			name string
			do   func()
			want schedulingv1alpha1.PodGroupStatus
		}{
			{"no Pods yet", func() {}, schedulingv1alpha1.PodGroupStatus{Phase: "Pending"}},
			{"three wait", func() { w.create(pods...) },
				schedulingv1alpha1.PodGroupStatus{Phase: "Pending", Members: 3}},
			{"two are placed", func() { w.update(in(corev1.PodPending, pods[:2]...)...) },
				schedulingv1alpha1.PodGroupStatus{Phase: "Pending", Members: 3, Scheduled: 2}},
			{"two run", func() { w.update(in(corev1.PodRunning, pods[:2]...)...) },
				schedulingv1alpha1.PodGroupStatus{Phase: "Running", Members: 3, Scheduled: 2, Running: 2}},
			{"one is lost", func() { w.remove(pods[0]) },
				schedulingv1alpha1.PodGroupStatus{Phase: "Unknown", Members: 2, Scheduled: 1, Running: 1}},
			{"another replaces it", func() { w.update(in(corev1.PodRunning, pods[2])...) },
				schedulingv1alpha1.PodGroupStatus{Phase: "Running", Members: 2, Scheduled: 2, Running: 2}},
			{"one succeeds", func() { w.update(in(corev1.PodSucceeded, pods[1])...) },
				schedulingv1alpha1.PodGroupStatus{Phase: "Running", Members: 2, Scheduled: 1, Running: 1, Succeeded: 1}},
			{"the other fails", func() { w.update(in(corev1.PodFailed, pods[2])...) },
				schedulingv1alpha1.PodGroupStatus{Phase: "Completed", Members: 2, Succeeded: 1, Failed: 1}},
			{"both are cleaned up", func() { w.remove(pods[1:]...) },
				schedulingv1alpha1.PodGroupStatus{Phase: "Completed"}},
			{"one starts again", func() { w.create(pods[0]) },
				schedulingv1alpha1.PodGroupStatus{Phase: "Pending", Members: 1}},
		}
		for _, step := range steps {
			step.do()
			w.settle()
			if diff := cmp.Diff(step.want, w.group("g").Status); diff != "" {
				t.Fatalf("%s: status (-want,+got):\n%s", step.name, diff)
			}
		}
	})
}

func TestPhasesAreWrittenOneLegalStepAtATime(t *testing.T) {
	inWorld(t, groups{newGroup("g", 2)}, func(w *world) {
		pods := in(corev1.PodRunning, members("g", 2)...)
		w.create(pods...)
		w.settle()
		w.remove(pods...)
		w.settle()
		if diff := cmp.Diff([]string{"Pending", "Running", "Unknown", "Pending"}, w.phases()); diff != "" {
			t.Errorf("phases written (-want,+got):\n%s", diff)
		}
	})
}

func TestConditionsAreLeftToTheScheduler(t *testing.T) {
	group := newGroup("g", 1)
	group.Status.Conditions = []schedulingv1alpha1.PodGroupCondition{{
		Type: schedulingv1alpha1.ConditionScheduled, Status: metav1.ConditionTrue, Reason: schedulingv1alpha1.ReasonScheduled,
	}}
	inWorld(t, groups{group}, func(w *world) {
		w.create(in(corev1.PodRunning, members("g", 1)...)...)
		w.settle()
		if diff := cmp.Diff(group.Status.Conditions, w.group("g").Status.Conditions); diff != "" {
			t.Errorf("conditions (-want,+got):\n%s", diff)
		}
		for _, write := range w.written {
			if _, ok := write["conditions"]; ok {
				t.Errorf("wrote conditions: %v", write)
			}
		}
	})
}

// TestManyEventsAreFewWrites sends 1000 Pod events a second for three seconds. All
// the while the status is at most a second behind what the Pods show.
func TestManyEventsAreFewWrites(t *testing.T) {
	const size, perSecond = 1000, 1000
	// shown is the status after a number of events: all Pods are created one by one,
	// then placed, then running.
	shown := func(events int) schedulingv1alpha1.PodGroupStatus {
		count := func(before int) int32 { return int32(min(size, max(0, events-before))) }
		return schedulingv1alpha1.PodGroupStatus{Members: count(0), Scheduled: count(size), Running: count(2 * size)}
	}
	between := func(low, is, high int32) bool { return low <= is && is <= high }
	inWorld(t, groups{newGroup("g", size)}, func(w *world) {
		pods := members("g", size)
		events := 0
		start := time.Now()
		for _, change := range []func(*corev1.Pod){
			func(pod *corev1.Pod) { w.create(pod) },
			func(pod *corev1.Pod) { w.update(in(corev1.PodPending, pod)...) },
			func(pod *corev1.Pod) { w.update(in(corev1.PodRunning, pod)...) },
		} {
			for _, pod := range pods {
				change(pod)
				time.Sleep(time.Second / perSecond)
				events++
				is, late, now := w.group("g").Status, shown(events-perSecond), shown(events)
				if !between(late.Members, is.Members, now.Members) || !between(late.Scheduled, is.Scheduled, now.Scheduled) ||
					!between(late.Running, is.Running, now.Running) {
					t.Errorf("after %v the status is %+v, want between %+v, as it was a second ago, and %+v", time.Since(start), is, late, now)
					return
				}
			}
		}
		elapsed := time.Since(start)

		time.Sleep(window)
		synctest.Wait()
		want := schedulingv1alpha1.PodGroupStatus{Phase: "Running", Members: size, Scheduled: size, Running: size}
		if diff := cmp.Diff(want, w.group("g").Status); diff != "" {
			t.Errorf("status one window after the last event (-want,+got):\n%s", diff)
		}
		if n, most := len(w.written), int(elapsed/window)+2; n > most {
			t.Errorf("writes: got %d, want at most %d, one a window", n, most)
		}
	})
}

func TestNothingNewIsNotWritten(t *testing.T) {
	inWorld(t, groups{newGroup("g", 1)}, func(w *world) {
		pods := in(corev1.PodRunning, members("g", 1)...)
		w.create(pods...)
		w.settle()
		before := len(w.written)

		pods[0].Annotations = map[string]string{"note": "new"}
		pods[0].Status.PodIP = "10.0.0.1"
		w.update(pods...)
		w.changeGroup("g", func(group *schedulingv1alpha1.PodGroup) { group.Labels = map[string]string{"team": "a"} })
		w.settle()
		if got := w.written[before:]; len(got) != 0 {
			t.Errorf("wrote what was there already: %v", got)
		}
	})
}

func TestANewMinMemberChangesThePhase(t *testing.T) {
	inWorld(t, groups{newGroup("g", 1)}, func(w *world) {
		w.create(in(corev1.PodRunning, members("g", 1)...)...)
		w.settle()
		w.changeGroup("g", func(group *schedulingv1alpha1.PodGroup) { group.Spec.MinMember = 2 })
		w.settle()
		if got := w.group("g").Status.Phase; got != schedulingv1alpha1.PodGroupUnknown {
			t.Errorf("phase: got %s, want Unknown: one of two runs", got)
		}
	})
}

func TestAPodThatChangesGroupCountsInTheNewOne(t *testing.T) {
	inWorld(t, groups{newGroup("a", 1), newGroup("b", 1)}, func(w *world) {
		pods := in(corev1.PodRunning, members("a", 1)...)
		w.create(pods...)
		w.settle()
		pods[0].Labels = map[string]string{schedulingv1alpha1.LabelPodGroup: "b"}
		w.update(pods...)
		w.settle()
		got := map[string]int32{"a": w.group("a").Status.Running, "b": w.group("b").Status.Running}
		if diff := cmp.Diff(map[string]int32{"a": 0, "b": 1}, got); diff != "" {
			t.Errorf("running (-want,+got):\n%s", diff)
		}
	})
}

func TestPodsOfOtherNamespacesAreNoMembers(t *testing.T) {
	inWorld(t, groups{newGroup("g", 1)}, func(w *world) {
		pods := in(corev1.PodRunning, members("g", 1)...)
		pods[0].Namespace = "other"
		w.create(pods...)
		w.settle()
		if got := w.group("g").Status.Members; got != 0 {
			t.Errorf("members: got %d, want 0: the Pod is in another namespace", got)
		}
	})
}

func TestARecreatedGroupStartsAnew(t *testing.T) {
	inWorld(t, groups{newGroup("g", 2)}, func(w *world) {
		pods := in(corev1.PodRunning, members("g", 2)...)
		w.create(pods...)
		w.settle()
		apiserver.Remove[schedulingv1alpha1.PodGroup](w.server, testNamespace, "g")
		w.remove(pods[0])
		w.settle()
		again := newGroup("g", 2)
		again.UID = "another-uid"
		apiserver.Add(w.server, again)
		w.settle()
		want := schedulingv1alpha1.PodGroupStatus{Phase: "Pending", Members: 1, Scheduled: 1, Running: 1}
		if diff := cmp.Diff(want, w.group("g").Status); diff != "" {
			t.Errorf("status of the new group: it never ran (-want,+got):\n%s", diff)
		}
	})
}

func TestAGroupThatIsBeingDeletedIsLeftAlone(t *testing.T) {
	group := newGroup("g", 1)
	group.DeletionTimestamp = &metav1.Time{Time: time.Now()}
	group.Finalizers = []string{"foregroundDeletion"}
	inWorld(t, groups{group}, func(w *world) {
		w.create(in(corev1.PodRunning, members("g", 1)...)...)
		w.settle()
		if got := w.written; len(got) != 0 {
			t.Errorf("wrote %v", got)
		}
	})
}

func TestAFailedWriteIsTriedAgain(t *testing.T) {
	tests := map[string]error{
		"the API server is away":        apierrors.NewServiceUnavailable("away"),
		"the connection broke":          errors.New("connection reset"),
		"the informer is behind by one": apierrors.NewConflict(schedulingv1alpha1.Resource("podgroups"), "g", errors.New("another uid")),
	}
	for name, err := range tests {
		t.Run(name, func(t *testing.T) {
			inWorld(t, groups{newGroup("g", 1)}, func(w *world) {
				w.failWrites(3, err)
				w.create(in(corev1.PodRunning, members("g", 1)...)...)
				time.Sleep(800 * time.Millisecond) // After a back-off of 100, 200 and 400 ms.
				w.settle()
				if got := w.group("g").Status.Phase; got != schedulingv1alpha1.PodGroupRunning {
					t.Errorf("phase after the third retry: got %q, want Running", got)
				}
			})
		})
	}
}

// TestOwnWritesCountBeforeTheInformerShowsThem holds the informer's view of the
// group still: the phase goes on from what was written, not from what is seen.
func TestOwnWritesCountBeforeTheInformerShowsThem(t *testing.T) {
	w := newWorld(t, newGroup("g", 1))
	group := w.group("g")
	lockstep, kube := w.clients()
	still := externalversions.NewSharedInformerFactory(lockstep, 0).Scheduling().V1alpha1().PodGroups()
	c, err := New(lockstep, kube, still, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := still.Informer().GetStore().Add(group); err != nil {
		t.Fatal(err)
	}

	pods := in(corev1.PodRunning, members("g", 1)...)
	key := cache.MetaObjectToName(group)
	for _, view := range [][]*corev1.Pod{nil, pods, nil, nil} {
		if err := c.pods.GetIndexer().Replace(asAny(view), ""); err != nil {
			t.Fatal(err)
		}
		if err := c.sync(t.Context(), key); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{"Pending", "Running", "Unknown", "Pending"}
	if diff := cmp.Diff(want, w.phases()); diff != "" {
		t.Errorf("phases written (-want,+got):\n%s", diff)
	}
}

func asAny(pods []*corev1.Pod) []any {
	objs := make([]any, len(pods))
	for i, pod := range pods {
		objs[i] = pod
	}
	return objs
}

func TestStripKeepsWhatIsCounted(t *testing.T) {
	now := metav1.Now()
	pod := in(corev1.PodRunning, members("g", 1)...)[0]
	pod.Labels[schedulingv1alpha1.LabelRole] = "worker"
	pod.DeletionTimestamp = &now
	pod.OwnerReferences = attempt("this")
	want := pod.DeepCopy()

	pod.OwnerReferences = append([]metav1.OwnerReference{{Kind: "Node", Name: "node-1", UID: "another"}}, pod.OwnerReferences...)
	pod.Labels["app"] = "training"
	pod.Annotations = map[string]string{"large": strings.Repeat("x", 1000)}
	pod.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubelet"}}
	pod.Spec.Containers = []corev1.Container{{Name: "main"}}
	pod.Status.PodIP = "10.0.0.1"
	got, err := strip(pod)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("strip (-want,+got):\n%s", diff)
	}
}

func TestNoWorkersAreRefused(t *testing.T) {
	lockstep, kube := newWorld(t).clients()
	c, err := New(lockstep, kube, externalversions.NewSharedInformerFactory(lockstep, 0).Scheduling().V1alpha1().PodGroups(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Run(t.Context(), 0); err == nil || !strings.Contains(err.Error(), "needs at least 1") {
		t.Errorf("got error %v", err)
	}
}

// TestASlowNamespaceHoldsUpNoGroupOfOthers: a webhook takes half a minute for each group
// of one namespace.
func TestASlowNamespaceHoldsUpNoGroupOfOthers(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		w.server.SetHook(func(r *apiserver.Request) apiserver.Fault {
			if r.Namespace == "slow" {
				return apiserver.Fault{Before: 30 * time.Second}
			}
			return apiserver.Fault{}
		})
		for i := range 100 {
			group := newGroup(fmt.Sprint("g-", i), 1)
			group.Namespace = "slow"
			apiserver.Add(w.server, group)
		}
		time.Sleep(2 * time.Second)
		apiserver.Add(w.server, newGroup("g", 1))
		time.Sleep(window + 20*pacing.Patience)
		synctest.Wait()
		if got := w.group("g").Status.Phase; got != schedulingv1alpha1.PodGroupPending {
			t.Errorf("the group of the other namespace has the phase %q, want Pending", got)
		}
	})
}

func TestEventsDoNotHastenARefusedWrite(t *testing.T) {
	inWorld(t, groups{newGroup("g", 1)}, func(w *world) {
		pods := members("g", 1)
		w.create(pods...)
		w.settle()
		refused := 0
		w.server.SetHook(func(r *apiserver.Request) apiserver.Fault {
			if r.Subresource != "status" {
				return apiserver.Fault{}
			}
			refused++
			return apiserver.Fault{Refusal: apiserver.Unavailable()}
		})
		for i := range 10 * 60 {
			phase := []corev1.PodPhase{corev1.PodRunning, corev1.PodPending}[i%2]
			w.update(in(phase, pods...)...)
			time.Sleep(time.Second)
		}
		if refused < 10 || refused > 40 {
			t.Errorf("%d writes were tried in ten minutes in which all fail, want between 10 and 40", refused)
		}
	})
}

// TestALateWriteUndoesNothing: somebody else has written the status meanwhile.
func TestALateWriteUndoesNothing(t *testing.T) {
	inWorld(t, groups{newGroup("g", 1)}, func(w *world) {
		w.create(in(corev1.PodRunning, members("g", 1)...)...)
		late := false
		w.server.SetHook(func(r *apiserver.Request) apiserver.Fault {
			if r.Subresource != "status" || late {
				return apiserver.Fault{}
			}
			late = true
			return apiserver.Fault{Before: 10 * time.Second}
		})
		time.Sleep(5 * time.Second)
		w.changeGroup("g", func(group *schedulingv1alpha1.PodGroup) {
			group.Status.Phase = schedulingv1alpha1.PodGroupCompleted
		})
		time.Sleep(5*time.Second + 10*time.Millisecond)
		synctest.Wait()
		if got := w.group("g").Status.Phase; got != schedulingv1alpha1.PodGroupCompleted || !late {
			t.Errorf("the phase is %s after the late write, want Completed", got)
		}
	})
}

// TestAGroupWhosePodsMayNotBeReadIsLeftAsItIs, and is kept again when they may: of none that are known it would be told
// that nothing runs.
func TestAGroupWhosePodsMayNotBeReadIsLeftAsItIs(t *testing.T) {
	running := newGroup("g", 2)
	running.Status = schedulingv1alpha1.PodGroupStatus{Phase: "Running", Members: 2, Scheduled: 2, Running: 2}
	prepare := func(w *world) {
		w.closed = map[string]bool{testNamespace: true}
		w.create(in(corev1.PodRunning, members("g", 2)...)...)
	}
	inNamespaces(t, informing.Namespaces{"other", testNamespace}, prepare, groups{running}, func(w *world) {
		time.Sleep(5 * time.Minute)
		w.settle()
		if diff := cmp.Diff(running.Status, w.group("g").Status); diff != "" {
			t.Errorf("the status of a group whose Pods may not be read (-want,+got):\n%s", diff)
		}
		w.remove(members("g", 2)...)
		w.closed = nil
		time.Sleep(time.Minute)
		w.settle()
		if diff := cmp.Diff(schedulingv1alpha1.PodGroupStatus{Phase: "Pending"}, w.group("g").Status); diff != "" {
			t.Errorf("the status when it is known that they are gone (-want,+got):\n%s", diff)
		}
	})
}
