// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"fmt"
	"strings"

	"github.com/lockstep-k8s/lockstep/internal/untyped"
)

// A group of Volcano may have subGroupPolicies: Pods with the same values of some labels are a subgroup, and a policy
// asks for its size, number and place. The scheduler places the whole group by its minMember and its own topology. A
// warning names each field of a policy that is not enforced. A policy that would be violated by placing the Pods keeps
// the group waiting.

// ReasonSubGroups: the group's subGroupPolicy asks for something that is not enforced.
const ReasonSubGroups = "SubGroupPolicyIgnored"

// maxFields is how many fields a message names.
const maxFields = 4

// subgroupsOf returns warnings about a group's subGroupPolicies. obstacle is the reason why the gang can't be placed if
// a policy asks for a topology domain for each subgroup, else "".
func subgroupsOf(object map[string]any) (warnings []Warning, obstacle string) {
	var ignored []string
	for i, entry := range listIn(object, "spec", "subGroupPolicy") {
		policy, ok := entry.(map[string]any)
		if !ok {
			continue
		}
		field := func(name string) string { return fmt.Sprintf("spec.subGroupPolicy[%d].%s", i, name) }
		// A subgroup of size 1 is a Pod.
		if untyped.Number(policy["subGroupSize"]) > 1 {
			ignored = append(ignored, field("subGroupSize"))
		}
		if untyped.Number(policy["minSubGroups"]) > 0 {
			ignored = append(ignored, field("minSubGroups"))
		}
		topology, asked := policy["networkTopology"].(map[string]any)
		if !asked {
			continue
		}
		switch wanted, limited := tierIn(topology); {
		case topology["mode"] == "soft":
			ignored = append(ignored, field("networkTopology"))
		case limited && obstacle == "":
			obstacle = fmt.Sprintf("%s asks for one domain of tier %s for each subgroup, and the scheduler places the group as a whole: use spec.networkTopology, or a PodGroup for each subgroup",
				field("networkTopology"), wanted)
		}
	}
	if len(ignored) == 0 {
		return nil, obstacle
	}
	named := strings.Join(ignored[:min(len(ignored), maxFields)], ", ")
	if len(ignored) > maxFields {
		named += fmt.Sprintf(" and %d more fields", len(ignored)-maxFields)
	}
	return []Warning{{Reason: ReasonSubGroups, Message: "the scheduler does not enforce " + named +
		": the group is placed by spec.minMember and spec.minTaskMember. A PodGroup for each subgroup has each placed whole"}}, obstacle
}
