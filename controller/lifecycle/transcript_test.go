// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
)

// transcript is a status in one line: states, attempts, codes, and what is refused for now.
func transcript(status *frameworkv1.FrameworkStatus) string {
	var b strings.Builder
	code := func(completion *frameworkv1.CompletionStatus) string {
		if completion == nil {
			return ""
		}
		return fmt.Sprintf("(%d)", completion.Code)
	}
	var end *frameworkv1.CompletionStatus
	if completion := status.AttemptStatus.CompletionStatus; completion != nil {
		end = &completion.CompletionStatus
	}
	fmt.Fprintf(&b, "F#%d %s%s", status.AttemptStatus.ID, status.State, code(end))
	if delay := status.RetryPolicyStatus.RetryDelaySec; delay != nil {
		fmt.Fprintf(&b, " delay=%ds", *delay)
	}
	if blocked := meta.FindStatusCondition(status.Conditions, frameworkv1.ConditionTasksBlocked); blocked != nil {
		fmt.Fprintf(&b, " blocked=%s", blocked.Reason)
	}
	for _, role := range status.AttemptStatus.TaskRoleStatuses {
		for _, task := range role.TaskStatuses {
			var end *frameworkv1.CompletionStatus
			if completion := task.AttemptStatus.CompletionStatus; completion != nil {
				end = &completion.CompletionStatus
			}
			fmt.Fprintf(&b, ", %s-%d#%d %s%s", role.Name, task.Index, task.AttemptStatus.ID,
				task.State, code(end))
			if task.DeletionPending {
				b.WriteString(" marked")
			}
			if delay := task.RetryPolicyStatus.RetryDelaySec; delay != nil {
				fmt.Fprintf(&b, " delay=%ds", *delay)
			}
		}
	}
	return b.String()
}

// inWords returns what an action does. The words are those of the traces alone: names in the code may change.
func inWords(action Action) string {
	does := ""
	switch action.Does() {
	case CreateConfigMap:
		does = "create the ConfigMap"
	case DeleteConfigMap:
		does = "delete the ConfigMap"
	case ConfirmNoConfigMap:
		does = "make sure that there is no ConfigMap"
	case LookForConfigMap:
		does = "look for the ConfigMap"
	case CreatePodGroup:
		does = "create the PodGroup"
	case UpdatePodGroup:
		return fmt.Sprintf("set minMember of the PodGroup %s to %d", action.Name, action.Patch[0].Value)
	case CreatePod:
		does = "create the Pod"
	case DeletePod:
		does = "delete the Pod"
	case ForceDeletePod:
		does = "force-delete the Pod"
	case ConfirmNoPod:
		does = "make sure that there is no Pod"
	case LookForPod:
		does = "look for the Pod"
	case ListPods:
		does = "list the Pods of"
	case CheckStatus:
		does = "read the stored status of"
	case DeleteFramework:
		does = "delete the Framework"
	}
	return does + " " + action.Name
}
