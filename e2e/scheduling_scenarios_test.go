//go:build e2e

// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/e2e/testbed"
)

// The tests of this file are the troubles that users of gang schedulers report,
// one each. They run side by side, on nodes of their own.

// TestSchedulingTwoGangsThatEachFitAlone: they arrive interleaved. In both orders
// one is placed whole and the other not at all, and follows when the first ends.
func TestSchedulingTwoGangsThatEachFitAlone(t *testing.T) {
	t.Parallel()
	for name, order := range map[string][2]string{
		"alpha first": {"alpha", "beta"},
		"beta first":  {"beta", "alpha"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPool(t)
			p.addNodes(2, 3)
			cluster.CreateGroup(t, p.namespace, "alpha", 4)
			cluster.CreateGroup(t, p.namespace, "beta", 4)
			for i := range 4 {
				for _, group := range order {
					// One after the other: that is the order.
					createPods(t, p.namespace, []*corev1.Pod{member(group, i, p.here)})
				}
			}
			var first, second string
			testbed.Eventually(t, "one gang to be placed", func(ctx context.Context) (bool, string, error) {
				placed, _, err := gangsIn(ctx, p.namespace)
				first, second = "alpha", "beta"
				if len(placed["beta"]) > 0 {
					first, second = second, first
				}
				return len(placed) == 1 && len(placed[first]) == 4, placed.String(), err
			})
			waitUnschedulable(t, p.namespace, second, schedulingv1alpha1.ReasonNotEnoughResources, "room for 2 of the 4")
			p.none(second)
			p.delete(first)
			p.waitMembers(second, 4)
		})
	}
}

// TestSchedulingLowGangDoesNotLivelockAHighOne: the low gang's controller makes
// its Pods again at once when they are preempted, and the room that they left
// wakes it first. It is not given back to it.
func TestSchedulingLowGangDoesNotLivelockAHighOne(t *testing.T) {
	t.Parallel()
	p := newPool(t)
	cluster.CreateClass(t, "e2e-livelock", 1000)
	p.addNodes(1, 4)
	p.gang("low", 4)
	p.waitMembers("low", 4)
	cluster.CreateGroup(t, p.namespace, "high", 3)
	for i := range 3 {
		createPods(t, p.namespace, []*corev1.Pod{member("high", i, p.here, ofClass("e2e-livelock")), member("low", 10+i, p.here)})
	}
	p.waitMembers("high", 3)
	testbed.Eventually(t, "the low gang to have gone whole", func(ctx context.Context) (bool, string, error) {
		placed, _, err := gangsIn(ctx, p.namespace)
		return len(placed["low"]) == 0, placed.String(), err
	})
}

// TestSchedulingGangWhosePodsArriveOverTime holds nothing until it is complete.
func TestSchedulingGangWhosePodsArriveOverTime(t *testing.T) {
	t.Parallel()
	p := newPool(t)
	p.addNodes(1, 3)
	cluster.CreateGroup(t, p.namespace, "slow", 3)
	for i := range 2 {
		createPods(t, p.namespace, []*corev1.Pod{member("slow", i, p.here)})
		waitUnschedulable(t, p.namespace, "slow", schedulingv1alpha1.ReasonNotEnoughTasks, fmt.Sprintf("%d of at least 3 members exist", i+1))
		quick := fmt.Sprintf("quick%d", i)
		p.gang(quick, 3)
		p.waitMembers(quick, 3)
		p.delete(quick)
	}
	createPods(t, p.namespace, []*corev1.Pod{member("slow", 2, p.here)})
	p.waitMembers("slow", 3)
}

// setMinMember changes the minimum of a group.
func (p *pool) setMinMember(group string, n int) {
	p.t.Helper()
	_, err := cluster.Lockstep.SchedulingV1alpha1().PodGroups(p.namespace).Patch(p.t.Context(), group, "application/merge-patch+json",
		fmt.Appendf(nil, `{"spec":{"minMember":%d}}`, n), metav1.PatchOptions{})
	if err != nil {
		p.t.Fatal(err)
	}
}

