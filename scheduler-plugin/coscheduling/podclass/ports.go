// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package podclass

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
)

// HostPort is a port of a node that a container wants.
type HostPort struct {
	Protocol corev1.Protocol
	Address  string
	Port     int32
}

// HostPorts returns the host ports that a Pod wants, counted as in the plugin NodePorts: without those of init
// containers that end before the main containers start. A port on two addresses of a node counts as two ports. It
// returns nil for none.
func HostPorts(pod *corev1.Pod) sets.Set[HostPort] {
	var ports sets.Set[HostPort]
	add := func(c *corev1.Container) {
		for _, p := range c.Ports {
			if p.HostPort == 0 {
				continue
			}
			if ports == nil {
				ports = sets.New[HostPort]()
			}
			ports.Insert(HostPort{p.Protocol, p.HostIP, p.HostPort})
		}
	}
	for i := range pod.Spec.InitContainers {
		c := &pod.Spec.InitContainers[i]
		if c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			add(c)
		}
	}
	for i := range pod.Spec.Containers {
		add(&pod.Spec.Containers[i])
	}
	return ports
}
