// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package volcano

import (
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"

	batchv1alpha1 "github.com/lockstep-k8s/lockstep/apis/batch/v1alpha1"
	"github.com/lockstep-k8s/lockstep/controller/jobpods"
)

// mpiPlugin gives the master of an MPI program the addresses of its workers.
type mpiPlugin struct {
	withoutObjects
	b              *builder
	master, worker string
	port           int32
	hosts          func() string
}

func newMPIPlugin(b *builder, flags []string) (plugin, string) {
	p := &mpiPlugin{b: b, port: 22}
	problem := p.parse(flags)
	p.hosts = sync.OnceValue(func() string {
		if place := b.placeOf(p.worker); place >= 0 {
			return strings.Join(b.hosts(place, b.spec.Tasks[place].Replicas), ",")
		}
		return ""
	})
	return p, problem
}

func (p *mpiPlugin) parse(flags []string) (problem string) {
	p.master, p.worker = "master", "worker"
	f := newPluginFlags(batchv1alpha1.PluginMPI)
	f.text(&p.master, "master")
	f.text(&p.worker, "worker")
	f.number(&p.port, "port")
	return f.parse(flags)
}

// mpiMaster returns the task of the master, by the flags of the plugin.
func mpiMaster(flags []string) string {
	p := &mpiPlugin{}
	p.parse(flags)
	return p.master
}

func (p *mpiPlugin) change(pod *corev1.Pod, place int, _ int32) {
	containers := jobpods.AllContainers(&pod.Spec)
	if p.b.spec.Tasks[place].Name == p.master && p.b.placeOf(p.worker) >= 0 {
		jobpods.SetEnv(containers, corev1.EnvVar{Name: "MPI_HOST", Value: p.hosts()})
	}
	for _, container := range containers {
		openPort(container, "mpijob-port", p.port)
	}
}

func (p *mpiPlugin) portFlags() (plugin string, ports map[string]int32) {
	return batchv1alpha1.PluginMPI, map[string]int32{"port": p.port}
}