// TestSchedulingGangThatShrinksWhileWaiting: with fewer members than before it
// fits.
func TestSchedulingGangThatShrinksWhileWaiting(t *testing.T) {
	t.Parallel()
	p := newPool(t)
	p.addNodes(1, 2)
	p.gang("gang", 4)
	waitUnschedulable(t, p.namespace, "gang", schedulingv1alpha1.ReasonNotEnoughResources, "room for 2 of the 4")
	p.setMinMember("gang", 2)
	deletePods(t, p.namespace, []*corev1.Pod{member("gang", 0), member("gang", 3)})
	placed := p.waitMembers("gang", 2)
	for _, pod := range placed {
		if pod.Name != "gang-1" && pod.Name != "gang-2" && pod.DeletionTimestamp == nil {
			t.Errorf("%s is placed, want the ones that are left", pod.Name)
		}
	}
}

// TestSchedulingMinMemberRaisedAndLoweredWhileWaiting: what counts is what it
// says now.
func TestSchedulingMinMemberRaisedAndLoweredWhileWaiting(t *testing.T) {
	t.Parallel()
	p := newPool(t)
	p.addNodes(1, 2)
	cluster.CreateGroup(t, p.namespace, "gang", 3)
	createPods(t, p.namespace, p.members("gang", 4))
	waitUnschedulable(t, p.namespace, "gang", schedulingv1alpha1.ReasonNotEnoughResources, "room for 2 of the 3")
	p.setMinMember("gang", 5)
	waitUnschedulable(t, p.namespace, "gang", schedulingv1alpha1.ReasonNotEnoughTasks, "4 of at least 5 members exist")
	p.none("gang")
	p.setMinMember("gang", 2)
	p.waitMembers("gang", 2)
}

// TestSchedulingMembersOfDifferentPriorities: a gang ranks as its highest member.
func TestSchedulingMembersOfDifferentPriorities(t *testing.T) {
	t.Parallel()
	p := newPool(t)
	cluster.CreateClass(t, "e2e-mixed-middle", 500)
	cluster.CreateClass(t, "e2e-mixed-high", 1000)
	p.addNodes(1, 2)
	createPods(t, p.namespace, []*corev1.Pod{p.ordinary("a", ofClass("e2e-mixed-middle")), p.ordinary("b", ofClass("e2e-mixed-middle"))})
	testbed.Eventually(t, "the others to be placed", func(ctx context.Context) (bool, string, error) {
		pods, err := cluster.Kube.CoreV1().Pods(p.namespace).List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName!="})
		return err == nil && len(pods.Items) == 2, "", err
	})
	cluster.CreateGroup(t, p.namespace, "mixed", 2)
	createPods(t, p.namespace, []*corev1.Pod{member("mixed", 0, p.here), member("mixed", 1, p.here, ofClass("e2e-mixed-high"))})
	p.waitMembers("mixed", 2)
}

// TestSchedulingBindThatFailsForOneMember: the others are bound, and it follows
// when the API server allows it.
func TestSchedulingBindThatFailsForOneMember(t *testing.T) {
	t.Parallel()
	p := newPool(t)
	p.addNodes(2, 2)
	allow := p.refuseBinding("gang-1")
	p.gang("gang", 3)
	p.waitMembers("gang", 2)
	allow()
	p.waitMembers("gang", 3)
}

