// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// Placement is a Pod on a node that all plugins accept.
type Placement struct {
	Pod     *corev1.Pod
	Node    string
	Profile framework.Framework
	State   fwk.CycleState     // of PreFilter, Filter and Reserve on that node
	Assumed *framework.PodInfo // a copy of Pod that names the node
	// shared are the claims that the Pod shares with other members of its gang; see ShareClaims.
	shared []*sharedClaim
	group  group
}
