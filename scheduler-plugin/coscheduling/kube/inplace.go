// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// InPlace returns a snapshot whose trials copy only the nodes that change. kube-scheduler's own trials copy all nodes,
// which takes most of the time if Pods are removed from a few of thousands of nodes. pods are all Pods that trials may
// remove, and add again.
//
// The snapshot's list of claims in use stays as it is, so a plugin may find that a removed Pod's claim is in use.
// InPlace returns the snapshot itself if a Pod is in another list of the whole snapshot: Pods with affinity to others,
// or members of Kubernetes' own PodGroups.
func InPlace(snapshot Snapshot, pods ...[]fwk.PodInfo) Snapshot {
	for _, some := range pods {
		if slices.ContainsFunc(some, func(info fwk.PodInfo) bool { return isListed(info.GetPod()) }) {
			return snapshot
		}
	}
	return &inPlace{Snapshot: snapshot, before: make(map[*framework.NodeInfo]*framework.NodeInfo)}
}

func isListed(pod *corev1.Pod) bool {
	affinity := pod.Spec.Affinity
	return pod.Spec.SchedulingGroup != nil || affinity != nil && (affinity.PodAffinity != nil || affinity.PodAntiAffinity != nil)
}

// inPlace is a snapshot with trials of its own.
type inPlace struct {
	Snapshot
	// before are the changed nodes as they were when the trial began.
	before map[*framework.NodeInfo]*framework.NodeInfo
}

// StartMutations implements Snapshot.
func (s *inPlace) StartMutations() error { return nil }

// EndMutations implements Snapshot.
func (s *inPlace) EndMutations() error {
	for node, before := range s.before {
		*node = *before
	}
	clear(s.before)
	return nil
}

// AddPod implements Snapshot.
func (s *inPlace) AddPod(pod fwk.PodInfo, node string) error {
	info, err := s.change(node)
	if err == nil {
		info.AddPodInfo(pod)
	}
	return err
}

// RemovePod implements Snapshot.
func (s *inPlace) RemovePod(logger klog.Logger, pod *corev1.Pod, node string) error {
	info, err := s.change(node)
	if err != nil {
		return err
	}
	return info.RemovePod(logger, pod)
}

// change returns a node that may be changed until the trial ends.
func (s *inPlace) change(name string) (*framework.NodeInfo, error) {
	node, err := s.Get(name)
	if err != nil {
		return nil, err
	}
	info, ok := node.(*framework.NodeInfo)
	if !ok {
		return nil, fmt.Errorf("node %s is a %T", name, node)
	}
	if s.before[info] == nil {
		s.before[info] = info.SnapshotConcrete()
	}
	return info, nil
}
