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

// nominations records the nodes for which Pods in kube-scheduler's own queue (the real queue) may be nominated. The
// record exists because the real queue answers for one node at a time. To ask about thousands of nodes for a gang each
// millisecond would take too long. All nominations pass through PodQueue, which records their nodes here. Safe for
// concurrent use.
type nominations struct {
	mu    sync.Mutex
	nodes sets.Set[string]
}

// note records that kube-scheduler's own queue may have a nomination for a node. The name "" is ignored.
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

// take returns the nodes that were recorded since the last call.
func (n *nominations) take() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	nodes := n.nodes.UnsortedList()
	clear(n.nodes)
	return nodes
}

// Nominated returns the Pods that are nominated for nodes, by node. Waiting members of gangs are not included, because
// they are not in kube-scheduler's own queue.
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

// noteNominated records the node for which a Pod is nominated. Call it after kube-scheduler's own queue has the
// nomination, so that a reader who finds the node in the record also finds the nomination in the queue.
func (q *PodQueue) noteNominated(pod *corev1.Pod) {
	q.nominations.note(pod.Status.NominatedNodeName)
}
