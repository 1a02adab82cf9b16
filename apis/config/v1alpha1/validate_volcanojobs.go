// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
)

// Bounds of VolcanoJobs.
const (
	maxSchedulerNames = 16
	maxTopologyTiers  = 64
)

func validateVolcanoJobs(c *ControllerConfiguration, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	jobs := c.VolcanoJobs
	names := path.Child("schedulerNames")
	if n := len(jobs.SchedulerNames); jobs.SchedulerNames != nil && (n < 1 || n > maxSchedulerNames) {
		errs = append(errs, field.Invalid(names, n, fmt.Sprintf("must have from 1 to %d names", maxSchedulerNames)))
	}
	for i, name := range jobs.SchedulerNames {
		switch at := names.Index(i); {
		case slices.Contains(jobs.SchedulerNames[:i], name):
			errs = append(errs, field.Duplicate(at, name))
		case name == ptr.Deref(c.GangSchedulerName, ""):
			// What is wrong with it is told there.
		case len(name) > validation.DNS1123LabelMaxLength:
			errs = append(errs, field.Invalid(at, name, fmt.Sprintf("must have at most %d characters", validation.DNS1123LabelMaxLength)))
		case name != "":
			for _, problem := range validation.IsDNS1123Subdomain(name) {
				errs = append(errs, field.Invalid(at, name, problem))
			}
		}
	}
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
