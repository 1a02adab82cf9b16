// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"cmp"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	configv1alpha1 "github.com/lockstep-k8s/lockstep/apis/config/v1alpha1"
	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/internal/text"
	"github.com/lockstep-k8s/lockstep/internal/untyped"
)

// topologyOfVolcano returns the topology constraints for a group's networkTopology. obstacle is the reason why the gang
// can't be placed if no node label is configured for the tier that it asks for, else "".
func topologyOfVolcano(object map[string]any, tiers []configv1alpha1.Tier) (topology []schedulingv1alpha1.TopologyConstraint, obstacle string) {
	asked, found, err := unstructured.NestedFieldNoCopy(object, "spec", "networkTopology")
	fields, ok := asked.(map[string]any)
	if err != nil || !found || !ok {
		return nil, ""
	}
	if fields["mode"] == "soft" {
		widestFirst := slices.SortedFunc(slices.Values(tiers), func(a, b configv1alpha1.Tier) int { return -cmp.Compare(a.Tier, b.Tier) })
		for _, tier := range widestFirst {
			topology = append(topology, schedulingv1alpha1.TopologyConstraint{Key: tier.Key, Mode: schedulingv1alpha1.TopologyPreferred})
		}
		return topology, ""
	}
	wanted, limited := tierIn(fields)
	if !limited {
		return nil, ""
	}
	i := slices.IndexFunc(tiers, wanted.is)
	if i < 0 {
		return nil, fmt.Sprintf("the networkTopology asks for one domain of tier %s, and the argument podGroupAPIs.volcano.tiers of the scheduler has no node label for that", wanted)
	}
	return []schedulingv1alpha1.TopologyConstraint{{Key: tiers[i].Key, Mode: schedulingv1alpha1.TopologyRequired}}, ""
}

// wantedTier is a tier that a group names, by name or by number.
type wantedTier struct {
	number int32
	name   string
}

// maxTierName is the largest number of bytes of a tier's name that are read. There has to be a limit, because messages
// quote the name.
const maxTierName = 253

// tierIn returns the widest tier that a networkTopology allows. limited is false if it allows all tiers.
func tierIn(fields map[string]any) (wanted wantedTier, limited bool) {
	if name, _ := fields["highestTierName"].(string); name != "" {
		return wantedTier{name: text.Shorten(name, maxTierName)}, true
	}
	if _, set := fields["highestTierAllowed"]; set {
		return wantedTier{number: untyped.Number(fields["highestTierAllowed"])}, true
	}
	return wantedTier{}, false
}

func (w wantedTier) is(tier configv1alpha1.Tier) bool {
	if w.name != "" {
		return tier.Name == w.name
	}
	return tier.Tier == w.number
}

// String returns the name, or the number.
func (w wantedTier) String() string {
	return cmp.Or(w.name, fmt.Sprint(w.number))
}

// listIn returns a list in an object, nil if there is none.
func listIn(object map[string]any, path ...string) []any {
	given, _, _ := unstructured.NestedFieldNoCopy(object, path...)
	list, _ := given.([]any)
	return list
}
