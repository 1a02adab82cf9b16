// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package place

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/planner"
)

// maxReasons is how many different rejections a message names.
const maxReasons = 3

// rejections counts what plugins said of members that found no place, by message.
type rejections map[string]int

// add counts a rejection.
func (r rejections) add(status *fwk.Status) {
	message := status.Message()
	if plugin := status.Plugin(); plugin != "" {
		message = fmt.Sprintf("%s (%s)", message, plugin)
	}
	r[message]++
}

// explain returns the reason why a gang found no place. verified reports that there were plans, and plugins rejected
// all of them.
func explain(found *survey, verified bool, said rejections) *Shortfall {
	short := planner.Explain(found.world, found.gang)
	switch {
	case short.Needed == 0:
		return &Shortfall{Message: "no room for members above the minimum" + lackOfOne(found, found.world, found.gang)}
	case verified:
		return &Shortfall{Needed: short.Needed, Message: fmt.Sprintf("not all of the %d members that are needed find a place together: %s",
			short.Needed, topReasons(said))}
	default:
		return &Shortfall{Needed: short.Needed, Room: short.Placed, Most: short.Most, Certain: true,
			Message: fmt.Sprintf("there is room for %d of the %d members that are needed", short.Placed, short.Needed) + lack(found, short, "the others")}
	}
}

// lackOfOne returns why no member finds a place, as the rest of a sentence. The gang needs no particular number of
// members: its minimum is placed already.
func lackOfOne(found *survey, world *planner.World, gang *planner.Gang) string {
	one := *gang
	one.Min, one.MinRole = 1, nil
	return lack(found, planner.Explain(world, &one), "they")
}

// lack returns what the members without a place lack, as the rest of a sentence. members is the word that the sentence
// uses for members.
func lack(found *survey, short planner.Shortfall, members string) string {
	var b strings.Builder
	if short.NoDomain {
		fmt.Fprintf(&b, "; no node that may be used has the label %s", short.Key)
		return b.String()
	}
	if short.Domain != "" {
		fmt.Fprintf(&b, " in the best domain, %s=%s", short.Key, short.Domain)
	}
	if short.Resource != "" && short.Eligible > 0 {
		fmt.Fprintf(&b, "; %s are short of %s %s", members, quantity(short.Resource, short.Missing), short.Resource)
	}
	class := scarcest(found.classes, short.Role)
	if class == nil {
		return b.String()
	}
	if short.Resource == "" && class.wants.PerNode() == 1 {
		b.WriteString("; no two of them can share a node")
	}
	if reasons := class.reasons(); len(reasons) > 0 {
		fmt.Fprintf(&b, "; %d of %d nodes admit them: %s", count(class.fits), len(found.world.Nodes), topReasons(reasons))
	}
	return b.String()
}

// explainRestAbove returns why members above the minimum were left out of a placement.
func explainRestAbove(v *verification, rest int) string {
	message := fmt.Sprintf("no room for %d more members above the minimum", rest)
	index := make(map[string]int, len(v.found.world.Nodes))
	for n := range v.found.world.Nodes {
		index[v.found.world.Nodes[n].Name] = n
	}
	classOf := make(map[*corev1.Pod]int)
	for c, class := range v.found.classes {
		for _, pod := range class.members {
			classOf[pod] = c
		}
	}
	world, gang := v.found.world.Clone(), *v.found.gang
	gang.Classes = slices.Clone(gang.Classes)
	for _, p := range v.placements {
		class, free := &gang.Classes[classOf[p.Pod]], world.Nodes[index[p.Node]].Free
		for r, request := range class.Request {
			free[r] -= request
		}
		class.Count--
	}
	return message + lackOfOne(v.found, world, &gang)
}

// scarcest returns the class of a role that the fewest nodes admit. It returns the first of several such classes, and
// nil if the role has no members.
func scarcest(classes []*class, role string) *class {
	var scarcest *class
	for _, class := range classes {
		if class.role == role && (scarcest == nil || count(class.fits) < count(scarcest.fits)) {
			scarcest = class
		}
	}
	return scarcest
}

// quantity formats an amount as in a Pod's spec.
func quantity(name string, amount int64) string {
	switch corev1.ResourceName(name) {
	case corev1.ResourceCPU:
		return resource.NewMilliQuantity(amount, resource.DecimalSI).String()
	case corev1.ResourceMemory, corev1.ResourceEphemeralStorage:
		return resource.NewQuantity(amount, resource.BinarySI).String()
	default:
		return resource.NewQuantity(amount, resource.DecimalSI).String()
	}
}

// topReasons returns the most frequent reasons with their counts.
func topReasons(reasons map[string]int) string {
	names := slices.Sorted(maps.Keys(reasons))
	slices.SortStableFunc(names, func(a, b string) int { return -cmp.Compare(reasons[a], reasons[b]) })
	parts := make([]string, 0, maxReasons)
	for i, name := range names {
		if i == maxReasons {
			parts = append(parts, fmt.Sprintf("and %d other reasons", len(names)-i))
			break
		}
		parts = append(parts, fmt.Sprintf("%d %s", reasons[name], name))
	}
	return strings.Join(parts, ", ")
}

func count(flags []bool) int {
	n := 0
	for _, flag := range flags {
		if flag {
			n++
		}
	}
	return n
}
