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

	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/line"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/provision"
)

// Claim is room that is kept for a gang that waits. It does not change.
type Claim interface {
	// Gang is whose room it is.
	Gang() Gang
	// Members are those of the gang that are to go there. Each names its node.
	Members() []*framework.PodInfo
	// End is when the room is kept no longer, whatever becomes of the gang: what it waits
	// for may never happen.
	End() time.Time
	// NodeFor is where a member goes when Pods have gone that end soon, empty if it has no
	// place then or nobody knows when that is.
	NodeFor(member types.UID) string
	// ToCome is what those members take that are virtual, with their places among the Pods of
	// nodes. Nobody changes it.
	ToCome() provision.Amounts
	// Reserved is what others have to leave alone of a node.
	Reserved(node fwk.NodeInfo) Usage
	// IsKeptFromPod says whether an ordinary Pod has to leave it alone.
	IsKeptFromPod(pod *corev1.Pod) bool
	// IsKeptFromGang says whether a gang that is behind in line has to leave it alone.
	IsKeptFromGang(behind Behind) bool
}

// Gang is a gang for which room is kept.
type Gang struct {
	// Rank is what it was when the room was sought.
	Rank line.Rank
	// UID is that of its PodGroup. Another one of the same name may come.
	UID types.UID
}

// Behind is a gang that is planned while room is kept for others.
type Behind struct {
	Rank line.Rank
	// Broken says that it has members placed, but too few.
	Broken bool
	// Passes says that it has members placed, and need not leave a Barrier alone.
	Passes bool
}

// Nodes finds nodes as they are now, by name. It fails for those that are gone.
type Nodes interface {
	Get(name string) (fwk.NodeInfo, error)
}

// claim is what all kinds of Claim have in common.
type claim struct {
	gang    Gang
	end     time.Time
	members []*framework.PodInfo
	// nodes are those of the members.
	nodes map[types.UID]string
	// byNode is what the members take of each node.
	byNode map[string]Usage
	// awaited is what the Pods take whose end is awaited.
	awaited map[types.UID]Usage
	// toCome is what virtual members take.
	toCome provision.Amounts
}

// newClaim makes a claim. Pods that are awaited on other nodes than those of the members
// don't concern it.
func newClaim(gang Gang, members []*framework.PodInfo, awaited []fwk.PodInfo, end time.Time) claim {
	c := claim{gang: gang, end: end, members: members, nodes: make(map[types.UID]string, len(members)),
		byNode: make(map[string]Usage), awaited: make(map[types.UID]Usage), toCome: make(provision.Amounts)}
	for _, m := range members {
		node := m.Pod.Spec.NodeName
		c.nodes[m.Pod.UID] = node
		taken := c.byNode[node]
		taken.add(UsageOf(m))
		c.byNode[node] = taken
		if provision.IsVirtual(m.Pod) {
			c.toCome.Add(provision.OfPod(m.Pod))
		}
	}
	for _, pod := range On(members, awaited) {
		c.awaited[pod.GetPod().UID] = UsageOf(pod)
	}
	return c
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

func (c *claim) Gang() Gang                      { return c.gang }
func (c *claim) Members() []*framework.PodInfo   { return c.members }
func (c *claim) End() time.Time                  { return c.end }
func (c *claim) ToCome() provision.Amounts       { return c.toCome }
func (c *claim) NodeFor(member types.UID) string { return c.nodes[member] }

// Reserved is the room of the members that are to come, but for what Pods whose end is
// awaited still take of it. So the room that a service leaves when it is rolled out is for
// its next Pod, as it was not counted on.
func (c *claim) Reserved(node fwk.NodeInfo) Usage {
	var reserved Usage
	reserved.add(c.byNode[node.Node().Name])
	if reserved.IsZero() || len(c.awaited) == 0 {
		return reserved
	}
	for _, pod := range node.GetPods() {
		if taken, awaited := c.awaited[pod.GetPod().UID]; awaited {
			reserved.takeOff(taken)
		}
	}
	return reserved
}

// onSameNodes says whether two claims have as many members on each node.
func onSameNodes(a, b Claim) bool {
	return slices.Equal(nodesOf(a), nodesOf(b))
}

// nodesOf are where the members of a claim are to go, in order, once for each member.
func nodesOf(c Claim) []string {
	names := make([]string, len(c.Members()))
	for i, m := range c.Members() {
		names[i] = m.Pod.Spec.NodeName
	}
	slices.Sort(names)
	return names
}
