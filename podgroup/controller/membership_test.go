// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/internal/testing/apiserver"
)

// attempt is the controller of the PodGroup and of the Pods of a Framework's
// attempt.
func attempt(uid types.UID) []metav1.OwnerReference {
	configMap := &metav1.ObjectMeta{Name: "g", UID: uid}
	return []metav1.OwnerReference{*metav1.NewControllerRef(configMap, corev1.SchemeGroupVersion.WithKind("ConfigMap"))}
}

// groupOfAttempt is the group of an attempt, which has its ConfigMap's name.
func groupOfAttempt(uid types.UID) *schedulingv1alpha1.PodGroup {
	group := newGroup("g", 1)
	group.UID = "group-of-" + uid
	group.OwnerReferences = attempt(uid)
	return group
}

// ownedBy gives Pods a controller.
func ownedBy(owner []metav1.OwnerReference, pods ...*corev1.Pod) []*corev1.Pod {
	for _, pod := range pods {
		pod.OwnerReferences = owner
	}
	return pods
}

func (w *world) replaceGroup(group *schedulingv1alpha1.PodGroup) {
	w.t.Helper()
	apiserver.Remove[schedulingv1alpha1.PodGroup](w.server, testNamespace, group.Name)
	apiserver.Add(w.server, group)
}

// TestOnlyPodsOfTheAttemptCountInItsGroup follows a group of a Framework's
// attempt, beside a Pod that has its label for another reason.
func TestOnlyPodsOfTheAttemptCountInItsGroup(t *testing.T) {
	pods := in(corev1.PodRunning, members("g", 2)...)
	own, stranger := pods[0], pods[1]
	ownedBy(attempt("first"), own)
	running := func(n int32) schedulingv1alpha1.PodGroupStatus {
		if n == 0 {
			return schedulingv1alpha1.PodGroupStatus{Phase: "Pending"}
		}
		return schedulingv1alpha1.PodGroupStatus{Phase: "Running", Members: n, Scheduled: n, Running: n}
	}
	inWorld(t, groups{groupOfAttempt("first")}, func(w *world) {
		steps := []struct {
			name string
			do   func()
			want schedulingv1alpha1.PodGroupStatus
		}{
			{"a Pod without a controller", func() { w.create(stranger) }, running(0)},
			{"a Pod of the attempt", func() { w.create(own) }, running(1)},
			{"the attempt adopts the other Pod", func() { w.update(ownedBy(attempt("first"), stranger)...) }, running(2)},
			{"and lets it go again", func() { w.update(ownedBy(nil, stranger)...) }, running(1)},
			{"the next attempt has a group, and no Pod yet", func() { w.replaceGroup(groupOfAttempt("second")) }, running(0)},
			{"a user makes a group of the name", func() { w.replaceGroup(newGroup("g", 1)) }, running(2)},
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

// TestAPodThatIsSeenBeforeItsGroup counts once the group is seen, if the group is
// its attempt's.
func TestAPodThatIsSeenBeforeItsGroup(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		pods := in(corev1.PodRunning, members("g", 3)...)
		ownedBy(attempt("this"), pods[:2]...)
		ownedBy(attempt("before"), pods[2])
		w.create(pods...)
		w.settle()
		apiserver.Add(w.server, groupOfAttempt("this"))
		w.settle()
		want := schedulingv1alpha1.PodGroupStatus{Phase: "Running", Members: 2, Scheduled: 2, Running: 2}
		if diff := cmp.Diff(want, w.group("g").Status); diff != "" {
			t.Errorf("status (-want,+got):\n%s", diff)
		}
	})
}

// TestAGroupThatChangesItsController: the label counts alone once the group is
// nobody's, as after a deletion of the ConfigMap that leaves its Pods.
func TestAGroupThatChangesItsController(t *testing.T) {
	inWorld(t, groups{groupOfAttempt("this")}, func(w *world) {
		w.create(in(corev1.PodRunning, members("g", 1)...)...)
		w.settle()
		if got := w.group("g").Status.Members; got != 0 {
			t.Fatalf("members of the attempt's group: got %d, want 0", got)
		}
		w.changeGroup("g", func(group *schedulingv1alpha1.PodGroup) { group.OwnerReferences = nil })
		w.settle()
		if got := w.group("g").Status.Members; got != 1 {
			t.Errorf("members of the group that is nobody's: got %d, want 1", got)
		}
	})
}
