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

// maxTopologyTiers bounds those of VolcanoJobs.
const maxTopologyTiers = 64

// schedulerNamesRequired names the two choices. There is no default: beside a running Volcano, two
// controllers would act on each Job. The chart has the same sentence.
const schedulerNamesRequired = `set [%[1]s] if Volcano runs in this cluster, too, ` +
	`or [%[1]s, volcano, ""] if it does not, to also run Jobs that name Volcano's scheduler or none`

func validateVolcanoJobs(c *ControllerConfiguration, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	jobs := c.VolcanoJobs
	names := path.Child("schedulerNames")
	if ptr.Deref(jobs.Enabled, false) && jobs.SchedulerNames == nil {
		errs = append(errs, field.Required(names, fmt.Sprintf(schedulerNamesRequired, ptr.Deref(c.GangSchedulerName, defaultGangScheduler))))
	}
	errs = append(errs, validateSchedulerNames(c, names, jobs.SchedulerNames, orNone)...)
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
