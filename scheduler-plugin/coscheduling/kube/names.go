// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodeaffinity"
)

// The names of kube-scheduler's plugins that the plugin treats specially or needs beside itself.
const (
	BalancedAllocation = names.NodeResourcesBalancedAllocation
	DefaultPreemption  = names.DefaultPreemption
	DynamicResources   = names.DynamicResources
	ImageLocality      = names.ImageLocality
	InterPodAffinity   = names.InterPodAffinity
	NodeAffinity       = names.NodeAffinity
	NodeName           = names.NodeName
	NodePorts          = names.NodePorts
	NodeResourcesFit   = names.NodeResourcesFit
	NodeUnschedulable  = names.NodeUnschedulable
	PodTopologySpread  = names.PodTopologySpread
	TaintToleration    = names.TaintToleration
)

// ReasonNodeAffinity is the reason that the plugin NodeAffinity gives for a node that does not match a Pod's node
// selector or affinity.
const ReasonNodeAffinity = nodeaffinity.ErrReasonPod
