// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/podgroup"
)

// Preview returns the PodGroup and the Pods of the first attempt of a Framework that does not exist yet, as the
// controller would create them. A Framework without a gang counts as a gang of all tasks. Preview returns an error if
// the controller would create none.
func Preview(framework *frameworkv1.Framework, options Options) (*schedulingv1alpha1.PodGroup, []*corev1.Pod, error) {
	d := newDecision(Snapshot{Framework: framework, Options: options}, time.Time{}, oneEntropy{})
	d.next = &frameworkv1.FrameworkStatus{AttemptStatus: d.newAttempt(0)}
	attempt := &d.next.AttemptStatus
	attempt.Gang = d.gangOfSpec()
	attempt.Gang.Enabled = true
	configMap := types.UID("new")
	attempt.ConfigMapUID, attempt.InstanceUID = &configMap, instanceUID(attempt.ID, configMap)

	spec, hasTasks := podgroup.DesiredSpec(&framework.Spec, d.activeTasks())
	if !hasTasks {
		return nil, nil, errors.New("the Framework has no tasks")
	}
	var pods []*corev1.Pod
	for _, role := range attempt.TaskRoleStatuses {
		builder, err := newPodBuilder(framework, attempt, role, d.specRoles[role.Name])
		if err != nil {
			return nil, nil, err
		}
		for _, task := range role.TaskStatuses {
			pod, err := builder.build(task)
			if err != nil {
				return nil, nil, err
			}
			pod.UID = types.UID("new-" + pod.Name)
			pod.Status.Phase = corev1.PodPending
			pods = append(pods, pod)
		}
	}
	return newPodGroup(framework, attempt, spec), pods, nil
}

// oneEntropy is for values that need not differ.
type oneEntropy struct{}

func (oneEntropy) NewUID() types.UID            { return "new" }
func (oneEntropy) Between(least, _ int64) int64 { return least }
