// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package queue

import "github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"

// Need is what has to happen before a refused gang can have a place. It may ask for less than is really needed, but
// never for more, so no helpful event is ignored. With the zero Need, any event may help except PodPlaced and NodeGone.
type Need struct {
	// Members is how many more members must get room, in the best domain. 0: room is not all that the gang lacks.
	Members int
	// Smallest has, for each resource, the smallest request of a member that requests the resource. Least has the
	// smallest request of all members (0 if one requests none), without resources that a node need not have. Both are
	// in the units of Room.
	Smallest, Least Room
	// Cordoned reports that a member may be on a cordoned node.
	Cordoned bool
	// Takes is the priority below which the gang may preempt ordinary Pods, nil if it may not preempt. Members is
	// computed as if such Pods were gone already, so the end of one does not help.
	Takes *int32
	// RegardsOthers reports that PodPlaced or NodeGone may help: members want to be near other Pods, or spread over
	// domains.
	RegardsOthers bool
	// IgnoresLabels reports that PodRelabelled does not help: no member regards labels of Pods.
	IgnoresLabels bool
}

// Room has amounts of resources by name. All Rooms of a queue must use the same units.
type Room map[string]int64

// Event is something that happened in the cluster.
type Event struct {
	Kind EventKind
	// Room is what an ended Pod leaves, or the capacity of a node.
	Room Room
	// Ordinary is the priority of an ended Pod that was not a member of any gang. It is nil for all other events.
	Ordinary *int32
	// Unbounded reports that the end of a Pod may help more than Room says. For instance, the Pod may have held a host
	// port on a node with enough free resources.
	Unbounded bool
	// Cordoned reports that the node is cordoned.
	Cordoned bool
	// By is the gang that caused the event, if any. The event can't help that gang.
	By dialect.Key
}

// EventKind is the kind of an Event.
type EventKind int

const (
	// Anything may help every gang.
	Anything EventKind = iota
	// PodEnded: a Pod has left its node, or requests less.
	PodEnded
	// PodPlaced: a Pod has got a node.
	PodPlaced
	// PodRelabelled: a Pod on a node has other labels.
	PodRelabelled
	// NodeChanged: a node is new, or has changed.
	NodeChanged
	// NodeGone: a node was deleted.
	NodeGone
)

// helps reports whether an event may help. If the event is the end of a Pod, helps adds the number of members for which
// the Pod leaves room to *gained.
func (n *Need) helps(event *Event, gained *int) bool {
	switch event.Kind {
	case PodPlaced, NodeGone:
		return n.RegardsOthers
	case PodRelabelled:
		return !n.IgnoresLabels
	case PodEnded:
		if n.Members == 0 {
			return true
		}
		if n.Takes != nil && event.Ordinary != nil && *event.Ordinary < *n.Takes {
			return false
		}
		*gained += n.gain(event)
		return *gained >= n.Members
	case NodeChanged:
		return n.Members == 0 || n.admits(event)
	default:
		return true
	}
}

// gain returns an upper bound for the number of members that find room where a Pod has ended. For a resource, this is one more
// than fits into what the Pod leaves, because the node may have had some already. A member may lack any of the resources that
// all members request. Resources that only some request may each help other members.
func (n *Need) gain(left *Event) int {
	if left.Unbounded {
		return n.Members
	}
	ofAll := 1 // uses the Pod's place in the node's limit of Pods
	ofSome := 0
	for name, smallest := range n.Smallest {
		freed := left.Room[name]
		if freed <= 0 || smallest <= 0 {
			continue
		}
		if freed/smallest >= int64(n.Members) {
			return n.Members // avoids an overflow by a Pod with huge requests
		}
		if members := int(freed/smallest) + 1; n.Least[name] > 0 {
			ofAll = max(ofAll, members)
		} else {
			ofSome += members
		}
	}
	return ofAll + ofSome
}

// admits reports whether a node without Pods would be large enough for a member.
func (n *Need) admits(node *Event) bool {
	for name, least := range n.Least {
		if least > node.Room[name] {
			return false
		}
	}
	return n.Cordoned || !node.Cordoned
}
