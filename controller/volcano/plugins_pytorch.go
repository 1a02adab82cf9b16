// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package volcano

import (
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	batchv1alpha1 "github.com/lockstep-k8s/lockstep/apis/batch/v1alpha1"
	"github.com/lockstep-k8s/lockstep/controller/jobpods"
)

// pytorchPlugin sets variables in containers: the address of the master, the number of Pods, and the rank of the Pod.
type pytorchPlugin struct {
	withoutObjects
	b              *builder
	master, worker string
	port           int32
	wait           bool
	waitSeconds    int32
	waitImage      string
	// masterPlace is -1 if there is no such task.
	masterPlace int
}

func newPytorchPlugin(b *builder, flags []string) (plugin, string) {
	p := &pytorchPlugin{b: b, master: "master", worker: "worker", port: 23456, waitSeconds: 300, waitImage: "busybox:1.36.1"}
	f := newPluginFlags(batchv1alpha1.PluginPytorch)
	f.text(&p.master, "master")
	f.text(&p.worker, "worker")
	f.number(&p.port, "port")
	f.toggle(&p.wait, "wait-master-enabled")
	f.number(&p.waitSeconds, "wait-master-timeout")
	f.text(&p.waitImage, "wait-master-image")
	problem := f.parse(flags)
	p.masterPlace = b.placeOf(p.master)
	return p, problem
}

func (p *pytorchPlugin) change(pod *corev1.Pod, place int, index int32) {
	if p.masterPlace < 0 {
		return
	}
	env := []corev1.EnvVar{
		{Name: "MASTER_ADDR", Value: p.b.host(p.masterPlace, 0)},
		{Name: "MASTER_PORT", Value: strconv.Itoa(int(p.port))},
		{Name: "WORLD_SIZE", Value: strconv.Itoa(int(p.b.replicasOf(p.master) + p.b.replicasOf(p.worker)))},
	}
	switch p.b.spec.Tasks[place].Name {
	case p.master:
		env = append(env, corev1.EnvVar{Name: "RANK", Value: "0"})
	case p.worker:
		env = append(env, corev1.EnvVar{Name: "RANK", Value: strconv.Itoa(int(index) + 1)})
		if p.wait {
			pod.Spec.InitContainers = append(pod.Spec.InitContainers, p.waiter())
		}
	}
	for _, container := range jobpods.AppContainers(&pod.Spec) {
		container.Env = append(container.Env, env...)
		openPort(container, "pytorchjob-port", p.port)
	}
}

// waiter returns the init container that waits until the master listens.
func (p *pytorchPlugin) waiter() corev1.Container {
	script := fmt.Sprintf(`end=$(($(date +%%s) + %[3]d))
until nc -z -w 2 %[1]s %[2]d; do
  if [ "$(date +%%s)" -ge "$end" ]; then
    echo "%[1]s:%[2]d does not listen after %[3]d seconds" >&2
    exit 1
  fi
  sleep 2
done
`, p.b.host(p.masterPlace, 0), p.port, p.waitSeconds)
	return corev1.Container{Name: "wait-for-master", Image: p.waitImage, Command: []string{"sh", "-c", script}}
}

func (p *pytorchPlugin) portFlags() (plugin string, ports map[string]int32) {
	return batchv1alpha1.PluginPytorch, map[string]int32{"port": p.port}
}
