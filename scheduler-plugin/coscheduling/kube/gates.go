// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import "k8s.io/kubernetes/pkg/features"

// The feature gates that bring an informer of their own.
const (
	GenericWorkload     = features.GenericWorkload
	CompositePodGroup   = features.CompositePodGroup
	DRADeviceTaintRules = features.DRADeviceTaintRules
)
