// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package place

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/lockstep-k8s/lockstep/internal/times"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/ends"
)

// lasting returns for each node whether the node is in use for as long as the gang would run there. The planner prefers
// such nodes, so that nodes become free as a whole. The result is nil if it is not known how long the gang runs. The
// snapshot must not hold members for which room is only reserved.
func lasting(cluster *Cluster) ([]bool, error) {
	if cluster.End.IsZero() {
		return nil, nil
	}
	nodes, err := cluster.Snapshot.List()
	if err != nil {
		return nil, fmt.Errorf("listing nodes: %w", err)
	}
	lasting := make([]bool, len(nodes))
	for n, last := range cluster.Passes.lastEnds(nodes, cluster.Now(), cluster.EndOf) {
		lasting[n] = last.is.unknown || !last.is.at.Before(cluster.End)
	}
	return lasting, nil
}

// lastEnd is when the last Pod on a node ends. Pods that every node has, and Pods that are being deleted, don't count.
type lastEnd struct {
	// at is zero if there is no Pod that counts.
	at time.Time
	// unknown reports that it is not known when some Pod ends.
	unknown bool
}

// lastEnds returns the last end on each node. It looks at the Pods of a node only if the node has changed since the last
// call, or if the last end has passed: then a Pod runs longer than was expected. If the run time of a gang is changed,
// the earlier one counts until the node changes.
func (ps *Passes) lastEnds(nodes []fwk.NodeInfo, now time.Time, endOf func(*corev1.Pod) time.Time) []answer[lastEnd] {
	hasPassed := func(last lastEnd) bool { return !last.at.IsZero() && !last.at.After(now) }
	return ps.ends.of(nodes, hasPassed, func(info fwk.NodeInfo) lastEnd { return lastEndOn(info, endOf) })
}

// lastEndOn returns when the last Pod on a node ends.
func lastEndOn(info fwk.NodeInfo, endOf func(*corev1.Pod) time.Time) (last lastEnd) {
	for _, one := range info.GetPods() {
		pod := one.GetPod()
		if ends.WithNode(pod) || pod.DeletionTimestamp != nil {
			continue
		}
		end := endOf(pod)
		if end.IsZero() {
			return lastEnd{unknown: true}
		}
		last.at = times.Later(last.at, end)
	}
	return last
}
