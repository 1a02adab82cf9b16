// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	corev1 "k8s.io/api/core/v1"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	applyschedulingv1alpha1 "github.com/lockstep-k8s/lockstep/client/applyconfiguration/scheduling/v1alpha1"
)

const otherUID = "00000000-1111-2222-3333-444444444444"

var patches = map[string]func(*env){
	"a JSON patch changes fields": func(e *env) {
		group := e.createPodGroup(newPodGroup("a"))
		patch := `[{"op":"replace","path":"/metadata/uid","value":"` + string(group.UID) + `"},{"op":"add","path":"/spec/minMember","value":4}]`
		patched, err := e.podGroups().Patch(e.ctx, "a", types.JSONPatchType, []byte(patch), metav1.PatchOptions{})
		e.must(err)
		if patched.Spec.MinMember != 4 || patched.Generation != 2 || patched.UID != group.UID {
			e.Errorf("the PodGroup is %+v", patched)
		}
	},
	"a patch that names another UID is invalid": func(e *env) {
		e.createPodGroup(newPodGroup("a"))
		patch := `[{"op":"replace","path":"/metadata/uid","value":"` + otherUID + `"}]`
		_, err := e.podGroups().Patch(e.ctx, "a", types.JSONPatchType, []byte(patch), metav1.PatchOptions{})
		e.refused(err, apierrors.IsInvalid, "metadata.uid: Invalid value")
		_, err = e.podGroups().Patch(e.ctx, "a", types.MergePatchType, []byte(`{"metadata":{"uid":"`+otherUID+`"}}`), metav1.PatchOptions{})
		e.refused(err, apierrors.IsInvalid, "metadata.uid: Invalid value")
		_, err = e.podGroups().Patch(e.ctx, "a", types.MergePatchType, []byte(`{"metadata":{"resourceVersion":"1"}}`), metav1.PatchOptions{})
		e.refused(err, apierrors.IsConflict, "the object has been modified")
	},
	"a JSON patch whose test fails is invalid": func(e *env) {
		e.createPodGroup(newPodGroup("a"))
		patch := `[{"op":"test","path":"/spec/minMember","value":7}]`
		_, err := e.podGroups().Patch(e.ctx, "a", types.JSONPatchType, []byte(patch), metav1.PatchOptions{})
		e.refused(err, apierrors.IsInvalid, anyError)
	},
	"a patch of what is not there is not found": func(e *env) {
		_, err := e.podGroups().Patch(e.ctx, "a", types.MergePatchType, []byte(`{}`), metav1.PatchOptions{})
		e.refused(err, apierrors.IsNotFound, anyError)
	},
	"a strategic patch merges the conditions of a Pod": func(e *env) {
		e.createPod(newPod("a"))
		for _, kind := range []string{"A", "B"} {
			patch := `{"status":{"conditions":[{"type":"` + kind + `","status":"True"}]}}`
			_, err := e.pods().Patch(e.ctx, "a", types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{}, "status")
			e.must(err)
		}
		pod, err := e.pods().Get(e.ctx, "a", metav1.GetOptions{})
		e.must(err)
		if len(pod.Status.Conditions) != 2 {
			e.Errorf("the conditions are %+v", pod.Status.Conditions)
		}
	},
	"an apply of the status leaves fields of others alone": func(e *env) {
		group := e.createPodGroup(newPodGroup("a"))
		status := func(manager string, status *applyschedulingv1alpha1.PodGroupStatusApplyConfiguration) *schedulingv1alpha1.PodGroup {
			applied, err := e.podGroups().ApplyStatus(e.ctx,
				applyschedulingv1alpha1.PodGroup("a", e.namespace).WithUID(group.UID).WithStatus(status),
				metav1.ApplyOptions{FieldManager: manager, Force: true})
			e.must(err)
			return applied
		}
		status("counter", applyschedulingv1alpha1.PodGroupStatus().WithPhase(schedulingv1alpha1.PodGroupPending).WithMembers(1).WithScheduled(1))
		now := metav1.Now().Rfc3339Copy()
		applied := status("judge", applyschedulingv1alpha1.PodGroupStatus().WithConditions(
			applyschedulingv1alpha1.PodGroupCondition().WithType(schedulingv1alpha1.ConditionScheduled).WithStatus(metav1.ConditionTrue).
				WithReason(schedulingv1alpha1.ReasonScheduled).WithLastTransitionTime(now)))
		if len(applied.Status.Conditions) != 1 || applied.Status.Members != 1 {
			e.Errorf("after two applies the status is %+v", applied.Status)
		}
		applied = status("counter", applyschedulingv1alpha1.PodGroupStatus().WithPhase(schedulingv1alpha1.PodGroupPending).WithMembers(2))
		if len(applied.Status.Conditions) != 1 || applied.Status.Members != 2 || applied.Status.Scheduled != 0 || applied.Generation != 1 {
			e.Errorf("after an apply without a field of before the PodGroup is %+v", applied)
		}
		again := status("counter", applyschedulingv1alpha1.PodGroupStatus().WithPhase(schedulingv1alpha1.PodGroupPending).WithMembers(2))
		if again.ResourceVersion != applied.ResourceVersion {
			e.Error("an apply that changes nothing is a new version")
		}
	},
	"an apply against the will of another manager is a conflict": func(e *env) {
		e.createPodGroup(newPodGroup("a"))
		apply := func(manager string, members int32) error {
			_, err := e.podGroups().ApplyStatus(e.ctx,
				applyschedulingv1alpha1.PodGroup("a", e.namespace).WithStatus(applyschedulingv1alpha1.PodGroupStatus().WithMembers(members)),
				metav1.ApplyOptions{FieldManager: manager})
			return err
		}
		e.must(apply("one", 1))
		e.refused(apply("two", 2), apierrors.IsConflict, "one")
	},
	"an apply of the status does not ask for the UID of a custom object": func(e *env) {
		group := e.createPodGroup(newPodGroup("a"))
		applied, err := e.podGroups().ApplyStatus(e.ctx,
			applyschedulingv1alpha1.PodGroup("a", e.namespace).WithUID(otherUID).WithStatus(applyschedulingv1alpha1.PodGroupStatus().WithMembers(1)),
			metav1.ApplyOptions{FieldManager: "counter", Force: true})
		e.must(err)
		if applied.UID != group.UID || applied.Status.Members != 1 {
			e.Errorf("the PodGroup is %+v", applied)
		}
	},
	"an apply of the status of what is not there is not found": func(e *env) {
		_, err := e.podGroups().ApplyStatus(e.ctx,
			applyschedulingv1alpha1.PodGroup("a", e.namespace).WithUID(otherUID).WithStatus(applyschedulingv1alpha1.PodGroupStatus().WithMembers(1)),
			metav1.ApplyOptions{FieldManager: "counter", Force: true})
		e.refused(err, func(err error) bool { return apierrors.IsNotFound(err) || apierrors.IsConflict(err) }, anyError)
		e.Logf("%v", err)
	},
	"an apply makes what is not there": func(e *env) {
		applied, err := e.podGroups().Apply(e.ctx,
			applyschedulingv1alpha1.PodGroup("a", e.namespace).WithSpec(applyschedulingv1alpha1.PodGroupSpec().WithMinMember(3)),
			metav1.ApplyOptions{FieldManager: "maker", Force: true})
		e.must(err)
		if applied.UID == "" || applied.Spec.MinMember != 3 || applied.Generation != 1 {
			e.Errorf("the PodGroup is %+v", applied)
		}
	},
	"a patch of the status of a Pod keeps its spec": func(e *env) {
		e.createPod(newPod("a"))
		pod, err := e.pods().Patch(e.ctx, "a", types.MergePatchType, []byte(`{"status":{"phase":"Running"},"spec":{"nodeName":"x"}}`), metav1.PatchOptions{}, "status")
		e.must(err)
		if pod.Status.Phase != corev1.PodRunning || pod.Spec.NodeName != "" {
			e.Errorf("the Pod is %+v", pod)
		}
	},
}
