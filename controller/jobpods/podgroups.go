// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package jobpods

import (
	"fmt"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/controller/engine/plan"
)

// PlanPodGroup plans the actions that turn the PodGroup into the desired one. ready reports that nothing has to be
// changed. `have` is the existing PodGroup, nil if there is none. A PodGroup that is being deleted is created again
// once the old one is gone. While surplusGoesFirst returns true, the PodGroup stays unchanged: with a lower minimum,
// the scheduler could give nodes to surplus Pods that are not deleted yet.
func PlanPodGroup[S any](d *plan.Draft[S], owner types.UID, have, desired *schedulingv1alpha1.PodGroup, surplusGoesFirst func() bool) (ready bool) {
	spec := desired.Spec
	action := plan.Action{
		Kind: "PodGroup", Name: desired.Name, Owner: owner,
		Content: fmt.Sprint(owner, spec.MinMember, spec.MinRoleMember, ptr.Deref(spec.MaxRuntimeSeconds, 0), ptr.Deref(spec.ExpectedRuntimeSeconds, 0)), Detail: fmt.Sprintf("minMember=%d", spec.MinMember),
	}
	switch {
	case have != nil && have.DeletionTimestamp != nil:
		return false
	case have != nil && have.Spec.MinMember == spec.MinMember && apiequality.Semantic.DeepEqual(have.Spec.MinRoleMember, spec.MinRoleMember):
		if action.Patch = patchRuntimes(&have.Spec, &spec); action.Patch != nil {
			action.Verb, action.UID = plan.Update, have.UID
			d.ActIfCurrent(action)
		}
		return true // No Pod waits for run times.
	case surplusGoesFirst():
		return false
	case have == nil:
		action.Verb, action.Object = plan.Create, desired
	default:
		action.Verb, action.UID = plan.Update, have.UID
		action.Patch = append(patchRuntimes(&have.Spec, &spec), plan.Operation{Op: "add", Path: "/spec/minMember", Value: spec.MinMember})
		if len(have.Spec.MinRoleMember)+len(spec.MinRoleMember) > 0 {
			action.Patch = append(action.Patch, plan.Operation{Op: "add", Path: "/spec/minRoleMember", Value: With(nil, spec.MinRoleMember)})
		}
	}
	d.ActIfCurrent(action)
	return false
}

// patchRuntimes returns the patch operations that change a PodGroup's run times. To remove a field, an operation sets
// it to null, which the API server drops. A "remove" operation would fail if the field is missing already.
func patchRuntimes(have, want *schedulingv1alpha1.PodGroupSpec) []plan.Operation {
	var operations []plan.Operation
	for _, field := range []struct {
		path       string
		have, want *int32
	}{
		{"/spec/maxRuntimeSeconds", have.MaxRuntimeSeconds, want.MaxRuntimeSeconds},
		{"/spec/expectedRuntimeSeconds", have.ExpectedRuntimeSeconds, want.ExpectedRuntimeSeconds},
	} {
		if !ptr.Equal(field.have, field.want) {
			operations = append(operations, plan.Operation{Op: "add", Path: field.path, Value: field.want})
		}
	}
	return operations
}
