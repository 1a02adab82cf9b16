// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/kubernetes/pkg/features"
)

// The feature gates that need an informer of their own.
const (
	GenericWorkload     = features.GenericWorkload
	CompositePodGroup   = features.CompositePodGroup
	DRADeviceTaintRules = features.DRADeviceTaintRules
)

// PlacesPodGroups reports whether kube-scheduler's own code takes Pods with a PodGroup out of the queue and places
// them.
func PlacesPodGroups() bool {
	return utilfeature.DefaultFeatureGate.Enabled(GenericWorkload)
}
