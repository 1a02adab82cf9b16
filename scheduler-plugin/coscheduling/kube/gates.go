// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/kubernetes/pkg/features"
)

// The feature gates that bring an informer of their own.
const (
	GenericWorkload     = features.GenericWorkload
	CompositePodGroup   = features.CompositePodGroup
	DRADeviceTaintRules = features.DRADeviceTaintRules
)

// PlacesPodGroups says whether kube-scheduler's own code takes the Pods of its PodGroups out of the
// queue and places them.
func PlacesPodGroups() bool {
	return utilfeature.DefaultFeatureGate.Enabled(GenericWorkload)
}
