// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package simnodes makes Nodes that exist in the API server alone, and tells KWOK how to play
// their kubelets: Pods bound to them become Running within milliseconds, with an address of
// their own, and end as their annotations say.
//
// A Pod without RunSecondsAnnotation runs until it is deleted. Deletion takes effect at once,
// without a grace period.
package simnodes

import (
	"fmt"
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Annotations of a Pod that say how its simulation ends. The stages in stages.yaml read them.
const (
	// RunSecondsAnnotation is the time between Running and the end, in seconds ("2", "0.5").
	// Ends may be late by up to a second for a Pod that is changed while it runs.
	RunSecondsAnnotation = "simulate.lockstep.dev/run-seconds"
	// ExitCodeAnnotation is the exit code of every app container; default "0". With another
	// code the Pod's phase becomes Failed.
	ExitCodeAnnotation = "simulate.lockstep.dev/exit-code"
	// ReasonAnnotation is the reason in the terminated state of every app container; default
	// Completed or, with an exit code other than 0, Error.
	ReasonAnnotation = "simulate.lockstep.dev/reason"
	// MessageAnnotation is the message in the terminated state of every app container.
	MessageAnnotation = "simulate.lockstep.dev/message"
	// PodReasonAnnotation is status.reason of the Pod, such as Evicted. A Pod that has one
	// ends Failed, whatever its exit code.
	PodReasonAnnotation = "simulate.lockstep.dev/pod-reason"
	// PodMessageAnnotation is status.message of the Pod.
	PodMessageAnnotation = "simulate.lockstep.dev/pod-message"
	// FailAttemptsAnnotation limits the failure to the first n attempts of the
	// Framework: a Pod whose annotation FC_FRAMEWORK_ATTEMPT_ID is not below it ends with exit
	// code 0. Default: every attempt ends as annotated.
	FailAttemptsAnnotation = "simulate.lockstep.dev/fail-attempts"
	// FailTaskAttemptsAnnotation does the same with FC_TASK_ATTEMPT_ID.
	FailTaskAttemptsAnnotation = "simulate.lockstep.dev/fail-task-attempts"
)

// Labels of simulated Nodes, besides kubernetes.io/hostname, os and arch.
const (
	// TypeLabel has the value TypeKwok on every simulated Node; KWOK plays exactly these.
	TypeLabel = "type"
	TypeKwok  = "kwok"
	// RackLabel groups NodesPerRack neighbours: rack-0, rack-1, ...
	RackLabel = "topology.lockstep.dev/rack"
	// ZoneLabel groups NodesPerZone neighbours: zone-0, zone-1, ...
	ZoneLabel = corev1.LabelTopologyZone

	NodesPerRack = 50
	NodesPerZone = 500
)

// PodCIDR is where simulated Pods get their addresses, NodeCIDR where simulated Nodes do. Both
// lie in the shared address space of RFC 6598, which no network of the machine should use;
// nothing ever sends a packet to them.
const (
	PodCIDR  = "100.64.0.0/11"
	NodeCIDR = "100.96.0.0/11"
)

// MaxNodes is the number of addresses in NodeCIDR that Nodes may use.
const MaxNodes = 1 << 20

// Capacity is what each simulated Node offers.
type Capacity struct {
	CPU, Memory resource.Quantity
	// Pods is the number of Pods that a Node admits.
	Pods int64
}

// NodeName is the name of the i-th simulated Node, from 0.
func NodeName(i int) string {
	return fmt.Sprintf("sim-%d", i)
}

// Node returns the i-th simulated Node, ready from the start. It reports version as that of its
// kubelet: a real one, because clients parse it.
func Node(i int, capacity Capacity, version string) *corev1.Node {
	name := NodeName(i)
	resources := corev1.ResourceList{
		corev1.ResourceCPU:              capacity.CPU,
		corev1.ResourceMemory:           capacity.Memory,
		corev1.ResourcePods:             *resource.NewQuantity(capacity.Pods, resource.DecimalSI),
		corev1.ResourceEphemeralStorage: resource.MustParse("1Ti"),
	}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: name,
			Labels: map[string]string{
				corev1.LabelHostname:   name,
				corev1.LabelOSStable:   "linux",
				corev1.LabelArchStable: "amd64",
				TypeLabel:              TypeKwok,
				RackLabel:              fmt.Sprintf("rack-%d", i/NodesPerRack),
				ZoneLabel:              fmt.Sprintf("zone-%d", i/NodesPerZone),
			},
			Annotations: map[string]string{"kwok.x-k8s.io/node": "fake"},
		},
		Status: corev1.NodeStatus{
			Capacity:    resources,
			Allocatable: resources,
			Addresses: []corev1.NodeAddress{
				{Type: corev1.NodeInternalIP, Address: nodeAddress(i).String()},
				{Type: corev1.NodeHostName, Address: name},
			},
			NodeInfo: corev1.NodeSystemInfo{
				OperatingSystem:         "linux",
				Architecture:            "amd64",
				OSImage:                 "simulated",
				ContainerRuntimeVersion: "simulated://",
				KubeletVersion:          version,
			},
		},
	}
}

// nodeAddress is the (i+1)-th address of NodeCIDR.
func nodeAddress(i int) netip.Addr {
	base := netip.MustParsePrefix(NodeCIDR).Addr().As4()
	n := uint32(base[0])<<24 | uint32(base[1])<<16 | uint32(base[2])<<8 | uint32(base[3])
	n += uint32(i) + 1
	return netip.AddrFrom4([4]byte{byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)})
}
