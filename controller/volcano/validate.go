// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package volcano

import (
	"encoding/json"
	"fmt"
	"unicode/utf8"

	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	batchv1alpha1 "github.com/lockstep-k8s/lockstep/apis/batch/v1alpha1"
	"github.com/lockstep-k8s/lockstep/controller/jobpods"
)

// Bounds of a spec, in addition to the bounds in the API package. The CRD of Lockstep has the same bounds.
const (
	maxPolicies     = 16
	maxEvents       = 8
	maxVolumes      = 32
	maxMountPath    = 4096
	maxPlugins      = 16
	maxFlags        = 32
	maxFlag         = 16384
	maxDependencies = 100
	maxDuration     = 64
)

// Validate returns what is wrong with a Job. Lockstep's CRD refuses such a Job, except for what CEL can't check: cycles
// of dependencies, flags of plugins, and errors that show only when a template is decoded. A CRD of another product may
// accept anything.
//
// Validate does not check that immutable fields are unchanged, which needs the earlier Job.
func Validate(job *batchv1alpha1.Job) field.ErrorList {
	var errs field.ErrorList
	if problems := validation.IsDNS1123Label(job.Name); len(problems) > 0 {
		errs = append(errs, field.Invalid(field.NewPath("metadata", "name"), job.Name,
			"metadata.name must be at most 63 lower-case letters, digits and hyphens, starting and ending with a letter or digit, because it is a label value and a part of host names"))
	}
	return append(errs, validateSpec(&job.Spec, field.NewPath("spec"))...)
}

func validateSpec(spec *batchv1alpha1.JobSpec, path *field.Path) field.ErrorList {
	if errs := tooMany(path.Child("tasks"), len(spec.Tasks), batchv1alpha1.MaxTasks); len(errs) > 0 {
		return errs // To look at each of them would take too long.
	}
	var errs field.ErrorList
	replicas := int64(0)
	for i := range spec.Tasks {
		replicas += int64(max(0, spec.Tasks[i].Replicas))
	}
	if int64(spec.MinAvailable) > replicas {
		errs = append(errs, field.Invalid(path.Child("minAvailable"), spec.MinAvailable,
			"job 'minAvailable' should not be greater than total replicas in tasks"))
	}
	if replicas > batchv1alpha1.MaxReplicas {
		errs = append(errs, field.Invalid(path.Child("tasks"), replicas,
			fmt.Sprintf("must have at most %d replicas, which is their sum over all tasks", batchv1alpha1.MaxReplicas)))
	}
	errs = append(errs, jobpods.AtLeast(path.Child("minAvailable"), spec.MinAvailable, 0)...)
	errs = append(errs, jobpods.AtLeast(path.Child("maxRetry"), spec.MaxRetry, 0)...)
	errs = append(errs, jobpods.AtLeastIfSet(path.Child("ttlSecondsAfterFinished"), spec.TTLSecondsAfterFinished, 0)...)
	errs = append(errs, jobpods.AtLeastIfSet(path.Child("minSuccess"), spec.MinSuccess, 1)...)
	if spec.RunningEstimate != nil {
		errs = append(errs, validateDuration(*spec.RunningEstimate, path.Child("runningEstimate"))...)
	}
	errs = append(errs, tooLong(path.Child("schedulerName"), spec.SchedulerName, validation.DNS1123LabelMaxLength)...)
	errs = append(errs, jobpods.Subdomain(path.Child("queue"), spec.Queue)...)
	errs = append(errs, jobpods.Subdomain(path.Child("priorityClassName"), spec.PriorityClassName)...)
	errs = append(errs, validateTopology(spec.NetworkTopology, path.Child("networkTopology"))...)
	errs = append(errs, validateVolumes(spec.Volumes, path.Child("volumes"))...)
	errs = append(errs, validatePolicies(spec.Policies, path.Child("policies"))...)
	errs = append(errs, validatePlugins(spec, path.Child("plugins"))...)
	return append(errs, validateTasks(spec, path)...)
}

func validateTopology(topology *batchv1alpha1.NetworkTopologySpec, path *field.Path) field.ErrorList {
	if topology == nil {
		return nil
	}
	errs := jobpods.OneOf(path.Child("mode"), topology.Mode, "", batchv1alpha1.NetworkTopologyHard, batchv1alpha1.NetworkTopologySoft)
	errs = append(errs, tooLong(path.Child("highestTierName"), topology.HighestTierName, validation.DNS1123SubdomainMaxLength)...)
	if tier := topology.HighestTierAllowed; tier != nil {
		errs = append(errs, jobpods.AtLeast(path.Child("highestTierAllowed"), *tier, 0)...)
		if topology.HighestTierName != "" {
			errs = append(errs, field.Invalid(path, topology.HighestTierName, "must not specify highestTierAllowed and highestTierName simultaneously"))
		}
	}
	return errs
}

// CheckSpec returns an error if a spec, in JSON, must not be decoded because a template would take far more memory than
// its text. The Job then counts as one with a spec that can't be decoded.
func CheckSpec(raw []byte) error {
	if err := jobpods.CheckSpec(raw); err != nil {
		return err
	}
	var lists struct {
		Tasks   []json.RawMessage `json:"tasks"`
		Volumes []json.RawMessage `json:"volumes"`
	}
	if err := utiljson.Unmarshal(raw, &lists); err != nil {
		return err
	}
	path := field.NewPath("spec")
	errs := tooMany(path.Child("tasks"), len(lists.Tasks), batchv1alpha1.MaxTasks)
	errs = append(errs, tooMany(path.Child("volumes"), len(lists.Volumes), maxVolumes)...)
	return errs.ToAggregate()
}

// tooMany says if a list is too long, and tooLong if a text is.
func tooMany(path *field.Path, n, most int) field.ErrorList {
	if n > most {
		return field.ErrorList{field.TooMany(path, n, most)}
	}
	return nil
}

func tooLong(path *field.Path, text string, most int) field.ErrorList {
	if utf8.RuneCountInString(text) > most {
		return field.ErrorList{field.TooLong(path, "", most)}
	}
	return nil
}
