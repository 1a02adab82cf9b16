// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package provision

import (
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"
)

const (
	// maxNames is the largest number of resources of a list that count: CPU and memory first, then the others by name.
	// A list that a user writes may be of any length.
	maxNames = 64
	// maxAmount is the largest amount of a resource; higher amounts are reduced to it. No cluster has so much, and a
	// few thousand such amounts can be added without overflow.
	maxAmount = 1 << 50
	// maxQuantity is the maximum length of a quantity, in characters.
	maxQuantity = 64
)

// requestsPrefix stands before a resource name in a ResourceQuota. Some tools write such names into PodGroups, too.
const requestsPrefix = "requests."

// Of returns the amounts in a list of resources, without resources that nodes can't have.
func Of(list corev1.ResourceList) Amounts {
	var amounts Amounts
	for _, name := range slices.SortedFunc(maps.Keys(list), func(a, b corev1.ResourceName) int { return compareNames(resourceOf(a), resourceOf(b)) }) {
		of := resourceOf(name)
		if amount := amountOf(of, list[name]); amount > amounts[of] && isOfNodes(of) && len(amounts) < maxNames {
			if amounts == nil {
				amounts = make(Amounts)
			}
			amounts[of] = amount // the resource and its quota name mean the same: the larger one counts
		}
	}
	return amounts
}

// Read returns the amounts in a resource list of another project's object. An invalid quantity counts as 0.
func Read(list map[string]any) Amounts {
	quantities := make(corev1.ResourceList, len(list))
	for name, value := range list {
		if quantity, ok := readQuantity(value); ok {
			quantities[corev1.ResourceName(name)] = quantity
		}
	}
	return Of(quantities)
}

// longExponent matches the end of a quantity that would take too long to parse; see package quantity.
var longExponent = regexp.MustCompile(`[eE][+-]?[0-9]{4,}$`)

func readQuantity(value any) (resource.Quantity, bool) {
	var text string
	switch v := value.(type) {
	case string:
		text = v
	case int64:
		text = strconv.FormatInt(v, 10)
	case float64:
		text = strconv.FormatFloat(v, 'f', 3, 64)
	default:
		return resource.Quantity{}, false
	}
	if len(text) > maxQuantity || longExponent.MatchString(text) {
		return resource.Quantity{}, false
	}
	quantity, err := resource.ParseQuantity(text)
	return quantity, err == nil
}

// resourceOf returns the resource of nodes that a name stands for.
func resourceOf(name corev1.ResourceName) corev1.ResourceName {
	return corev1.ResourceName(strings.TrimPrefix(string(name), requestsPrefix))
}

// amountOf returns a quantity in the unit of Amounts.
func amountOf(name corev1.ResourceName, quantity resource.Quantity) int64 {
	if quantity.Sign() <= 0 {
		return 0
	}
	if quantity.CmpInt64(maxAmount/1000) >= 0 {
		if name == corev1.ResourceCPU || quantity.CmpInt64(maxAmount) >= 0 {
			return maxAmount
		}
	}
	if name == corev1.ResourceCPU {
		return quantity.MilliValue()
	}
	return quantity.Value()
}

// isOfNodes reports whether nodes can have a resource. They can't have resources of ResourceQuotas, such as limits.cpu,
// count/pods and gold.storageclass.storage.k8s.io/requests.storage.
func isOfNodes(name corev1.ResourceName) bool {
	if name == corev1.ResourceCPU || name == corev1.ResourcePods || isDivisible(name) {
		return true
	}
	if isHugePages(name) {
		return hasPageSize(name)
	}
	domain, _, qualified := strings.Cut(string(name), "/")
	return qualified && domain != "count" && !strings.HasPrefix(domain, "limits.") &&
		domain != "kubernetes.io" && !strings.HasSuffix(domain, ".kubernetes.io") &&
		!strings.HasSuffix(domain, ".storageclass.storage.k8s.io") && len(validation.IsQualifiedName(string(name))) == 0
}

// isDivisible reports whether any number of bytes of a resource can be split off.
func isDivisible(name corev1.ResourceName) bool {
	return name == corev1.ResourceMemory || name == corev1.ResourceEphemeralStorage
}

// hasPageSize reports whether the name of a huge-pages resource has a valid page size. The name comes from a user, so
// it may be of any length.
func hasPageSize(name corev1.ResourceName) bool {
	if len(validation.IsQualifiedName(string(name))) > 0 {
		return false
	}
	size, ok := readQuantity(string(name[len(corev1.ResourceHugePagesPrefix):]))
	return ok && size.Sign() > 0
}

func isHugePages(name corev1.ResourceName) bool {
	return strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix)
}
