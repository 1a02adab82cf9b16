// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/admission"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/gangs"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/news"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/provision"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/room"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/status"
)

// admissionPeriod is how often it is looked who of the groups that wait to be let in is. A look that takes long
// is followed by a rest of admissionRest times that.
const (
	admissionPeriod = time.Second
	admissionRest   = 20
)

// gate lets groups of Volcano's in when there is room for what they ask for, where the configuration says
// so. It looks at the cluster off the scheduling goroutine, and only while a group waits.
type gate struct {
	gangs *gangs.Gangs
	// nodes are the nodes as they are now.
	nodes func() map[string]*framework.NodeInfo
	room  *room.Room
	// report has the status of a group be written.
	report func(gang dialect.Key)
	book   admission.Book
}

func newGate(e *engine, report func(dialect.Key)) *gate {
	return &gate{gangs: e.gangs, nodes: e.sched.Nodes, room: &e.room, report: report}
}

// tend looks now and then who is let in, until ctx ends.
func (g *gate) tend(ctx context.Context) {
	rest := admissionPeriod
	for {
		select {
		case <-time.After(rest):
			began := time.Now()
			g.look(ctx)
			rest = max(admissionPeriod, admissionRest*time.Since(began))
		case <-ctx.Done():
			return
		}
	}
}

// look looks once.
func (g *gate) look(ctx context.Context) {
	groups, ok := g.gangs.Applicants(dialect.Volcano, g.book.Counts)
	if !ok {
		return
	}
	var cluster admission.Cluster
	if len(groups) > 0 {
		cluster = clusterOf(g.nodes(), g.room.InOrder())
	}
	for _, key := range g.book.Pass(groups, cluster, time.Now()) {
		klog.FromContext(ctx).V(4).Info("Looked whether there is room for a pod group", "podGroup", key.String())
		g.report(key)
	}
}

// clusterOf is how much room some nodes have, and what of it is kept.
func clusterOf(nodes map[string]*framework.NodeInfo, claims []room.Claim) admission.Cluster {
	cluster := admission.Cluster{All: make(provision.Amounts), Free: make(provision.Amounts), Kept: make(map[dialect.Key]provision.Amounts, len(claims))}
	for _, node := range nodes {
		if takesPods(node) {
			has := amountsOf(node.GetAllocatable(), int64(node.GetAllocatable().GetAllowedPodNumber()))
			cluster.All.Add(has)
			cluster.Free.Add(has.Less(amountsOf(node.GetRequested(), int64(len(node.GetPods())))))
		}
	}
	for _, claim := range claims {
		kept, seen := make(provision.Amounts), make(map[string]bool)
		for _, member := range claim.Members() {
			name := member.Pod.Spec.NodeName
			if node := nodes[name]; !seen[name] && node != nil && takesPods(node) {
				kept.Add(claim.Reserved(node).Amounts())
			}
			seen[name] = true
		}
		cluster.Kept[claim.Gang().Rank.Key] = kept
	}
	return cluster
}

// takesPods says whether a node takes new Pods.
func takesPods(node *framework.NodeInfo) bool {
	return node.Node() != nil && !node.Node().Spec.Unschedulable
}

// amountsOf are resources of a node, and its places for Pods.
func amountsOf(resource fwk.Resource, pods int64) provision.Amounts {
	all := provision.Amounts{corev1.ResourceCPU: resource.GetMilliCPU(), corev1.ResourceMemory: resource.GetMemory(),
		corev1.ResourceEphemeralStorage: resource.GetEphemeralStorage(), corev1.ResourcePods: pods}
	for name, amount := range resource.GetScalarResources() {
		all[name] = amount
	}
	return all
}

// admitting are gangs of which some are held back.
type admitting struct {
	status.Gangs
	gate *gate
}

// Look implements status.Gangs. Nothing is told of a group that waits to be let in before it is known
// whether it is.
func (a admitting) Look(key dialect.Key) (news.Gang, bool) {
	gang, ok := a.Gangs.Look(key)
	if !ok || key.Dialect != dialect.Volcano || gang.Theirs || gang.Group == nil || gang.Group.IsHalted() || gang.Record.IsLetIn(gang.Group, gang.Foreign) {
		return gang, ok
	}
	var known bool
	gang.HeldBack, known = a.gate.book.Says(key, gang.Group.UID)
	return gang, known
}
