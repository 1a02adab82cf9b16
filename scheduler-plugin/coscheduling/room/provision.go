// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package room

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/provision"
)

// Provision is room that is kept for members of a gang which are still to come. Its members are
// virtual: they stand for what nobody has seen yet. The gang itself has its minimum.
type Provision struct {
	claim
	held provision.Amounts
}

var _ Claim = &Provision{}

// NewProvision keeps room until a time, for virtual members of which there is at least one.
func NewProvision(gang Gang, virtual []*framework.PodInfo, end time.Time) *Provision {
	p := &Provision{claim: newClaim(gang, virtual, nil, end), held: make(provision.Amounts)}
	for _, member := range virtual {
		p.held.Add(provision.OfPod(member.Pod).WithoutPods())
	}
	return p
}

// Held is how much room is kept, but for places among the Pods of nodes. Nobody changes it.
func (p *Provision) Held() provision.Amounts { return p.held }

// IsOn says whether room of a node is kept.
func (p *Provision) IsOn(node string) bool {
	_, on := p.byNode[node]
	return on
}

// Stands says whether the room is there: nobody who may has taken of it, and no node is gone or
// cordoned.
func (p *Provision) Stands(nodes Nodes) bool {
	for name, taken := range p.byNode {
		node, err := nodes.Get(name)
		if err != nil || node.Node().Spec.Unschedulable || !taken.IsFreeOn(node) {
			return false
		}
	}
	return true
}

// Within is what is left of the room if no more than so much is to be kept, until a time, where it is still
// there; nil if that is nothing.
func (p *Provision) Within(most provision.Amounts, nodes Nodes, end time.Time) *Provision {
	var left []*framework.PodInfo
	byNode := make(map[string]Usage)
	for _, member := range p.members {
		takes, name := provision.OfPod(member.Pod).WithoutPods(), member.Pod.Spec.NodeName
		node, err := nodes.Get(name)
		if err != nil || node.Node().Spec.Unschedulable || !takes.Within(most) {
			continue
		}
		var with Usage
		with.add(byNode[name])
		with.add(UsageOf(member))
		if with.IsFreeOn(node) {
			left, byNode[name], most = append(left, member), with, most.Less(takes)
		}
	}
	if len(left) == 0 {
		return nil
	}
	return NewProvision(p.gang, left, end)
}

// NodeFor is no node: none of the members exists.
func (p *Provision) NodeFor(types.UID) string { return "" }

// IsKeptFromPod is true for ordinary Pods that don't outrank the gang. It is not kept from a Pod of
// a DaemonSet, which can run nowhere else.
func (p *Provision) IsKeptFromPod(pod *corev1.Pod) bool {
	return !isOfDaemonSet(pod) && p.gang.Rank.Priority >= corev1helpers.PodPriority(pod)
}

// IsKeptFromGang is true for all.
func (p *Provision) IsKeptFromGang(Behind) bool { return true }
