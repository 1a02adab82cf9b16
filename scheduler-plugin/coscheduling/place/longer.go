// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package place

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/lockstep-k8s/lockstep/internal/times"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/ends"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/planner"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/room"
)

// setLonger sets for each node of a world for how much longer it would be in use if the gang ran there. The planner
// prefers nodes that are in use anyway, so that nodes become free as a whole. If it is not known how long the gang
// runs, no node is preferred.
func setLonger(world *planner.World, nodes []fwk.NodeInfo, gang *Gang, cluster *Cluster) {
	now := cluster.Now()
	end := ends.OfGang(gang.Group.Spec.Runtime, int(gang.Group.Spec.Minimum.Members), gang.Waiting, now).Until(cluster.Estimates)
	for n := range world.Nodes {
		world.Nodes[n].Longer = 0
	}
	if end.IsZero() {
		return
	}
	for n, last := range cluster.Passes.ends.on(nodes, cluster.EndOf) {
		if !last.unknown {
			world.Nodes[n].Longer = max(0, end.Sub(times.Later(now, last.at)))
		}
	}
}

// lastEnd is when the last Pod on a node ends that does not belong to a DaemonSet.
type lastEnd struct {
	// generation is that of the node when this was computed.
	generation int64
	// at is zero if there is no such Pod.
	at time.Time
	// unknown reports that it is not known when some Pod ends.
	unknown bool
}

// lastEnds are the last ends on nodes, kept from gang to gang. The zero value knows none.
type lastEnds struct {
	nodes []fwk.NodeInfo
	ends  []lastEnd
}

// on returns the last end on each node. It looks at the Pods of those nodes only that have changed since the last call.
func (l *lastEnds) on(nodes []fwk.NodeInfo, endOf func(*corev1.Pod) time.Time) []lastEnd {
	if !slices.Equal(l.nodes, nodes) {
		before := make(map[fwk.NodeInfo]lastEnd, len(l.nodes))
		for n, info := range l.nodes {
			before[info] = l.ends[n]
		}
		l.nodes, l.ends = slices.Clone(nodes), make([]lastEnd, len(nodes))
		for n, info := range nodes {
			l.ends[n] = before[info]
		}
	}
	for n, info := range nodes {
		if l.ends[n].generation != info.GetGeneration() {
			l.ends[n] = lastEndOn(info, endOf)
		}
	}
	return l.ends
}

// lastEndOn returns when the last Pod on a node ends.
func lastEndOn(info fwk.NodeInfo, endOf func(*corev1.Pod) time.Time) lastEnd {
	last := lastEnd{generation: info.GetGeneration()}
	for _, pod := range info.GetPods() {
		if room.IsOfDaemonSet(pod.GetPod()) {
			continue
		}
		end := endOf(pod.GetPod())
		if end.IsZero() {
			last.unknown = true
			break
		}
		last.at = times.Later(last.at, end)
	}
	return last
}
