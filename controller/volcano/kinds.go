// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package volcano

// Kinds of objects in actions.
const (
	KindPod           = "Pod"
	KindPodGroup      = "PodGroup"
	KindClaim         = "PersistentVolumeClaim"
	KindConfigMap     = "ConfigMap"
	KindService       = "Service"
	KindSecret        = "Secret"
	KindNetworkPolicy = "NetworkPolicy"
)
