// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package frameworks

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-k8s/lockstep/apis/framework/statuscodec"
	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/controller/engine/plan"
	"github.com/lockstep-k8s/lockstep/controller/lifecycle"
)

// decider decides on one Framework.
type decider struct {
	core    *Core
	encoder statuscodec.Encoder
	// deletionLogged says that the history has the Framework as one to be deleted.
	deletionLogged bool
	// takenOver is the Snapshot's; nil before the first decision.
	takenOver *lifecycle.TakenOver
}

// Decide has package lifecycle decide.
func (d *decider) Decide(view *view, now time.Time, entropy plan.Entropy) (plan.Plan[frameworkv1.FrameworkStatus], error) {
	snapshot, err := d.core.snapshot(view)
	if err != nil {
		return plan.Plan[frameworkv1.FrameworkStatus]{}, fmt.Errorf("reading the cache: %w", err)
	}
	if d.takenOver == nil {
		found := lifecycle.TakeOver(view.Persisted, now)
		d.takenOver = &found
	}
	snapshot.TakenOver = *d.takenOver
	decided := lifecycle.Decide(snapshot, now, entropy)
	next := plan.Plan[frameworkv1.FrameworkStatus]{
		Status:   decided.Status,
		Persist:  decided.Persist,
		Starting: decided.Status != nil && decided.Status.Tasks != nil && decided.Status.Tasks.Pending > 0,
		Settled:  settled(view.Persisted, decided.Status),
		Actions:  actionsOf(decided.Actions),
		Events:   decided.Events,
		WakeAt:   decided.WakeAt,
		Over:     isOver(snapshot, decided),
		Err:      decided.Err,
	}
	if len(decided.History) > 0 {
		next.Before = func() { d.logHistory(decided.History, now) }
	}
	return next, nil
}

// isOver says whether a Framework is Completed and only waits for the end of its retention. One with times that were to
// come when it was found is remembered, since it waits from when it was found.
func isOver(snapshot lifecycle.Snapshot, decided lifecycle.Plan) bool {
	return decided.Status != nil && decided.Status.State == frameworkv1.FrameworkCompleted &&
		len(decided.Actions) == 0 && len(snapshot.Pods) == 0 && snapshot.ConfigMap == nil && !snapshot.TakenOver.AnyToCome()
}

// settled says whether a status that waits to be written is the first that shows all
// tasks running, or all Pods with their addresses: FrameworkBarrier waits for these, and
// lets no task run before.
func settled(persisted, status *frameworkv1.FrameworkStatus) bool {
	if persisted == nil || persisted.Tasks == nil {
		return false
	}
	return status.Tasks.Pending == 0 && persisted.Tasks.Pending > 0 ||
		located(status) && !located(persisted)
}

// located says whether the address of each task is known, unless it has ended.
func located(status *frameworkv1.FrameworkStatus) bool {
	for _, role := range status.AttemptStatus.TaskRoleStatuses {
		for _, task := range role.TaskStatuses {
			ip := task.AttemptStatus.PodIP
			if task.AttemptStatus.CompletionStatus == nil && (ip == nil || *ip == "") {
				return false
			}
		}
	}
	return true
}

// verbs are what actions of decisions are to the engine.
var verbs = map[lifecycle.ActionKind]struct {
	verb plan.Verb
	kind string
}{
	lifecycle.CreateConfigMap:    {plan.Create, kindConfigMap},
	lifecycle.DeleteConfigMap:    {plan.Delete, kindConfigMap},
	lifecycle.ConfirmNoConfigMap: {plan.ConfirmNo, kindConfigMap},
	lifecycle.LookForConfigMap:   {plan.LookFor, kindConfigMap},
	lifecycle.CreatePodGroup:     {plan.Create, kindPodGroup},
	lifecycle.UpdatePodGroup:     {plan.Update, kindPodGroup},
	lifecycle.CreatePod:          {plan.Create, kindPod},
	lifecycle.DeletePod:          {plan.Delete, kindPod},
	lifecycle.ForceDeletePod:     {plan.ForceDelete, kindPod},
	lifecycle.ConfirmNoPod:       {plan.ConfirmNo, kindPod},
	lifecycle.LookForPod:         {plan.LookFor, kindPod},
	lifecycle.ListPods:           {plan.List, kindPod},
	lifecycle.DeleteFramework:    {plan.Delete, kindFramework},
	lifecycle.CheckStatus:        {plan.CheckStatus, ""},
}

// actionsOf makes actions the engine's.
func actionsOf(decided []lifecycle.Action) []plan.Action {
	actions := make([]plan.Action, len(decided))
	for i := range decided {
		actions[i] = actionOf(&decided[i])
	}
	return actions
}

func actionOf(decided *lifecycle.Action) plan.Action {
	is := verbs[decided.Kind]
	action := plan.Action{
		Verb: is.verb, Kind: is.kind, Name: decided.Name, UID: decided.UID, Owner: decided.Owner, Seen: decided.Seen,
		Tag: decided,
	}
	switch decided.Kind {
	case lifecycle.CreateConfigMap:
		action.Object = decided.ConfigMap
	case lifecycle.CreatePodGroup:
		action.Object, action.Content = decided.PodGroup, contentOf(decided.PodGroup)
	case lifecycle.UpdatePodGroup:
		action.UID, action.Content, action.Detail = decided.PodGroup.UID, contentOf(decided.PodGroup), decided.Detail()
		action.Patch = minimumsOf(decided.PodGroup)
	case lifecycle.CreatePod:
		action.Group = decided.Role
		action.Build = func() (metav1.Object, error) {
			pod, err := decided.Pod()
			if err != nil {
				return nil, errTemplate{err}
			}
			return pod, nil
		}
	case lifecycle.ListPods:
		action.Selector = frameworkv1.KeyFrameworkName + "=" + decided.Name
	case lifecycle.DeletePod:
		action.Propagation = metav1.DeletePropagationBackground
	case lifecycle.DeleteConfigMap, lifecycle.DeleteFramework:
		action.Propagation = metav1.DeletePropagationForeground
	}
	return action
}

// contentOf says which attempt a PodGroup is of, and which members it wants.
func contentOf(group *schedulingv1alpha1.PodGroup) string {
	var owner metav1.OwnerReference
	if controller := metav1.GetControllerOfNoCopy(group); controller != nil {
		owner = *controller
	}
	return fmt.Sprint(owner.UID, group.Spec.MinMember, group.Spec.MinRoleMember)
}

// minimumsOf are the changes that make the minimums of a PodGroup.
func minimumsOf(group *schedulingv1alpha1.PodGroup) []plan.Operation {
	minRoleMember := group.Spec.MinRoleMember
	if minRoleMember == nil {
		minRoleMember = map[string]int32{}
	}
	return []plan.Operation{
		{Op: "add", Path: "/spec/minMember", Value: group.Spec.MinMember},
		{Op: "add", Path: "/spec/minRoleMember", Value: minRoleMember},
	}
}
