// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package jobpods

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// groupHashLength is how many hexadecimal digits distinguish the PodGroups of jobs with long names.
const groupHashLength = 10

// GroupName returns the name of a PodGroup of a job: {job}-{kind}-{number}, where kind is a short word in lower case.
// Pods name their group in a label. If the name is longer than the 63 characters of a label's value, the job's name is
// cut and a hash of the name is appended. PodGroups of Frameworks end in -attempt, or in -attempt- and a hash, so the
// names never collide.
func GroupName(job, kind string, number int32) string {
	return NameOf(job, "-"+kind+"-"+strconv.Itoa(int(number)))
}

// NameOf returns a job's name and a suffix. If the name is longer than the 63 characters of a label, the job's name is
// cut and a hash of the name is appended.
func NameOf(job, suffix string) string {
	if len(job)+len(suffix) <= validation.LabelValueMaxLength {
		return job + suffix
	}
	sum := sha256.Sum256([]byte(job))
	suffix = "-" + hex.EncodeToString(sum[:])[:groupHashLength] + suffix
	return job[:validation.LabelValueMaxLength-len(suffix)] + suffix
}

// WaitForPlace reports whether no Pod of a gang has a node.
func WaitForPlace(pods map[string]*corev1.Pod) bool {
	for _, pod := range pods {
		if pod.Spec.NodeName != "" {
			return false
		}
	}
	return true
}
