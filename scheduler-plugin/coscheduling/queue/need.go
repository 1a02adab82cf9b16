// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package queue

import "github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"

// Need is what must happen before a gang that was refused can have a place: a lower bound,
// so that nothing is ignored that would have helped. The zero need is that anything may
// help but a Pod that is placed and a node that goes.
type Need struct {
	// Members is how many more members must get room, in the best domain. 0: it is not only
	// room that they lack.
	Members int
	// Smallest is, for each resource, the smallest request of a member that is not zero;
	// Least is the smallest of all, without what nodes need not have. Both are in the units
	// of Room.
	Smallest, Least Room
	// Cordoned says that a member may be on a node that is cordoned.
	Cordoned bool
	// Takes is the priority below which the gang may take what Pods of no gang have, nil if it may not. The Members lack
	// room even so, so that such a Pod which ends is of no help.
	Takes *int32
	// RegardsOthers says that a Pod which is placed, or a node that goes, may help: members
	// want to be near others, or far from many.
	RegardsOthers bool
	// IgnoresLabels says that the labels of Pods on nodes are nothing to the members: one that is
	// relabelled is of no help.
	IgnoresLabels bool
}

// Room is amounts of resources by name, in any unit, as long as it is always the same.
type Room map[string]int64

// Event is something that has happened in the cluster.
type Event struct {
	Kind EventKind
	// Room is what a Pod that has ended leaves, or what a node has when it is empty.
	Room Room
	// Ordinary is the priority of a Pod that has ended and was of no gang, nil for any other.
	Ordinary *int32
	// Unbounded says that a Pod may leave more than Room says: a host port, for which the
	// rest of the node may be free already.
	Unbounded bool
	// Cordoned says that the node is.
	Cordoned bool
	// By is the gang that has made it happen, if one has. It is of no help to itself.
	By dialect.Key
}

// EventKind is what kind of thing has happened.
type EventKind int

const (
	// Anything is what may help every gang.
	Anything EventKind = iota
	// PodEnded is a Pod that has left its node, or takes less of it.
	PodEnded
	// PodPlaced is a Pod that is on a node now.
	PodPlaced
	// PodRelabelled is a Pod on a node that has other labels now.
	PodRelabelled
	// NodeChanged is a node that is new, or has changed.
	NodeChanged
	// NodeGone is a node that is no more.
	NodeGone
)

// helps says whether an event may help, and counts what it gives.
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

// gain is how many members at most find room where a Pod has ended. What it leaves adds up
// with what was free beside it to one more than fits in it alone.
func (n *Need) gain(left *Event) int {
	if left.Unbounded {
		return n.Members
	}
	most := 1 // for its place among the Pods of the node
	for name, smallest := range n.Smallest {
		freed := left.Room[name]
		if freed <= 0 || smallest <= 0 {
			continue
		}
		if freed/smallest >= int64(n.Members) {
			return n.Members // a Pod may claim to leave more than can be added up
		}
		most = max(most, int(freed/smallest)+1)
	}
	return most
}

// admits says whether a node is large enough for a member if it is empty.
func (n *Need) admits(node *Event) bool {
	for name, least := range n.Least {
		if least > node.Room[name] {
			return false
		}
	}
	return n.Cordoned || !node.Cordoned
}
