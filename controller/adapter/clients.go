// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package adapter

import (
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"

	"github.com/lockstep-k8s/lockstep/client/clientset/versioned"
)

// Clients are what the controller reads and writes with.
type Clients struct {
	// Kube reads and writes ConfigMaps, Pods and events, and reads PriorityClasses. For jobs
	// it also writes Services, Secrets, NetworkPolicies, PersistentVolumeClaims and
	// HorizontalPodAutoscalers.
	Kube kubernetes.Interface
	// Lockstep reads Frameworks and jobs, writes their status, reads and writes PodGroups,
	// and writes Commands.
	Lockstep versioned.Interface
	// Metadata deletes Frameworks and jobs. It also reads objects of which only the existence matters.
	Metadata metadata.Interface
	// Dynamic reads Commands, as their CRD may be another product's.
	Dynamic dynamic.Interface
}
