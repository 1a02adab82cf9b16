// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	internalcache "k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// Snapshot is the state of the cluster that plugins see while Pods are planned. It is changed only on the scheduling
// goroutine, while no plugin runs.
type Snapshot interface {
	fwk.NodeInfoLister

	// AssumePod adds a Pod to the snapshot, on the node that is set in the Pod. Only ForgetPod undoes that.
	AssumePod(pod *framework.PodInfo) error
	// ForgetPod removes the Pod that was assumed last.
	ForgetPod(logger klog.Logger, pod *corev1.Pod) error

	// StartMutations begins a trial. EndMutations ends it, and undoes what AddPod and RemovePod have changed. There is
	// one trial at a time.
	StartMutations() error
	// EndMutations ends a trial.
	EndMutations() error
	// AddPod adds a Pod to a node during a trial.
	AddPod(pod fwk.PodInfo, node string) error
	// RemovePod removes a Pod from a node during a trial.
	RemovePod(logger klog.Logger, pod *corev1.Pod, node string) error
}

var _ Snapshot = &internalcache.Snapshot{}
