// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/planner"
)

// maxReasons is how many different rejections a message names.
const maxReasons = 3

// explain says in a sentence why the gang found no place. verified says that
// there were plans, and plugins rejected all of them.
func (c *cycle) explain(world *planner.World, gang *planner.Gang, verified bool) string {
	short := planner.Explain(world, gang)
	if short.Needed == 0 {
		return "no room for members above the minimum"
	}
	if verified {
		return fmt.Sprintf("%s, but not together: %s", roomFor(short.Needed, short.Needed), topReasons(c.rejections))
	}
	var b strings.Builder
	b.WriteString(roomFor(short.Placed, short.Needed))
	if short.NoDomain {
		fmt.Fprintf(&b, "; no node that may be used has the label %s", short.Key)
		return b.String()
	}
	if short.Domain != "" {
		fmt.Fprintf(&b, " in the best domain, %s=%s", short.Key, short.Domain)
	}
	if short.Resource != "" && short.Eligible > 0 {
		fmt.Fprintf(&b, "; the others lack %s of %s", quantity(short.Resource, short.Missing), short.Resource)
	}
	for _, class := range c.classes {
		if class.role == short.Role && len(class.reasons) > 0 {
			fmt.Fprintf(&b, "; %d of %d nodes admit them: %s", count(class.fits), len(world.Nodes), topReasons(class.reasons))
			break
		}
	}
	return b.String()
}

func roomFor(placed, needed int) string {
	return fmt.Sprintf("there is room for %d of %d members that are needed", placed, needed)
}

// quantity writes an amount as people write it in a Pod.
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

// topReasons lists the most frequent reasons with their counts.
func topReasons(reasons map[string]int) string {
	names := sortedKeys(reasons)
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
