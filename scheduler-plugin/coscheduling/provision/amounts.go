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

// Amounts are amounts of resources. Units: CPU in millicores; memory, storage and huge pages in bytes; Pods and
// extended resources by number. No amount is negative. A missing resource is 0, and nil is empty.
type Amounts map[corev1.ResourceName]int64

// IsZero reports whether all amounts are 0.
func (a Amounts) IsZero() bool {
	for _, amount := range a {
		if amount > 0 {
			return false
		}
	}
	return true
}

// Equal reports whether two Amounts are equal.
func (a Amounts) Equal(b Amounts) bool { return a.Within(b) && b.Within(a) }

// Less returns a minus b, but not below 0 for any resource. Resources with nothing left are dropped.
func (a Amounts) Less(b Amounts) Amounts {
	left := make(Amounts, len(a))
	for name, amount := range a {
		if amount > b[name] {
			left[name] = amount - b[name]
		}
	}
	return left
}

// AtMost returns the smaller amount of each resource.
func (a Amounts) AtMost(b Amounts) Amounts {
	least := make(Amounts, len(a))
	for name, amount := range a {
		if m := min(amount, b[name]); m > 0 {
			least[name] = m
		}
	}
	return least
}

// Plus returns the sum.
func (a Amounts) Plus(b Amounts) Amounts {
	sum := maps.Clone(a)
	if sum == nil {
		sum = make(Amounts, len(b))
	}
	sum.Add(b)
	return sum
}

// Add adds b in place. The caller must be the only user of a.
func (a Amounts) Add(b Amounts) {
	for name, amount := range b {
		a[name] += amount
	}
}

// WithoutPods returns the amounts without places for Pods.
func (a Amounts) WithoutPods() Amounts {
	without := maps.Clone(a)
	delete(without, corev1.ResourcePods)
	return without
}

// Within reports whether a is at most b for each resource.
func (a Amounts) Within(b Amounts) bool {
	for name, amount := range a {
		if amount > b[name] {
			return false
		}
	}
	return true
}

// Compare returns a negative number if a is smaller than b. Devices count first, then memory, then CPU.
func (a Amounts) Compare(b Amounts) int {
	for _, name := range slices.Backward(a.Plus(b).names()) {
		if a[name] != b[name] {
			return cmp.Compare(a[name], b[name])
		}
	}
	return 0
}

// List returns the amounts as a Kubernetes ResourceList.
func (a Amounts) List() corev1.ResourceList {
	list := make(corev1.ResourceList, len(a))
	for name, amount := range a {
		list[name] = *quantityOf(name, amount)
	}
	return list
}

// maxText is the maximum length of String's result in bytes. There has to be one, because names of resources come from
// users.
const maxText = 1024

// String returns the amounts for messages, such as "12 cpu, 48Gi memory". It cuts a long text.
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

// names returns the names of the resources, CPU and memory first.
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

// quantityOf returns an amount as a Kubernetes quantity.
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

// OfPod returns what a Pod takes of a node.
func OfPod(pod *corev1.Pod) Amounts {
	amounts := Of(resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{}))
	if amounts == nil {
		amounts = make(Amounts)
	}
	amounts[corev1.ResourcePods] = 1
	return amounts
}
