// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package kubeflow

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	kubeflowv1 "github.com/lockstep-k8s/lockstep/apis/kubeflow/v1"
)

// maxText is the longest argument, or variable with its name, with which Linux starts a process: MAX_ARG_STRLEN without
// the final zero byte.
const maxText = 128<<10 - 1

// maxTold limits the environment and the arguments of all containers of a Pod together, in bytes. etcd accepts at most
// 1.5 MiB for a Pod, and dozens of Pods are built at the same time.
const maxTold = 1 << 20

// tooLong says which argument or variable of a job is too long to start a process; "" if none is. Only the last Pod of
// each type is checked, because its texts are the longest.
func (b *builder) tooLong() string {
	if b.kind.launches {
		return b.tooManyHosts()
	}
	b = b.inline()
	for _, t := range b.types {
		if t.number == 0 {
			continue
		}
		last := &corev1.Pod{}
		for _, container := range t.template.Spec.Containers {
			last.Spec.Containers = append(last.Spec.Containers, corev1.Container{Name: container.Name})
		}
		b.kind.tell(b, &podMaking{Pod: last, of: t, index: t.number - 1})
		all := 0
		for i := range last.Spec.Containers {
			for _, told := range toldTo(&last.Spec.Containers[i]) {
				all += len(told)
				if len(told) <= maxText {
					continue
				}
				name, _, _ := strings.Cut(told, "=")
				field, help := b.kind.field, "a shorter name, "+b.fewerNames()
				if name == rdzvConf {
					field, help = "elasticPolicy.rdzvConf", "fewer settings"
				}
				return fmt.Sprintf("spec.%s: %s would have %d characters, and no process starts with more than %d: use %s", field, name, len(told), maxText, help)
			}
		}
		if all > maxTold {
			field, help := b.kind.field, b.fewerNames()
			if elastic := b.job.Spec.ElasticPolicy; elastic != nil && len(elastic.RDZVConf) > 0 {
				field, help = "elasticPolicy", "or fewer settings in rdzvConf"
			}
			return fmt.Sprintf("spec.%s: the containers of a Pod of %s would have %d bytes of environment and arguments in all, and may have at most %d: use fewer containers, %s", field, t.name, all, maxTold, help)
		}
	}
	return ""
}

// inline returns a builder that writes all lists out, as programs read them.
func (b *builder) inline() *builder {
	inline := *b
	inline.lists = func() keptLists { return keptLists{} }
	return &inline
}

// fewerNames returns the advice by which Pods get fewer names of others.
func (b *builder) fewerNames() string {
	if b.options.Services == kubeflowv1.ServicesPerJob {
		return "fewer replicas, or the annotation " + KeyServices + ": " + string(kubeflowv1.ServicesPerReplica) + ", by which names are shorter"
	}
	return "or fewer replicas"
}

// toldTo returns the environment and the arguments of a container: its arguments and variables.
func toldTo(c *corev1.Container) []string {
	told := c.Args
	for _, env := range c.Env {
		told = append(told, env.Name+"="+env.Value)
	}
	return told
}
