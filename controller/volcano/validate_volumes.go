// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package volcano

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	batchv1alpha1 "github.com/lockstep-k8s/lockstep/apis/batch/v1alpha1"
)

// validateVolumes returns the errors in the volumes of a Job. A volume may have both a claim spec and a claim name,
// because Volcano adds the names of the claims that it has created.
func validateVolumes(volumes []batchv1alpha1.VolumeSpec, path *field.Path) field.ErrorList {
	if errs := tooMany(path, len(volumes), maxVolumes); len(errs) > 0 {
		return errs
	}
	var errs field.ErrorList
	paths, twice := map[string]bool{}, false
	for i := range volumes {
		volume, at := &volumes[i], path.Index(i)
		twice = twice || paths[volume.MountPath]
		paths[volume.MountPath] = true
		if volume.MountPath == "" || strings.Contains(volume.MountPath, ":") {
			errs = append(errs, field.Invalid(at.Child("mountPath"), volume.MountPath, "must not be empty, and must not contain a colon"))
		}
		errs = append(errs, tooLong(at.Child("mountPath"), volume.MountPath, maxMountPath)...)
		errs = append(errs, tooLong(at.Child("volumeClaimName"), volume.VolumeClaimName, validation.DNS1123SubdomainMaxLength)...)
		switch {
		case volume.VolumeClaim != nil:
			if err := decodeClaim(volume, &corev1.PersistentVolumeClaimSpec{}); err != nil {
				errs = append(errs, field.Invalid(at.Child("volumeClaim"), field.OmitValueType{}, "is no spec of a PersistentVolumeClaim: "+err.Error()))
			}
		case volume.VolumeClaimName == "":
			errs = append(errs, field.Invalid(at, nil, "either VolumeClaim or VolumeClaimName must be specified"))
		}
	}
	if twice {
		errs = append(errs, field.Invalid(path, field.OmitValueType{}, "duplicated mountPath: every volume needs a path of its own"))
	}
	return errs
}
