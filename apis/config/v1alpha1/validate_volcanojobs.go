// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// maxTopologyTiers bounds those of VolcanoJobs.
const maxTopologyTiers = 64

func validateVolcanoJobs(c *ControllerConfiguration, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	jobs := c.VolcanoJobs
	errs = append(errs, validateSchedulerNames(c, path.Child("schedulerNames"), jobs.SchedulerNames, orNone)...)
	tiers := path.Child("topologyTiers")
	if n := len(jobs.TopologyTiers); n > maxTopologyTiers {
		errs = append(errs, field.Invalid(tiers, n, fmt.Sprintf("must have at most %d tiers", maxTopologyTiers)))
	}
	for _, tier := range slices.Sorted(maps.Keys(jobs.TopologyTiers)) {
		if tier == "" {
			errs = append(errs, field.Invalid(tiers, tier, "must have the number or the name of a tier as key"))
		}
		for _, problem := range validation.IsQualifiedName(jobs.TopologyTiers[tier]) {
			errs = append(errs, field.Invalid(tiers.Key(tier), jobs.TopologyTiers[tier], problem))
		}
	}
	return errs
}