// refuseBinding has the API server refuse to bind a Pod of the pool's namespace,
// until allow is called.
func (p *pool) refuseBinding(name string) (allow func()) {
	p.t.Helper()
	policies := cluster.Kube.AdmissionregistrationV1().ValidatingAdmissionPolicies()
	bindings := cluster.Kube.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings()
	fail := admissionv1.Fail
	policy := &admissionv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: p.name},
		Spec: admissionv1.ValidatingAdmissionPolicySpec{
			FailurePolicy: &fail,
			MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{
				RuleWithOperations: admissionv1.RuleWithOperations{
					Operations: []admissionv1.OperationType{admissionv1.Create},
					Rule:       admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods/binding"}},
				},
			}}},
			Validations: []admissionv1.Validation{{
				Expression: fmt.Sprintf("request.namespace != %q || request.name != %q", p.namespace, name),
				Message:    "this Pod is not to be bound",
			}},
		},
	}
	if _, err := policies.Create(p.t.Context(), policy, metav1.CreateOptions{}); err != nil {
		p.t.Fatal(err)
	}
	binding := &admissionv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: p.name},
		Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: p.name, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
		},
	}
	if _, err := bindings.Create(p.t.Context(), binding, metav1.CreateOptions{}); err != nil {
		p.t.Fatal(err)
	}
	allowed := false
	allow = func() {
		if allowed {
			return
		}
		allowed = true
		ctx := context.WithoutCancel(p.t.Context())
		for _, err := range []error{bindings.Delete(ctx, p.name, metav1.DeleteOptions{}), policies.Delete(ctx, p.name, metav1.DeleteOptions{})} {
			if err != nil {
				p.t.Error(err)
			}
		}
	}
	p.t.Cleanup(allow)

	// The API server learns of policies after a moment. A Pod of the same name
	// that nobody schedules tells when it has.
	probe := member("probe", 0, func(pod *corev1.Pod) {
		pod.Name, pod.Labels, pod.Spec.SchedulerName = name, nil, "nobody"
	})
	createPods(p.t, p.namespace, []*corev1.Pod{probe})
	testbed.Eventually(p.t, "the binding to be refused", func(ctx context.Context) (bool, string, error) {
		err := cluster.Kube.CoreV1().Pods(p.namespace).Bind(ctx, &corev1.Binding{
			ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: name},
			Target:     corev1.ObjectReference{Kind: "Node", Name: p.name + "-0"},
		}, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err != nil, fmt.Sprint(err), nil
	})
	deletePods(p.t, p.namespace, []*corev1.Pod{probe})
	return allow
}

// TestSchedulingRoomThatAppears by a node that is added, and by Pods that go.
func TestSchedulingRoomThatAppears(t *testing.T) {
	t.Parallel()
	for name, appear := range map[string]func(*pool){
		"by a node that is added":  func(p *pool) { p.addNodes(1, 2) },
		"by Pods that are deleted": func(p *pool) { p.delete("other") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPool(t)
			p.addNodes(1, 2)
			p.gang("other", 2)
			p.waitMembers("other", 2)
			p.gang("gang", 2)
			waitUnschedulable(t, p.namespace, "gang", schedulingv1alpha1.ReasonNotEnoughResources, "room for 0 of the 2")
			appear(p)
			p.waitMembers("gang", 2)
		})
	}
}

// TestSchedulingAntiAffinityInsideAGang: no two members share a node, and a gang
// that is larger than the nodes are many is not placed in part.
func TestSchedulingAntiAffinityInsideAGang(t *testing.T) {
	t.Parallel()
	p := newPool(t)
	p.addNodes(3, 4)
	apart := func(pod *corev1.Pod) {
		pod.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
				TopologyKey:   corev1.LabelHostname,
				LabelSelector: &metav1.LabelSelector{MatchLabels: pod.Labels},
			}},
		}}
	}
	p.gang("fits", 3, apart)
	p.gang("larger", 4, apart)
	used := map[string]bool{}
	for _, pod := range p.waitMembers("fits", 3) {
		used[pod.Spec.NodeName] = true
	}
	if len(used) != 3 {
		t.Errorf("three members that repel each other are on %d nodes", len(used))
	}
	waitUnschedulable(t, p.namespace, "larger", schedulingv1alpha1.ReasonNotEnoughResources, "room for 3 of the 4")
	p.none("larger")
}

// TestSchedulingTwoGroupsOfOneName in two namespaces share nothing.
func TestSchedulingTwoGroupsOfOneName(t *testing.T) {
	t.Parallel()
	one, two := newPool(t), cluster.Namespace(t)
	one.addNodes(1, 4)
	cluster.CreateGroup(t, one.namespace, "gang", 3)
	cluster.CreateGroup(t, two, "gang", 2)
	createPods(t, one.namespace, one.members("gang", 2))
	createPods(t, two, one.members("gang", 2))
	waitPlaced(t, two, 2)
	waitUnschedulable(t, one.namespace, "gang", schedulingv1alpha1.ReasonNotEnoughTasks, "2 of at least 3 members exist")
	one.none("gang")
}
