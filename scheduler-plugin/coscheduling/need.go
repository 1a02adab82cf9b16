// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// need is what a gang that found no place must see happen before it can have
// one: a lower bound, so that an event is never ignored that would have helped.
// The zero need is that anything may help.
type need struct {
	// members is how many more members must get room, in the best domain. 0: it
	// is not only room that they lack.
	members int
	// smallest is the smallest request among the classes that is not zero, and
	// least the smallest of all, for each of resources.
	resources       resources
	smallest, least []int64
	// cordoned says that a member may be on a node that is cordoned.
	cordoned bool
}

// need is what the gang of the cycle lacks. It is known if all its classes were
// short of room alone, and nobody's work could be taken: otherwise a Pod that
// ends may help by being one victim less.
func (c *cycle) need(why *shortfall) need {
	if !why.certain && why.needed > 0 || c.mightPreempt && c.engine.room.Of(c.view.key) == nil {
		return need{}
	}
	n := need{members: max(1, why.needed-why.room), resources: newResources(c.classes)}
	for _, class := range c.classes {
		if !class.labelBlind || !class.monotone {
			return need{}
		}
		n.cordoned = n.cordoned || toleratesCordon(class.info.Pod)
		request := n.resources.request(class.info)
		ofNodes := c.ofNodes(n.resources, request)
		if n.least == nil {
			n.smallest, n.least = request, ofNodes
			continue
		}
		for r, q := range request {
			n.least[r] = min(n.least[r], ofNodes[r])
			if n.smallest[r] == 0 || q > 0 && q < n.smallest[r] {
				n.smallest[r] = q
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

// leftover is what a Pod leaves where it has ended.
type leftover struct {
	resources fwk.Resource
	// unknown says that it may be more than its requests: a host port, for which
	// the rest of the node may be free already.
	unknown bool
}

func newRoom(ended *corev1.Pod) leftover {
	for i := range ended.Spec.Containers {
		for _, port := range ended.Spec.Containers[i].Ports {
			if port.HostPort != 0 {
				return leftover{unknown: true}
			}
		}
	}
	info, err := framework.NewPodInfo(ended)
	if err != nil {
		return leftover{unknown: true}
	}
	return leftover{resources: info.CalculateResource().Resource}
}

// gain is how many members at most find room where a Pod has ended. What it
// leaves adds up with what was free beside it to one more than fits in it alone.
func (n *need) gain(left leftover) int {
	if left.unknown {
		return n.members
	}
	most := 1 // for its place among the Pods of the node
	for r, freed := range n.resources.quantities(left.resources, 0) {
		if freed > 0 && n.smallest[r] > 0 {
			most = max(most, int(freed/n.smallest[r])+1)
		}
	}
	return most
}

// admits says whether a node is large enough for a member, if it were empty.
func (n *need) admits(node *corev1.Node) bool {
	allocatable := framework.NewResource(node.Status.Allocatable)
	for r, q := range n.resources.quantities(allocatable, int64(allocatable.GetAllowedPodNumber())) {
		if n.least[r] > q {
			return false
		}
	}
	return n.cordoned || !node.Spec.Unschedulable
}
