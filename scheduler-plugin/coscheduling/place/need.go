// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package place

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/podclass"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/queue"
)

// needOf returns what a gang without a reservation lacks. The need is known only if resources alone kept out all of the
// gang's classes. If the gang may preempt, the need is what would be missing even if all preemptible Pods were gone, so
// the end of a preemptible Pod does not count as help.
func needOf(found *survey, why *Shortfall, s *seeker) queue.Need {
	unknown := queue.Need{RegardsOthers: why.Need.RegardsOthers, IgnoresLabels: why.Certain && isBlind(found.classes)}
	if !why.Certain || s.mightPreempt && (s.unsure || s.lacks == 0) {
		return unknown
	}
	n := unknown
	n.Members = max(1, why.Needed-why.Most)
	if s.mightPreempt {
		n.Members = s.lacks
		if s.gang.MayPreempt {
			n.Takes = &s.gang.Rank.Priority
		}
	}
	resources := newResources(found.classes)
	n.Smallest, n.Least = make(queue.Room), make(queue.Room)
	for i, class := range found.classes {
		if !class.labelBlind || !class.regard.isMonotone() || len(class.devices) > 0 {
			return unknown // events of Pods and nodes don't show devices
		}
		n.Cordoned = n.Cordoned || toleratesCordon(class.info.Pod)
		request := resources.request(class)
		ofNodes := ofNodes(resources, request, found.provided)
		for r, name := range resources.names {
			if i == 0 || ofNodes[r] < n.Least[name] {
				n.Least[name] = ofNodes[r]
			}
			if q := request[r]; n.Smallest[name] == 0 || q > 0 && q < n.Smallest[name] {
				n.Smallest[name] = q
			}
		}
	}
	return n
}

// ofNodes returns a request without the extended resources that an extender or a DeviceClass provides, as nodes need
// not have these.
func ofNodes(of resources, request []int64, provided map[corev1.ResourceName]bool) []int64 {
	request = slices.Clone(request)
	extended := len(of.names) - len(of.scalars)
	for i, name := range of.scalars {
		if !provided[name] {
			request[extended+i] = 0
		}
	}
	return request
}

func toleratesCordon(pod *corev1.Pod) bool {
	return corev1helpers.TolerationsTolerateTaint(klog.Background(), pod.Spec.Tolerations,
		&corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule}, false)
}

// PodEnded returns the event for the queue when a Pod has left its node.
func PodEnded(pod *corev1.Pod) queue.Event {
	info, err := framework.NewPodInfo(pod)
	if err != nil || len(podclass.HostPorts(pod)) > 0 {
		return queue.Event{Kind: queue.PodEnded, Unbounded: true}
	}
	return queue.Event{Kind: queue.PodEnded, Room: roomOf(info.CalculateResource().Resource, 0)}
}

// NodeChanged returns the event for the queue when a node is new or has changed.
func NodeChanged(node *corev1.Node) queue.Event {
	allocatable := framework.NewResource(node.Status.Allocatable)
	return queue.Event{Kind: queue.NodeChanged, Cordoned: node.Spec.Unschedulable,
		Room: roomOf(allocatable, int64(allocatable.GetAllowedPodNumber()))}
}

// roomOf returns an amount of resources by name, in the planner's units.
func roomOf(amount fwk.Resource, pods int64) queue.Room {
	room := make(queue.Room)
	of := resourcesOf(slices.Collect(maps.Keys(amount.GetScalarResources())))
	for r, q := range of.quantities(amount, pods) {
		room[of.names[r]] = q
	}
	return room
}
