// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package volcano

import (
	"strconv"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/json"

	batchv1alpha1 "github.com/lockstep-k8s/lockstep/apis/batch/v1alpha1"
	"github.com/lockstep-k8s/lockstep/controller/jobpods"
)

// tensorflowPlugin gives containers the cluster of TensorFlow that they are in.
type tensorflowPlugin struct {
	withoutObjects
	b *builder
	// roles are TensorFlow's, in the order of the list.
	roles []tensorflowRole
	port  int32
	// cluster is the part of TF_CONFIG that all Pods share, up to the index.
	cluster func() string
}

// tensorflowRole is a role and the corresponding task.
type tensorflowRole struct{ name, task string }

func newTensorflowPlugin(b *builder, flags []string) (plugin, string) {
	p := &tensorflowPlugin{b: b, port: 2222}
	f := newPluginFlags(batchv1alpha1.PluginTensorflow)
	p.roles = []tensorflowRole{{"ps", "ps"}, {"worker", "worker"}, {"chief", "chief"}, {"evaluator", "evaluator"}}
	for i := range p.roles {
		f.text(&p.roles[i].task, p.roles[i].name)
	}
	f.number(&p.port, "port")
	problem := f.parse(flags)
	p.cluster = sync.OnceValue(p.render)
	return p, problem
}

func (p *tensorflowPlugin) change(pod *corev1.Pod, place int, index int32) {
	if len(p.b.spec.Tasks) == 1 && p.b.spec.Tasks[0].Replicas == 1 {
		return // It is not distributed.
	}
	role := p.b.spec.Tasks[place].Name
	for _, r := range p.roles {
		if r.task == role {
			role = r.name
			break
		}
	}
	// Names of tasks and roles have nothing that JSON would escape.
	config := p.cluster() + `,"task":{"type":"` + role + `","index":` + strconv.Itoa(int(index)) + `}}`
	jobpods.SetEnv(jobpods.AppContainers(&pod.Spec), corev1.EnvVar{Name: "TF_CONFIG", Value: config})
}

// render returns the beginning of TF_CONFIG, up to the task.
func (p *tensorflowPlugin) render() string {
	var lists []string
	for _, role := range p.roles {
		place := p.b.placeOf(role.task)
		if place < 0 || p.b.spec.Tasks[place].Replicas == 0 {
			continue
		}
		addresses := p.b.hosts(place, p.b.spec.Tasks[place].Replicas)
		for i := range addresses {
			addresses[i] += ":" + strconv.Itoa(int(p.port))
		}
		list, err := json.Marshal(addresses)
		if err != nil {
			continue // Texts can always be written.
		}
		lists = append(lists, `"`+role.name+`":`+string(list))
	}
	return `{"cluster":{` + strings.Join(lists, ",") + `}`
}

func (p *tensorflowPlugin) portFlags() (plugin string, ports map[string]int32) {
	return batchv1alpha1.PluginTensorflow, map[string]int32{"port": p.port}
}
