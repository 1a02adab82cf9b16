// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"

	"k8s.io/apimachinery/pkg/util/validation"
)

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

// attemptSuffix ends the names of what an attempt is made of.
const attemptSuffix = "-attempt"

// AttemptName is the name of the ConfigMap of every attempt of a Framework.
func AttemptName(framework string) string {
	return framework + attemptSuffix
}

// PodTemplatePath is where a Framework has the Pod template of its role of an index.
func PodTemplatePath(role int) string { return "spec.taskRoles[" + strconv.Itoa(role) + "].task.pod" }

// podGroupHashLength is how many hexadecimal digits tell the PodGroups of
// Frameworks with long names from each other.
const podGroupHashLength = 10

// PodGroupName is the name of the PodGroup of every attempt of a Framework that
// is a gang: {framework}-attempt. Pods name their group in a label, so where
// that is longer than the 63 characters of a label's value, the name is the
// first 44 characters of the Framework's, "-attempt-", and a hash of the whole
// of it. The two forms never meet: one ends in "attempt", the other in
// hexadecimal digits.
func PodGroupName(framework string) string {
	name := AttemptName(framework)
	if len(name) <= validation.LabelValueMaxLength {
		return name
	}
	sum := sha256.Sum256([]byte(framework))
	suffix := attemptSuffix + "-" + hex.EncodeToString(sum[:])[:podGroupHashLength]
	return framework[:validation.LabelValueMaxLength-len(suffix)] + suffix
}

// PodName is the name of the Pod of every attempt of a task. Nothing parses it:
// labels and annotations carry its parts.
func PodName(framework, taskRole string, taskIndex int32) string {
	return framework + "-" + taskRole + "-" + strconv.Itoa(int(taskIndex))
}
