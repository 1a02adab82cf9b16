// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package provision

import (
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// maxVirtual is the maximum number of virtual members of a gang.
const maxVirtual = 1000

// toComeMark is contained in the UID of each virtual member, and in no UID of a real Pod.
const toComeMark = "/to-come/"

// UID returns the UID of the i-th virtual member of a group.
func UID(group types.UID, i int) types.UID {
	return types.UID(string(group) + toComeMark + strconv.Itoa(i))
}

// IsVirtual reports whether a Pod is a virtual member.
func IsVirtual(pod *corev1.Pod) bool {
	return strings.Contains(string(pod.UID), toComeMark)
}

// Cut divides `rest` among virtual members. It returns what each of them takes, without places for Pods, the larger
// first. If toCome is not 0, there are toCome members. Otherwise there are as few as possible without any of them
// taking more of a resource than model takes; for this, resources that model does not take are ignored. CPU, memory and
// storage are divided evenly. Extended resources and huge pages are divided in whole units.
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

// fewest returns the smallest number of virtual members with which none of them takes more of a resource than model
// takes.
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

// share returns what the i-th of n members gets.
func share(name corev1.ResourceName, amount int64, n, i int) int64 {
	u := unit(name)
	units := (amount + u - 1) / u
	each := units / int64(n)
	if int64(i) < units%int64(n) {
		each++
	}
	return min(each*u, amount)
}

// unit returns the smallest amount of an indivisible resource: a huge page, a device.
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
