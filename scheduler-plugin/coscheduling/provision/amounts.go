// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package provision

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	resourcehelper "k8s.io/component-helpers/resource"

	"github.com/lockstep-k8s/lockstep/internal/text"
)

// Amounts are how much of which resources: CPU in millicores, memory, storage and huge pages in
// bytes, Pods and extended resources in their number. None is negative. What is not named is 0;
// nil is nothing.
type Amounts map[corev1.ResourceName]int64

// IsZero says whether it is nothing.
func (a Amounts) IsZero() bool {
	for _, amount := range a {
		if amount > 0 {
			return false
		}
	}
	return true
}

// Equal says whether both are as much.
func (a Amounts) Equal(b Amounts) bool { return a.Within(b) && b.Within(a) }

// Less is what is left without other amounts, of each resource 0 at least. Nothing is left out
// of it but what is 0.
func (a Amounts) Less(b Amounts) Amounts {
	left := make(Amounts, len(a))
	for name, amount := range a {
		if amount > b[name] {
			left[name] = amount - b[name]
		}
	}
	return left
}

// AtMost is of each resource the smaller amount.
func (a Amounts) AtMost(b Amounts) Amounts {
	least := make(Amounts, len(a))
	for name, amount := range a {
		if m := min(amount, b[name]); m > 0 {
			least[name] = m
		}
	}
	return least
}

// Plus is both together.
func (a Amounts) Plus(b Amounts) Amounts {
	sum := maps.Clone(a)
	if sum == nil {
		sum = make(Amounts, len(b))
	}
	sum.Add(b)
	return sum
}

// Add puts others on top. Nobody else may have a copy.
func (a Amounts) Add(b Amounts) {
	for name, amount := range b {
		a[name] += amount
	}
}

// WithoutPods is the same without places among the Pods of nodes.
func (a Amounts) WithoutPods() Amounts {
	without := maps.Clone(a)
	delete(without, corev1.ResourcePods)
	return without
}

// Within says whether others are as much or more of each resource.
func (a Amounts) Within(b Amounts) bool {
	for name, amount := range a {
		if amount > b[name] {
			return false
		}
	}
	return true
}

// Compare orders amounts by size, the larger behind the smaller. Devices count first, then memory, then CPU.
func (a Amounts) Compare(b Amounts) int {
	for _, name := range slices.Backward(a.Plus(b).names()) {
		if a[name] != b[name] {
			return cmp.Compare(a[name], b[name])
		}
	}
	return 0
}

// List is the same as a list of resources of Kubernetes.
func (a Amounts) List() corev1.ResourceList {
	list := make(corev1.ResourceList, len(a))
	for name, amount := range a {
		list[name] = *quantityOf(name, amount)
	}
	return list
}

// maxText is how long an amount is at most that people read, in bytes. Names are what others write.
const maxText = 1024

// String is what people read: 12 cpu, 48Gi memory. It is cut if it is long.
func (a Amounts) String() string {
	var parts []string
	for _, name := range a.names() {
		if a[name] > 0 {
			parts = append(parts, quantityOf(name, a[name]).String()+" "+string(name))
		}
	}
	if len(parts) == 0 {
		return "nothing"
	}
	return text.Shorten(strings.Join(parts, ", "), maxText-len("…"))
}

// names are the resources that are named, CPU and memory first.
func (a Amounts) names() []corev1.ResourceName {
	return slices.SortedFunc(maps.Keys(a), compareNames)
}

func compareNames(a, b corev1.ResourceName) int {
	order := func(name corev1.ResourceName) int {
		switch name {
		case corev1.ResourceCPU:
			return 0
		case corev1.ResourceMemory:
			return 1
		}
		return 2
	}
	return cmp.Or(cmp.Compare(order(a), order(b)), cmp.Compare(a, b))
}

// quantityOf is an amount as Kubernetes writes it.
func quantityOf(name corev1.ResourceName, amount int64) *resource.Quantity {
	switch {
	case name == corev1.ResourceCPU:
		return resource.NewMilliQuantity(amount, resource.DecimalSI)
	case isDivisible(name) || isHugePages(name):
		return resource.NewQuantity(amount, resource.BinarySI)
	default:
		return resource.NewQuantity(amount, resource.DecimalSI)
	}
}

// OfPod is what a Pod takes of a node.
func OfPod(pod *corev1.Pod) Amounts {
	amounts := Of(resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{}))
	if amounts == nil {
		amounts = make(Amounts)
	}
	amounts[corev1.ResourcePods] = 1
	return amounts
}
