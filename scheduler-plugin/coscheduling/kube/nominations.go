// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
)

// nominations are the nodes for which Pods of the real queue may be nominated. That queue
// says of one node who is nominated for it, and with thousands of nodes, and a gang in each
// millisecond, all of them can't be asked. So the queue in front of it, by which all
// nominations come, notes the nodes. It is safe for concurrent use.
type nominations struct {
	mu    sync.Mutex
	nodes sets.Set[string]
}

// note notes that the real queue may have heard of a nomination for a node; empty is none.
func (n *nominations) note(node string) {
	if node == "" {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.nodes == nil {
		n.nodes = sets.New[string]()
	}
	n.nodes.Insert(node)
}

// take are the nodes that were noted since it was asked last.
func (n *nominations) take() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	nodes := n.nodes.UnsortedList()
	clear(n.nodes)
	return nodes
}

// Nominated are the Pods that are nominated for nodes, by node. Members of gangs that wait
// are none of them: the real queue does not know those.
func (q *PodQueue) Nominated() map[string][]fwk.PodInfo {
	nodes := q.nominations.take()
	if len(nodes) == 0 {
		return nil
	}
	nominated := make(map[string][]fwk.PodInfo)
	for _, node := range nodes {
		if pods := q.NominatedPodsForNode(node); len(pods) > 0 {
			nominated[node] = pods
			q.nominations.note(node)
		}
	}
	return nominated
}

// AddNominatedPod implements SchedulingQueue.
func (q *PodQueue) AddNominatedPod(logger klog.Logger, pod fwk.PodInfo, info *fwk.NominatingInfo) {
	q.SchedulingQueue.AddNominatedPod(logger, pod, info)
	q.noteNominated(pod.GetPod())
	if info.Mode() == fwk.ModeOverride {
		q.nominations.note(info.NominatedNodeName)
	}
}

// UpdateNominatedPod implements SchedulingQueue.
func (q *PodQueue) UpdateNominatedPod(logger klog.Logger, before *corev1.Pod, pod fwk.PodInfo) {
	q.SchedulingQueue.UpdateNominatedPod(logger, before, pod)
	q.noteNominated(pod.GetPod())
}

// noteNominated notes for which node a Pod says that it is nominated. It comes after the real
// queue has heard of that, so that whoever takes what is noted finds it there.
func (q *PodQueue) noteNominated(pod *corev1.Pod) {
	q.nominations.note(pod.Status.NominatedNodeName)
}
