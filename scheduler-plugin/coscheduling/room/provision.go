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

// NodeFor is no node: none of the members exists.
func (p *Provision) NodeFor(types.UID) string { return "" }

// IsKeptFromPod is true for ordinary Pods that don't outrank the gang. It is not kept from a Pod of
// a DaemonSet, which can run nowhere else.
func (p *Provision) IsKeptFromPod(pod *corev1.Pod) bool {
	return !isOfDaemonSet(pod) && p.gang.Rank.Priority >= corev1helpers.PodPriority(pod)
}

// IsKeptFromGang is true for all.
func (p *Provision) IsKeptFromGang(Behind) bool { return true }
