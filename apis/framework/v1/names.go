// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import "strconv"

// Labels and annotations of ConfigMaps, PodGroups and Pods, names of the
// environment variables in containers, and, without FC_POD_UID and those of
// instances, placeholders in Pod templates. FrameworkController's clients read
// them: they never change.
const (
	KeyFrameworkNamespace          = "FC_FRAMEWORK_NAMESPACE"
	KeyFrameworkName               = "FC_FRAMEWORK_NAME"
	KeyTaskRoleName                = "FC_TASKROLE_NAME"
	KeyTaskIndex                   = "FC_TASK_INDEX"
	KeyConfigMapName               = "FC_CONFIGMAP_NAME"
	KeyPodName                     = "FC_POD_NAME"
	KeyFrameworkUID                = "FC_FRAMEWORK_UID"
	KeyFrameworkAttemptID          = "FC_FRAMEWORK_ATTEMPT_ID"
	KeyFrameworkAttemptInstanceUID = "FC_FRAMEWORK_ATTEMPT_INSTANCE_UID"
	KeyConfigMapUID                = "FC_CONFIGMAP_UID"
	KeyTaskRoleUID                 = "FC_TASKROLE_UID"
	KeyTaskUID                     = "FC_TASK_UID"
	KeyTaskAttemptID               = "FC_TASK_ATTEMPT_ID"
	KeyPodUID                      = "FC_POD_UID"
	KeyTaskAttemptInstanceUID      = "FC_TASK_ATTEMPT_INSTANCE_UID"
)

// AttemptName is the name of the ConfigMap and the PodGroup of every attempt of
// a Framework.
func AttemptName(framework string) string {
	return framework + "-attempt"
}

// PodName is the name of the Pod of every attempt of a task. Nothing parses it:
// labels and annotations carry its parts.
func PodName(framework, taskRole string, taskIndex int32) string {
	return framework + "-" + taskRole + "-" + strconv.Itoa(int(taskIndex))
}
