// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package room

import (
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/provision"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/queue"
)

// Reservation is room on nodes that is kept for a gang. Once Room keeps a Reservation, nobody changes it.
type Reservation struct {
	Gang   Gang
	Reason Reason
	// Evicted reports that Pods were evicted for the reservation.
	Evicted bool
	// End is when the reservation ends in any case: what the gang waits for may never happen.
	End time.Time
	// From is when the gang needs all of the room, for the reason InTime. Zero: unknown.
	From time.Time
	// Members are the members for which the room is reserved, each with its node set. Some may be virtual.
	Members []*framework.PodInfo
	// Takes is what all members take, including places for Pods. ToCome is what the virtual members among them take.
	// Read-only.
	Takes, ToCome provision.Amounts

	nodes    map[types.UID]string         // by member
	byNode   map[string]provision.Amounts // what the members take of each node
	awaits   map[types.UID]awaitedPod
	progress // of a reservation in time
}

// awaitedPod is a Pod that has to end before the gang has its room: the Pod's node, and what the Pod takes of the node.
type awaitedPod struct {
	node  string
	takes provision.Amounts
}

// Gang is a gang for which room is reserved.
type Gang struct {
	// Rank is the gang's rank when the room was sought.
	Rank queue.Rank
	// UID is the UID of the gang's PodGroup; another PodGroup may take the same name.
	UID types.UID
}

// Nodes finds nodes in their present state by name. It returns an error for a node that does not exist.
type Nodes interface {
	Get(name string) (fwk.NodeInfo, error)
}

// New returns a reservation that lasts until `end`. `awaited` are the Pods that have to end first; New ignores Pods on
// nodes on which no member is to run.
func New(gang Gang, reason Reason, members []*framework.PodInfo, awaited []fwk.PodInfo, end time.Time) *Reservation {
	r := &Reservation{Gang: gang, Reason: reason, End: end, Members: members, Takes: make(provision.Amounts), ToCome: make(provision.Amounts),
		nodes: make(map[types.UID]string, len(members)), byNode: make(map[string]provision.Amounts), awaits: make(map[types.UID]awaitedPod)}
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
		r.await(pod)
	}
	return r
}

// await has the gang wait for a Pod's end.
func (r *Reservation) await(pod fwk.PodInfo) {
	r.awaits[pod.GetPod().UID] = awaitedPod{node: pod.GetPod().Spec.NodeName, takes: TakesOf(pod)}
}

// On returns the Pods that are on the nodes of members.
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

// Nominees returns, by member, the node for which the member is to be nominated. The result is nil unless the members
// go to their nodes as soon as Pods have ended, that is, for the reason Preemption.
func (r *Reservation) Nominees() map[types.UID]string {
	if !r.Reason.rule().nominates {
		return nil
	}
	return r.nodes
}

// NodeFor returns the node for which a member is to be nominated, "" if there is none.
func (r *Reservation) NodeFor(member types.UID) string { return r.Nominees()[member] }

// IsOn reports whether room on a node is reserved.
func (r *Reservation) IsOn(node string) bool {
	_, on := r.byNode[node]
	return on
}

// Reserved returns what others have to leave free on a node: what the members request, minus what the awaited Pods on
// the node still take. Other Pods on the node are not subtracted. So while a service is rolled out, its new Pod may use
// the room of the Pod that it replaces.
func (r *Reservation) Reserved(node fwk.NodeInfo) provision.Amounts {
	reserved := r.byNode[node.Node().Name]
	if len(reserved) == 0 || len(r.awaits) == 0 {
		return reserved
	}
	for _, pod := range node.GetPods() {
		if awaited, does := r.awaits[pod.GetPod().UID]; does {
			reserved = reserved.Less(awaited.takes)
		}
	}
	return reserved
}

// Kept returns what others had to leave free, on all nodes together, when the reservation was made or last renewed.
func (r *Reservation) Kept() provision.Amounts {
	onNode := maps.Clone(r.byNode)
	for _, awaited := range r.awaits {
		onNode[awaited.node] = onNode[awaited.node].Less(awaited.takes)
	}
	kept := make(provision.Amounts)
	for _, amounts := range onNode {
		kept.Add(amounts)
	}
	return kept
}

// Within returns the reservation for as many of its members as fit into an amount together. If nodes is not nil,
// members that no longer fit on their node are left out: a gang ahead has taken the room, or the node is deleted or
// cordoned. The result is r if all members stay, and nil if none does.
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

// isFree reports whether a node exists, accepts Pods and has so much left.
func isFree(takes provision.Amounts, name string, nodes Nodes) bool {
	node, err := nodes.Get(name)
	return err == nil && !node.Node().Spec.Unschedulable && Fits(takes, nil, node)
}

// Nodes returns the nodes of the members, sorted, each once.
func (r *Reservation) Nodes() []string { return slices.Compact(nodesOf(r)) }

// onSameNodes reports whether two reservations have the same number of members on each node.
func onSameNodes(a, b *Reservation) bool {
	return slices.Equal(nodesOf(a), nodesOf(b))
}

// nodesOf returns the nodes of the members, sorted, once for each member.
func nodesOf(r *Reservation) []string {
	names := make([]string, len(r.Members))
	for i, m := range r.Members {
		names[i] = m.Pod.Spec.NodeName
	}
	slices.Sort(names)
	return names
}
