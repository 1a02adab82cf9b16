// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package provision

import (
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// maxVirtual is into how many virtual members a rest is cut at most.
const maxVirtual = 1000

// Each virtual member takes a place among the Pods of its node. A rest is cut into minVirtual at most,
// which is what one node usually has, unless it is large enough for more: it has to have a Pod, a
// device, a huge page, or so much of another resource for each.
const (
	minVirtual  = 110
	leastCPU    = 100       // millicores
	leastMemory = 128 << 20 // bytes
)

// toComeMark is in the UID of each virtual member, and of no Pod.
const toComeMark = "/to-come/"

// UID is that of the i-th virtual member of a group.
func UID(group types.UID, i int) types.UID {
	return types.UID(string(group) + toComeMark + strconv.Itoa(i))
}

// IsVirtual says whether a Pod is a virtual member.
func IsVirtual(pod *corev1.Pod) bool {
	return strings.Contains(string(pod.UID), toComeMark)
}

// Virtual are members that are alike, in the place of members to come.
type Virtual struct {
	// Each is what one of them takes, beside its place among the Pods of a node.
	Each  Amounts
	Count int
}

// Cut cuts a rest into virtual members of a size that a gang has: into as many as are still to
// come if that is known, otherwise into the fewest of which none takes more of anything than the
// model does. What the model does not take does not count for that. CPU, memory and storage are
// divided evenly; extended resources and huge pages are dealt out, each to the next member in
// turn. They are no more than what is asked for is worth, as each takes a place among the Pods of its
// node. Members that are alike are one element of what it returns, and none takes less than
// those behind it.
func Cut(rest, model Amounts, toCome int) []Virtual {
	if rest.IsZero() {
		return nil
	}
	n := toCome
	if n <= 0 {
		n = fewest(rest, model)
	}
	n = max(1, min(n, most(rest)))
	var cut []Virtual
	for i := range n {
		each := make(Amounts)
		for name, amount := range rest {
			if name == corev1.ResourcePods {
				continue // each of them is one
			}
			if share := share(name, amount, n, i); share > 0 {
				each[name] = share
			}
		}
		if last := len(cut) - 1; last >= 0 && cut[last].Each.Equal(each) {
			cut[last].Count++
		} else {
			cut = append(cut, Virtual{Each: each, Count: 1})
		}
	}
	return cut
}

// fewest is the least number of virtual members of which none takes more than the model.
func fewest(rest, model Amounts) int {
	n := int64(1)
	for name, amount := range rest {
		most := model[name]
		if name == corev1.ResourcePods {
			most = 1
		}
		if most > 0 {
			most = max(most-most%unit(name), unit(name))
			n = max(n, (amount+most-1)/most)
		}
	}
	return int(min(n, maxVirtual))
}

// most is into how many virtual members a rest is cut at most.
func most(rest Amounts) int {
	n := int64(minVirtual)
	for name, amount := range rest {
		least := unit(name)
		switch {
		case name == corev1.ResourceCPU:
			least = leastCPU
		case isDivisible(name):
			least = leastMemory
		}
		n = max(n, amount/least)
	}
	return int(min(n, maxVirtual))
}

// share is what the i-th of n members gets.
func share(name corev1.ResourceName, amount int64, n, i int) int64 {
	u := unit(name)
	units := (amount + u - 1) / u
	each := units / int64(n)
	if int64(i) < units%int64(n) {
		each++
	}
	return min(each*u, amount)
}

// unit is the amount of a resource that can't be divided: a huge page, a device.
func unit(name corev1.ResourceName) int64 {
	if !isHugePages(name) {
		return 1
	}
	size, ok := readQuantity(string(name[len(corev1.ResourceHugePagesPrefix):]))
	if !ok {
		return 1
	}
	return max(1, amountOf(name, size))
}
