// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package volcano

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	batchv1alpha1 "github.com/lockstep-k8s/lockstep/apis/batch/v1alpha1"
	"github.com/lockstep-k8s/lockstep/controller/jobpods"
)

// rayPlugin starts a cluster of Ray in the Pods.
type rayPlugin struct {
	b                                *builder
	head, worker                     string
	headContainer, workerContainer   string
	port, dashboardPort, clientsPort int32
}

// Names of the ports of the head.
const (
	rayPort          = "gcs"
	rayDashboardPort = "dashboard"
	rayClientPort    = "client-server"
)

func newRayPlugin(b *builder, flags []string) (plugin, string) {
	p := &rayPlugin{b: b}
	return p, p.parse(flags)
}

func (p *rayPlugin) parse(flags []string) (problem string) {
	p.head, p.worker, p.headContainer, p.workerContainer = "head", "worker", "head", "worker"
	p.port, p.dashboardPort, p.clientsPort = 6379, 8265, 10001
	f := newPluginFlags(batchv1alpha1.PluginRay)
	f.text(&p.head, "head")
	f.text(&p.worker, "worker")
	f.text(&p.headContainer, "headContainer")
	f.text(&p.workerContainer, "workerContainer")
	f.number(&p.port, "port")
	f.number(&p.dashboardPort, "dashboardPort")
	f.number(&p.clientsPort, "clientPort")
	return f.parse(flags)
}

// rayHead returns the task of the head, by the flags of the plugin.
func rayHead(flags []string) string {
	p := &rayPlugin{}
	p.parse(flags)
	return p.head
}

func (p *rayPlugin) change(pod *corev1.Pod, place int, _ int32) {
	head := p.b.placeOf(p.head)
	if head < 0 {
		return
	}
	switch p.b.spec.Tasks[place].Name {
	case p.head:
		start := fmt.Sprintf("ray start --head --block --dashboard-host=0.0.0.0 --port=%d --dashboard-port=%d --ray-client-server-port=%d",
			p.port, p.dashboardPort, p.clientsPort)
		if container := runIn(pod, p.headContainer, start); container != nil {
			for _, port := range p.ports() {
				openPort(container, port.Name, port.Port)
			}
		}
	case p.worker:
		runIn(pod, p.workerContainer, fmt.Sprintf("ray start --block --address=%s:%d", p.b.host(head, 0), p.port))
	}
}

// runIn sets the command of a Pod's container to a shell command, and returns the container; nil if the Pod has no
// container with that name.
func runIn(pod *corev1.Pod, name, command string) *corev1.Container {
	for _, container := range jobpods.AppContainers(&pod.Spec) {
		if container.Name == name {
			container.Command = []string{"sh", "-c", command}
			return container
		}
	}
	return nil
}

// ports are those of the head, by name.
func (p *rayPlugin) ports() []corev1.ServicePort {
	ports := []corev1.ServicePort{
		{Name: rayPort, Port: p.port}, {Name: rayDashboardPort, Port: p.dashboardPort}, {Name: rayClientPort, Port: p.clientsPort},
	}
	for i := range ports {
		ports[i].TargetPort = intstr.FromString(ports[i].Name)
	}
	return ports
}

// objects returns the Service of the head.
func (p *rayPlugin) objects() []sideObject {
	b := p.b
	name := raySvcName(b.job.Name)
	return []sideObject{{
		Kind: KindService, Name: name, Plugin: batchv1alpha1.PluginRay,
		Object: &corev1.Service{
			ObjectMeta: b.metadata(name),
			Spec: corev1.ServiceSpec{
				Selector: map[string]string{
					batchv1alpha1.KeyJobName: b.job.Name, batchv1alpha1.KeyJobNamespace: b.job.Namespace, batchv1alpha1.KeyTaskName: p.head,
				},
				Ports: p.ports(),
			},
		},
	}}
}

func (p *rayPlugin) portFlags() (plugin string, ports map[string]int32) {
	return batchv1alpha1.PluginRay, map[string]int32{"port": p.port, "dashboardPort": p.dashboardPort, "clientPort": p.clientsPort}
}

// missingContainers returns which container that Ray is to be started in does not exist.
func (p *rayPlugin) missingContainers() []string {
	var missing []string
	for _, role := range []struct{ task, flag, container string }{
		{p.head, "headContainer", p.headContainer}, {p.worker, "workerContainer", p.workerContainer},
	} {
		place := p.b.placeOf(role.task)
		if place < 0 {
			continue
		}
		var names []string
		for _, container := range jobpods.AppContainers(&p.b.templates[place].Spec) {
			names = append(names, container.Name)
		}
		if !slices.Contains(names, role.container) {
			missing = append(missing, fmt.Sprintf("Plugin ray: task %s has no container %q, so Ray is not started in its Pods: flag --%s must name one of %s",
				role.task, role.container, role.flag, strings.Join(names, ", ")))
		}
	}
	return missing
}
