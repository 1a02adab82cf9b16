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

// HostPorts returns the ports that a Pod wants of its node, as the plugin NodePorts counts them: not those of init containers
// that end before the others start. On several addresses of a node the same port can be had more than once. It
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
