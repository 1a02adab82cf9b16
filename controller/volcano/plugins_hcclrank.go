// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package volcano

import (
	"strconv"

	corev1 "k8s.io/api/core/v1"

	batchv1alpha1 "github.com/lockstep-k8s/lockstep/apis/batch/v1alpha1"
	"github.com/lockstep-k8s/lockstep/controller/jobpods"
)

// hcclrankPlugin gives devices that compute together their ranks.
type hcclrankPlugin struct {
	withoutObjects
	b              *builder
	master, worker string
}

// keyRankIndex is the annotation with the rank.
const keyRankIndex = "hccl/rankIndex"

func newHcclrankPlugin(b *builder, flags []string) (plugin, string) {
	p := &hcclrankPlugin{b: b, master: "master", worker: "worker"}
	f := newPluginFlags(batchv1alpha1.PluginHcclrank)
	f.text(&p.master, "master")
	f.text(&p.worker, "worker")
	return p, f.parse(flags)
}

func (p *hcclrankPlugin) change(pod *corev1.Pod, place int, index int32) {
	if _, set := pod.Annotations[keyRankIndex]; set {
		return
	}
	rank := p.rank(pod, place, index)
	if rank != "" {
		pod.Annotations[keyRankIndex] = rank
	}
}

// rank returns the rank of a Pod: the value of a variable in its containers or, without one, its position among the
// Pods of the tasks master and worker. rank returns "" for Pods of other tasks.
func (p *hcclrankPlugin) rank(pod *corev1.Pod, place int, index int32) string {
	for _, container := range jobpods.AppContainers(&pod.Spec) {
		for _, variable := range container.Env {
			if variable.Name == "RANK" && variable.Value != "" {
				return variable.Value
			}
		}
	}
	switch p.b.spec.Tasks[place].Name {
	case p.master:
		return strconv.Itoa(int(index))
	case p.worker:
		return strconv.Itoa(int(p.b.replicasOf(p.master) + index))
	default:
		return ""
	}
}
