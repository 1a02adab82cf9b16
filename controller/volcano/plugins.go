// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package volcano

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	batchv1alpha1 "github.com/lockstep-k8s/lockstep/apis/batch/v1alpha1"
)

// plugin is what a plugin of a Job adds.
type plugin interface {
	// change changes the Pod of an index of a task. place is the task's position in the spec.
	change(pod *corev1.Pod, place int, index int32)
	// objects are what the plugin needs beside the Pods.
	objects() []sideObject
}

// newPlugin makes a Job's plugin from its flags. problem names flags that the plugin does not understand.
type newPlugin func(b *builder, flags []string) (p plugin, problem string)

// pluginOrder is the order in which plugins change a Pod. It matters, because a plugin may read what another has
// written.
var pluginOrder = []struct {
	name string
	make newPlugin
}{
	{batchv1alpha1.PluginEnv, newEnvPlugin},
	{batchv1alpha1.PluginSvc, newSvcPlugin},
	{batchv1alpha1.PluginSSH, newSSHPlugin},
	{batchv1alpha1.PluginTensorflow, newTensorflowPlugin},
	{batchv1alpha1.PluginPytorch, newPytorchPlugin},
	{batchv1alpha1.PluginMPI, newMPIPlugin},
	{batchv1alpha1.PluginRay, newRayPlugin},
	{batchv1alpha1.PluginHcclrank, newHcclrankPlugin},
}

// ported is a plugin with flags for ports.
type ported interface {
	// portFlags are the plugin's name, its flags, and the values of these.
	portFlags() (plugin string, ports map[string]int32)
}

// checkPorts returns an error if a port in a plugin's flags is out of range. The API server would refuse the Pods, or
// the Service, without naming the flag.
func (b *builder) checkPorts() error {
	for _, p := range b.plugins {
		with, ok := p.(ported)
		if !ok {
			continue
		}
		plugin, ports := with.portFlags()
		for _, name := range slices.Sorted(maps.Keys(ports)) {
			if port := ports[name]; port < 1 || port > 65535 {
				return fmt.Errorf("spec.plugins[%s]: Invalid value: %d: the port of flag --%s must be from 1 to 65535", plugin, port, name)
			}
		}
	}
	return nil
}

// isPlugin reports whether there is a plugin of the name.
func isPlugin(name string) bool {
	for _, known := range pluginOrder {
		if known.name == name {
			return true
		}
	}
	return false
}

// newPlugins makes the plugins of the Job, in their order, and records their problems.
func (b *builder) newPlugins() []plugin {
	var plugins []plugin
	for _, known := range pluginOrder {
		flags, used := b.spec.Plugins[known.name]
		if !used {
			continue
		}
		p, problem := known.make(b, flags)
		if problem != "" {
			b.problems = append(b.problems, problem)
		}
		plugins = append(plugins, p)
	}
	return plugins
}

// warnings returns the warnings about plugins: flags that make no sense, and values that containers can't have.
func (b *builder) warnings() []string {
	warnings := slices.Clone(b.problems)
	for _, p := range b.plugins {
		switch p := p.(type) {
		case *svcPlugin:
			warnings = append(warnings, p.largeValues()...)
		case *rayPlugin:
			warnings = append(warnings, p.missingContainers()...)
		}
	}
	return warnings
}

// pluginResources are plugins in the status of a Job, while their objects exist.
func pluginResources(spec *batchv1alpha1.JobSpec) map[string]string {
	resources := map[string]string{}
	for name := range spec.Plugins {
		if name != batchv1alpha1.PluginHcclrank {
			resources["plugin-"+name] = name
		}
	}
	return resources
}

// openPort gives a container a port, unless that number is open.
func openPort(container *corev1.Container, name string, number int32) {
	for _, port := range container.Ports {
		if port.ContainerPort == number {
			return
		}
	}
	container.Ports = append(container.Ports, corev1.ContainerPort{Name: name, ContainerPort: number})
}

// withoutObjects is a plugin that needs nothing beside the Pods.
type withoutObjects struct{}

func (withoutObjects) objects() []sideObject { return nil }
