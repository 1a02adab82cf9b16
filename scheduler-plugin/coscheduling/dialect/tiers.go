// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"cmp"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/internal/text"
	"github.com/lockstep-k8s/lockstep/internal/untyped"
)

// Tier is a tier of Volcano's network topology, as nodes have it.
type Tier struct {
	// Number is the tier's number: the higher, the farther apart are its nodes. Name may name it.
	Number int32
	Name   string
	// Key is the label that nodes of one domain of the tier share.
	Key string
}

// topologyOfVolcano is what the networkTopology of a group of Volcano's asks for, and the obstacle if it
// can't be had: one domain of a tier that no label stands for.
func topologyOfVolcano(object map[string]any, tiers []Tier) (topology []schedulingv1alpha1.TopologyConstraint, obstacle string) {
	asked, found, err := unstructured.NestedFieldNoCopy(object, "spec", "networkTopology")
	fields, ok := asked.(map[string]any)
	if err != nil || !found || !ok {
		return nil, ""
	}
	if fields["mode"] == "soft" {
		widestFirst := slices.SortedFunc(slices.Values(tiers), func(a, b Tier) int { return -cmp.Compare(a.Number, b.Number) })
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

// wantedTier is a tier that a group names, by its name or its number.
type wantedTier struct {
	number int32
	name   string
}

// maxTierName is how many bytes of the name of a tier count: messages quote it.
const maxTierName = 253

// tierIn is the widest tier that a networkTopology allows; limited is false if it allows all.
func tierIn(fields map[string]any) (wanted wantedTier, limited bool) {
	if name, _ := fields["highestTierName"].(string); name != "" {
		return wantedTier{name: text.Shorten(name, maxTierName)}, true
	}
	if _, set := fields["highestTierAllowed"]; set {
		return wantedTier{number: untyped.Number(fields["highestTierAllowed"])}, true
	}
	return wantedTier{}, false
}

func (w wantedTier) is(tier Tier) bool {
	if w.name != "" {
		return tier.Name == w.name
	}
	return tier.Number == w.number
}

// String is the name, or the number.
func (w wantedTier) String() string {
	return cmp.Or(w.name, fmt.Sprint(w.number))
}

// listIn is a list in an object, nil if there is none.
func listIn(object map[string]any, path ...string) []any {
	given, _, _ := unstructured.NestedFieldNoCopy(object, path...)
	list, _ := given.([]any)
	return list
}
