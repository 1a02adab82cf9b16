// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package room

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/provision"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/queue"
)

// Reservation is room of nodes that is kept for a gang. It does not change.
type Reservation struct {
	Gang   Gang
	Reason Reason
	// Evicted says that Pods were evicted for it.
	Evicted bool
	// End is when it ends at the latest, whatever becomes of the gang: what the gang waits for may never happen.
	End time.Time
	// From is from when on the gang needs all of the room, for the reason InTime. Zero: nobody knows.
	From time.Time
	// Members are those of the gang that are to go there. Each names its node. Some may be virtual.
	Members []*framework.PodInfo
	// Takes is what all members take, with their places among the Pods of nodes, and ToCome what the virtual ones do. Nobody
	// changes these.
	Takes, ToCome provision.Amounts

	nodes    map[types.UID]string            // by member
	byNode   map[string]provision.Amounts    // what the members take of each node
	awaits   map[types.UID]provision.Amounts // what the Pods take whose end is awaited
	progress                                 // of a reservation in time
}

// Gang is a gang for which room is reserved.
type Gang struct {
	// Rank is what it was when the room was sought.
	Rank queue.Rank
	// UID is that of its PodGroup. Another one of the same name may come.
	UID types.UID
}

// Nodes finds nodes as they are now, by name. It fails for those that are gone.
type Nodes interface {
	Get(name string) (fwk.NodeInfo, error)
}

// New returns a reservation until a time. Pods that are awaited on other nodes than those of the members don't concern it.
func New(gang Gang, reason Reason, members []*framework.PodInfo, awaited []fwk.PodInfo, end time.Time) *Reservation {
	r := &Reservation{Gang: gang, Reason: reason, End: end, Members: members, Takes: make(provision.Amounts), ToCome: make(provision.Amounts),
		nodes: make(map[types.UID]string, len(members)), byNode: make(map[string]provision.Amounts), awaits: make(map[types.UID]provision.Amounts)}
	for _, m := range members {
		node, takes := m.Pod.Spec.NodeName, TakesOf(m)
		r.nodes[m.Pod.UID] = node
		r.byNode[node] = r.byNode[node].Plus(takes)
		r.Takes.Add(takes)
		if provision.IsVirtual(m.Pod) {
			r.ToCome.Add(takes)
		}
	}
	for _, pod := range On(members, awaited) {
		r.awaits[pod.GetPod().UID] = TakesOf(pod)
	}
	return r
}

// On are those of some Pods that are on the nodes of members.
func On(members []*framework.PodInfo, pods []fwk.PodInfo) []fwk.PodInfo {
	nodes := make(map[string]bool, len(members))
	for _, m := range members {
		nodes[m.Pod.Spec.NodeName] = true
	}
	var on []fwk.PodInfo
	for _, pod := range pods {
		if nodes[pod.GetPod().Spec.NodeName] {
			on = append(on, pod)
		}
	}
	return on
}

// Nominees returns the nodes for which members are to be nominated: where they go when Pods have gone that end soon.
func (r *Reservation) Nominees() map[types.UID]string {
	if !r.Reason.rule().nominates {
		return nil
	}
	return r.nodes
}

// NodeFor returns where a member goes when Pods have gone that end soon. It is empty if the member has no place then, or
// nobody knows when that is.
func (r *Reservation) NodeFor(member types.UID) string { return r.Nominees()[member] }

// IsOn reports whether room of a node is reserved.
func (r *Reservation) IsOn(node string) bool {
	_, on := r.byNode[node]
	return on
}

// Reserved returns what others have to leave alone of a node: the room of the members, without what Pods whose end is awaited
// still take of it. So the room that a service leaves when it is rolled out is for its next Pod, as it was not counted on.
func (r *Reservation) Reserved(node fwk.NodeInfo) provision.Amounts {
	reserved := r.byNode[node.Node().Name]
	if len(reserved) == 0 || len(r.awaits) == 0 {
		return reserved
	}
	for _, pod := range node.GetPods() {
		if taken, awaited := r.awaits[pod.GetPod().UID]; awaited {
			reserved = reserved.Less(taken)
		}
	}
	return reserved
}

// Within returns the reservation for as many of its members as take no more than an amount together. With nodes, those are left
// out that have no room any more: somebody ahead has taken it, or their node is gone or cordoned. It is the same reservation if
// all stay, and nil if none does.
func (r *Reservation) Within(most provision.Amounts, nodes Nodes) *Reservation {
	var stay []*framework.PodInfo
	byNode, countsPods := make(map[string]provision.Amounts), most[corev1.ResourcePods] > 0
	for _, member := range r.Members {
		takes, name := TakesOf(member), member.Pod.Spec.NodeName
		with, amounts := takes.Plus(byNode[name]), takes
		if !countsPods {
			amounts = takes.WithoutPods()
		}
		if amounts.Within(most) && (nodes == nil || isFree(with, name, nodes)) {
			stay, byNode[name], most = append(stay, member), with, most.Less(amounts)
		}
	}
	switch len(stay) {
	case 0:
		return nil
	case len(r.Members):
		return r
	}
	return New(r.Gang, r.Reason, stay, nil, r.End)
}

// isFree reports whether a node is there, takes Pods and has so much left.
func isFree(takes provision.Amounts, name string, nodes Nodes) bool {
	node, err := nodes.Get(name)
	return err == nil && !node.Node().Spec.Unschedulable && Fits(takes, nil, node)
}

// Nodes returns the nodes of the members, in order, each once.
func (r *Reservation) Nodes() []string { return slices.Compact(nodesOf(r)) }

// onSameNodes reports whether two reservations have as many members on each node.
func onSameNodes(a, b *Reservation) bool {
	return slices.Equal(nodesOf(a), nodesOf(b))
}

// nodesOf are where the members are to go, in order, once for each member.
func nodesOf(r *Reservation) []string {
	names := make([]string, len(r.Members))
	for i, m := range r.Members {
		names[i] = m.Pod.Spec.NodeName
	}
	slices.Sort(names)
	return names
}
