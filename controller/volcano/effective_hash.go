// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package volcano

import (
	"crypto/sha256"
	"encoding/hex"

	"k8s.io/apimachinery/pkg/util/json"

	batchv1alpha1 "github.com/lockstep-k8s/lockstep/apis/batch/v1alpha1"
)

// immutableHash tells specs apart, as they are stored, whose immutable parts differ, which the CRD of
// Lockstep refuses, and another may not. Two texts of one template have one hash. Defaults
// are left out, so that it holds for other versions of this program.
func immutableHash(spec *batchv1alpha1.JobSpec) string {
	fixed := *spec
	fixed.MinAvailable = 0
	fixed.PriorityClassName = ""
	fixed.Tasks = make([]batchv1alpha1.TaskSpec, len(spec.Tasks))
	for i, task := range spec.Tasks {
		task.Replicas = 0
		task.MinAvailable = nil
		fixed.Tasks[i] = task
	}
	fixed.Volumes = make([]batchv1alpha1.VolumeSpec, len(spec.Volumes))
	for i, volume := range spec.Volumes {
		if volume.VolumeClaim != nil {
			volume.VolumeClaimName = "" // Volcano writes there what it has made.
		}
		fixed.Volumes[i] = volume
	}
	sum := sha256.Sum256(canonical(fixed))
	return hex.EncodeToString(sum[:])
}

// canonical is a value as JSON with the keys of all objects in order. What can't be read is
// taken as it is.
func canonical(value any) []byte {
	data, err := json.Marshal(value)
	if err != nil {
		return []byte(err.Error())
	}
	var plain any
	if json.Unmarshal(data, &plain) != nil {
		return data
	}
	if sorted, err := json.Marshal(plain); err == nil {
		return sorted
	}
	return data
}
