// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/reference"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/podgroup"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/provision"
)

// TestAPodGroupOfOursIsReadAsItIs.
func TestAPodGroupOfOursIsReadAsItIs(t *testing.T) {
	created := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	attempt := &metav1.ObjectMeta{Name: "fw-attempt", UID: "attempt"}
	owner := metav1.NewControllerRef(attempt, corev1.SchemeGroupVersion.WithKind("ConfigMap"))
	topology := []schedulingv1alpha1.TopologyConstraint{{Key: "rack", Mode: schedulingv1alpha1.TopologyRequired}}
	conditions := []schedulingv1alpha1.PodGroupCondition{{Type: schedulingv1alpha1.ConditionScheduled, Status: metav1.ConditionTrue}}
	got := FromOwn(&schedulingv1alpha1.PodGroup{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "ring", UID: "uid", ResourceVersion: "7", Generation: 3,
			CreationTimestamp: metav1.NewTime(created), OwnerReferences: []metav1.OwnerReference{*owner},
			Annotations: map[string]string{"scheduling.lockstep.dev/reservation-timeout": "5m", "scheduling.lockstep.dev/expected-members": "7",
				"scheduling.lockstep.dev/staged": "true"}},
		Spec: schedulingv1alpha1.PodGroupSpec{MinMember: 4, MinRoleMember: map[string]int32{"ps": 1}, PriorityClassName: "high",
			Queue: "default", Topology: topology, DisruptionMode: schedulingv1alpha1.DisruptPod,
			MinResources: map[corev1.ResourceName]resource.Quantity{"cpu": resource.MustParse("13"), "limits.cpu": resource.MustParse("20")}},
		Status: schedulingv1alpha1.PodGroupStatus{Conditions: conditions},
	})
	want := &Group{
		Key: Key{Dialect: Own, Namespace: "ns", Name: "ring"}, UID: "uid", ResourceVersion: "7", Generation: 3, Created: created, Owner: owner,
		Spec: Spec{Minimum: podgroup.Minimum{Members: 4, Roles: map[string]int32{"ps": 1}}, PriorityClassName: "high",
			Topology: topology, DisruptionMode: schedulingv1alpha1.DisruptPod,
			Provision: Provision{Resources: provision.Amounts{"cpu": 13000}, Timeout: 5 * time.Minute, Members: 7}, Staged: true},
		Conditions: conditions,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}

// TestAnythingElseThatIsAskedForIsNews: a change of any field of a spec has a gang planned anew.
func TestAnythingElseThatIsAskedForIsNews(t *testing.T) {
	changes := map[string]func(*Spec){
		"Minimum":           func(s *Spec) { s.Minimum.Roles = map[string]int32{"ps": 1} },
		"Priority":          func(s *Spec) { s.Priority = new(int32(0)) },
		"PreemptsNobody":    func(s *Spec) { s.PreemptsNobody = true },
		"Loose":             func(s *Spec) { s.Loose = true },
		"Halt":              func(s *Spec) { s.Halt.Reason = ReasonDeleted },
		"PriorityClassName": func(s *Spec) { s.PriorityClassName = "high" },
		"Topology":          func(s *Spec) { s.Topology = []schedulingv1alpha1.TopologyConstraint{{Key: "rack"}} },
		"DisruptionMode":    func(s *Spec) { s.DisruptionMode = schedulingv1alpha1.DisruptPod },
		"Provision":         func(s *Spec) { s.Provision.Resources = provision.Amounts{"cpu": 1} },
		"Runtime":           func(s *Spec) { s.Runtime.Limit = time.Hour },
		"Staged":            func(s *Spec) { s.Staged = true },
	}
	if before, after := (Spec{}), (Spec{Minimum: podgroup.Minimum{Members: 1}}); before.Equal(&after) {
		t.Error("a spec that asks for more members is taken for the same")
	}
	for i := range reflect.TypeFor[Spec]().NumField() {
		field := reflect.TypeFor[Spec]().Field(i).Name
		change, known := changes[field]
		if !known {
			t.Fatalf("the field %s has no test", field)
		}
		var before, after Spec
		change(&after)
		if before.Equal(&after) {
			t.Errorf("a spec with another %s is taken for the same", field)
		}
		change(&before)
		if !before.Equal(&after) {
			t.Errorf("a spec with the same %s is taken for another one", field)
		}
	}
}

// TestOnlyPodsOfTheOwnerAreMembers, where the group has one.
func TestOnlyPodsOfTheOwnerAreMembers(t *testing.T) {
	owner := metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "fw-attempt", UID: "attempt", Controller: new(true)}
	link := map[string]string{"scheduling.lockstep.dev/pod-group": "group"}
	own := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{owner}, Labels: link}}
	nobodys := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: link}}
	tests := map[string]struct {
		group *Group
		pod   *corev1.Pod
		want  bool
	}{
		"a Pod of the owner":                    {&Group{Owner: &owner}, own, true},
		"a Pod of nobody in a group of nobody":  {&Group{}, nobodys, true},
		"a Pod of nobody in a group of someone": {&Group{Owner: &owner}, nobodys, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := tc.group.HasMember(tc.pod); got != tc.want {
				t.Errorf("is a member: %t, want %t", got, tc.want)
			}
		})
	}
}

// TestAnEventFindsTheGroup: the object that events are recorded on names the group and its kind.
func TestAnEventFindsTheGroup(t *testing.T) {
	group := &Group{Key: Key{Namespace: "ns", Name: "ring"}, UID: "uid", ResourceVersion: "7"}
	got, err := reference.GetReference(runtime.NewScheme(), group.Object())
	if err != nil {
		t.Fatal(err)
	}
	want := &corev1.ObjectReference{APIVersion: "scheduling.lockstep.dev/v1alpha1", Kind: "PodGroup", Namespace: "ns", Name: "ring", UID: "uid", ResourceVersion: "7"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}
