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
	// maxNames is how many resources of a list count that are more than 0, CPU and memory first, then by
	// name: others may write any number.
	maxNames = 64
	// maxAmount is the largest amount that counts. It is more than any cluster has, and a few
	// thousand of it can be added up.
	maxAmount = 1 << 50
	// maxQuantity is how long a quantity is at most, in characters.
	maxQuantity = 64
)

// requestsPrefix is what a quota puts before a resource. Some tools write the names of quotas.
const requestsPrefix = "requests."

// Of are the amounts of a list of resources, as far as nodes can have them.
func Of(list corev1.ResourceList) Amounts {
	var amounts Amounts
	for _, name := range slices.SortedFunc(maps.Keys(list), func(a, b corev1.ResourceName) int { return compareNames(resourceOf(a), resourceOf(b)) }) {
		of := resourceOf(name)
		if amount := amountOf(of, list[name]); amount > amounts[of] && isOfNodes(of) && len(amounts) < maxNames {
			if amounts == nil {
				amounts = make(Amounts)
			}
			amounts[of] = amount // that of a quota and the resource itself mean the same, and the larger one counts
		}
	}
	return amounts
}

// Read are the amounts of a list of resources of an object of another project. What can't be read
// counts as 0.
func Read(list map[string]any) Amounts {
	quantities := make(corev1.ResourceList, len(list))
	for name, value := range list {
		if quantity, ok := readQuantity(value); ok {
			quantities[corev1.ResourceName(name)] = quantity
		}
	}
	return Of(quantities)
}

// longExponent is the end of a quantity that would take for ever to read; see package quantity.
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

// resourceOf is the resource of nodes that a name stands for.
func resourceOf(name corev1.ResourceName) corev1.ResourceName {
	return corev1.ResourceName(strings.TrimPrefix(string(name), requestsPrefix))
}

// amountOf is a quantity in the unit of Amounts.
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

// isOfNodes says whether nodes can have a resource. Those that only quotas know are none of them:
// limits.cpu, count/pods, gold.storageclass.storage.k8s.io/requests.storage.
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

// isDivisible says whether a resource of bytes can be cut anywhere.
func isDivisible(name corev1.ResourceName) bool {
	return name == corev1.ResourceMemory || name == corev1.ResourceEphemeralStorage
}

// hasPageSize says whether a name of huge pages says how large they are. A name may be as long as who
// writes it likes otherwise.
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
