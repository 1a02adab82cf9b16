// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package volcano

import (
	"crypto/sha256"
	"fmt"
	"math/big"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation"

	batchv1alpha1 "github.com/lockstep-k8s/lockstep/apis/batch/v1alpha1"
	"github.com/lockstep-k8s/lockstep/controller/jobpods"
	"github.com/lockstep-k8s/lockstep/internal/quantity"
)

// claim is a PersistentVolumeClaim that the Job's Pods mount.
type claim struct {
	Name string
	// Object is the claim to create for the Job; nil if the user names a claim, which must exist.
	Object *corev1.PersistentVolumeClaim
	// volume is the name of the claim's volume in Pods. paths are the paths at which it is mounted.
	volume string
	paths  []string
}

// claimsOf returns the distinct claims of a Job, in the order of its volumes, or an error if one of them is invalid.
func claimsOf(job *batchv1alpha1.Job, spec *batchv1alpha1.JobSpec) ([]claim, error) {
	var claims []claim
	places := map[string]int{}
	for i, volume := range spec.Volumes {
		name := claimName(job, spec, i)
		place, known := places[name]
		if !known {
			place = len(claims)
			places[name] = place
			claims = append(claims, claim{Name: name, volume: volumeName(job.Name, hash12(string(job.UID)+"/"+name))})
		}
		claims[place].paths = append(claims[place].paths, volume.MountPath)
		if volume.VolumeClaim == nil || claims[place].Object != nil {
			continue
		}
		object, err := newClaim(job, name, &volume)
		if err != nil {
			return nil, fmt.Errorf("spec.volumes[%d].volumeClaim is no spec of a PersistentVolumeClaim: %w", i, err)
		}
		claims[place].Object = object
	}
	return claims, nil
}

// claimName returns the name of a volume's claim: the name that the user gives, else a name made of the Job's UID and
// the volume's position.
func claimName(job *batchv1alpha1.Job, spec *batchv1alpha1.JobSpec, place int) string {
	if name := spec.Volumes[place].VolumeClaimName; name != "" {
		return name
	}
	return job.Name + "-pvc-" + hash12(string(job.UID)+"/"+strconv.Itoa(place))
}

// newClaim makes the claim of a volume.
func newClaim(job *batchv1alpha1.Job, name string, volume *batchv1alpha1.VolumeSpec) (*corev1.PersistentVolumeClaim, error) {
	object := &corev1.PersistentVolumeClaim{ObjectMeta: metadataOf(job, name)}
	if err := decodeClaim(volume, &object.Spec); err != nil {
		return nil, err
	}
	return object, nil
}

func decodeClaim(volume *batchv1alpha1.VolumeSpec, into *corev1.PersistentVolumeClaimSpec) error {
	if len(volume.VolumeClaim.Raw) == 0 {
		return nil
	}
	if err := quantity.CheckJSON(volume.VolumeClaim.Raw); err != nil {
		return err
	}
	return json.Unmarshal(volume.VolumeClaim.Raw, into)
}

// mountClaims mounts the Job's claims into the containers of a Pod, but not into its init
// containers.
func (b *builder) mountClaims(pod *corev1.Pod) {
	for _, claim := range b.claims {
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{
			Name: claim.volume,
			VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{
				ClaimName: claim.Name,
			}},
		})
		for _, container := range jobpods.AppContainers(&pod.Spec) {
			for _, path := range claim.paths {
				container.VolumeMounts = append(container.VolumeMounts, corev1.VolumeMount{Name: claim.volume, MountPath: path})
			}
		}
	}
}

// claimResources are claims in the status of a Job.
func claimResources(claims []claim) map[string]string {
	resources := map[string]string{}
	for _, claim := range claims {
		resources[claimPrefix+claim.Name] = claim.Name
	}
	return resources
}

// volumeName returns the name of a volume in a Pod: the Job's name and a suffix. If that is longer than 63 characters,
// the Job's name is cut.
func volumeName(job, suffix string) string {
	if most := validation.DNS1123LabelMaxLength - len("-"+suffix); len(job) > most {
		job = strings.TrimRight(job[:most], "-")
	}
	return job + "-" + suffix
}

// hash12 returns a hash of a text in 12 digits and lower-case letters.
func hash12(text string) string {
	sum := sha256.Sum256([]byte(text))
	digits := strings.Repeat("0", 12) + new(big.Int).SetBytes(sum[:]).Text(36)
	return digits[len(digits)-12:]
}
