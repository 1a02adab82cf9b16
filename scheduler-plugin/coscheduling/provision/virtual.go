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

// Cut cuts a rest into virtual members of a size that a gang has: into as many as are still to
// come if that is known, otherwise into the fewest of which none takes more of anything than the
// model does. What the model does not take does not count for that. CPU, memory and storage are
// divided evenly; extended resources and huge pages are dealt out, each to the next member in
// turn. It returns what each member takes beside its place among the Pods of a node, none less than those behind it.
func Cut(rest, model Amounts, toCome int) []Amounts {
	if rest.IsZero() {
		return nil
	}
	n := toCome
	if n <= 0 {
		n = fewest(rest, model)
	}
	cut := make([]Amounts, min(n, maxVirtual))
	for i := range cut {
		cut[i] = make(Amounts)
		for name, amount := range rest {
			if share := share(name, amount, len(cut), i); share > 0 && name != corev1.ResourcePods {
				cut[i][name] = share
			}
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
