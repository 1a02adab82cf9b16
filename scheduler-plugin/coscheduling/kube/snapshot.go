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

// Snapshot is the picture of the cluster that plugins look at while Pods are planned.
// It is changed on the scheduling goroutine only, while no plugin runs.
type Snapshot interface {
	fwk.NodeInfoLister

	// AssumePod puts a Pod on the node that it names. Only ForgetPod undoes that.
	AssumePod(pod *framework.PodInfo) error
	// ForgetPod takes away the Pod that was assumed last.
	ForgetPod(logger klog.Logger, pod *corev1.Pod) error

	// StartMutations begins a trial: what AddPod and RemovePod change is as before when
	// EndMutations ends it. There is one trial at a time.
	StartMutations() error
	// EndMutations ends a trial.
	EndMutations() error
	// AddPod puts a Pod on a node for the time of a trial.
	AddPod(pod fwk.PodInfo, node string) error
	// RemovePod takes a Pod from a node for the time of a trial.
	RemovePod(logger klog.Logger, pod *corev1.Pod, node string) error
}

var _ Snapshot = &internalcache.Snapshot{}
