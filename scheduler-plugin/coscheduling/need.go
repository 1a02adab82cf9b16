// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/line"
)

// need is what the gang of the cycle lacks. It is known if all its classes were
// short of room alone, and nobody's work could be taken: otherwise a Pod that
// ends may help by being one victim less.
func (c *cycle) need(why *shortfall) line.Need {
	if !why.certain && why.needed > 0 || c.mightPreempt && c.engine.room.Of(c.view.key) == nil {
		return line.Need{}
	}
	n := line.Need{Members: max(1, why.needed-why.room)}
	resources := newResources(c.classes)
	for _, class := range c.classes {
		if !class.labelBlind || !class.monotone {
			return line.Need{}
		}
		n.Cordoned = n.Cordoned || toleratesCordon(class.info.Pod)
		request := resources.request(class.info)
		ofNodes := c.ofNodes(resources, request)
		if n.Least == nil {
			n.Smallest, n.Least = make(line.Room), make(line.Room)
			for r, name := range resources.names {
				n.Smallest[name], n.Least[name] = request[r], ofNodes[r]
			}
			continue
		}
		for r, name := range resources.names {
			n.Least[name] = min(n.Least[name], ofNodes[r])
			if q := request[r]; n.Smallest[name] == 0 || q > 0 && q < n.Smallest[name] {
				n.Smallest[name] = q
			}
		}
	}
	return n
}

// ofNodes is a request without the extended resources that nodes need not have: an
// extender provides them, or a class of devices.
func (c *cycle) ofNodes(of resources, request []int64) []int64 {
	request = slices.Clone(request)
	extended := len(of.names) - len(of.scalars)
	for i, name := range of.scalars {
		if !c.provided[name] {
			request[extended+i] = 0
		}
	}
	return request
}

func toleratesCordon(pod *corev1.Pod) bool {
	return corev1helpers.TolerationsTolerateTaint(klog.Background(), pod.Spec.Tolerations,
		&corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule}, false)
}

// podEnded is the event that a Pod has left its node.
func podEnded(pod *corev1.Pod) line.Event {
	for i := range pod.Spec.Containers {
		for _, port := range pod.Spec.Containers[i].Ports {
			if port.HostPort != 0 {
				return line.Event{Kind: line.PodEnded, Unbounded: true}
			}
		}
	}
	info, err := framework.NewPodInfo(pod)
	if err != nil {
		return line.Event{Kind: line.PodEnded, Unbounded: true}
	}
	return line.Event{Kind: line.PodEnded, Room: roomOf(info.CalculateResource().Resource, 0)}
}

// nodeChanged is the event that a node is new, or has changed.
func nodeChanged(node *corev1.Node) line.Event {
	allocatable := framework.NewResource(node.Status.Allocatable)
	return line.Event{Kind: line.NodeChanged, Cordoned: node.Spec.Unschedulable,
		Room: roomOf(allocatable, int64(allocatable.GetAllowedPodNumber()))}
}

// roomOf is an amount of resources by name, in the planner's units.
func roomOf(amount fwk.Resource, pods int64) line.Room {
	room := make(line.Room)
	of := resourcesOf(slices.Collect(maps.Keys(amount.GetScalarResources())))
	for r, q := range of.quantities(amount, pods) {
		room[of.names[r]] = q
	}
	return room
}
