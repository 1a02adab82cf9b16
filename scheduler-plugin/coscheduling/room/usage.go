// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package room

import (
	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/provision"
)

// Only resources are counted: other needs of members are rarely scarce, and a gang that lacks one looks for another
// place.

// TakesOf returns what a Pod takes of a node, including one place for a Pod.
func TakesOf(pod fwk.PodInfo) provision.Amounts {
	return AmountsOf(pod.CalculateResource().Resource, 1)
}

// AmountsOf returns resources of a node as Amounts, with a number of places for Pods.
func AmountsOf(of fwk.Resource, pods int64) provision.Amounts {
	all := make(provision.Amounts, 2)
	set := func(name corev1.ResourceName, amount int64) {
		if amount != 0 {
			all[name] = amount
		}
	}
	set(corev1.ResourceCPU, of.GetMilliCPU())
	set(corev1.ResourceMemory, of.GetMemory())
	set(corev1.ResourceEphemeralStorage, of.GetEphemeralStorage())
	set(corev1.ResourcePods, pods)
	for name, amount := range of.GetScalarResources() {
		set(name, amount)
	}
	return all
}

// Fits reports whether `takes` fits on a node beside what is reserved there. As in NodeResourcesFit, resources that are
// not requested do not matter. An extended resource that the node lacks does not matter either: a DeviceClass or an
// extender provides such a resource, and the plugins check the amount.
func Fits(takes, reserved provision.Amounts, node fwk.NodeInfo) bool {
	return lacks(takes, reserved, node) == nil
}

// lacks returns what is missing on a node for so much more, beside what is reserved there.
func lacks(takes, reserved provision.Amounts, node fwk.NodeInfo) (short provision.Amounts) {
	has, used := node.GetAllocatable(), node.GetRequested()
	for name, amount := range takes {
		all, taken := int64(0), int64(0)
		switch name {
		case corev1.ResourceCPU:
			all, taken = has.GetMilliCPU(), used.GetMilliCPU()
		case corev1.ResourceMemory:
			all, taken = has.GetMemory(), used.GetMemory()
		case corev1.ResourceEphemeralStorage:
			all, taken = has.GetEphemeralStorage(), used.GetEphemeralStorage()
		case corev1.ResourcePods:
			all, taken = int64(has.GetAllowedPodNumber()), int64(len(node.GetPods()))
		default:
			if all, taken = has.GetScalarResources()[name], used.GetScalarResources()[name]; all == 0 {
				continue
			}
		}
		if left := all - taken - reserved[name]; amount > 0 && amount > left {
			if short == nil {
				short = make(provision.Amounts)
			}
			short[name] = amount - left
		}
	}
	return short
}
