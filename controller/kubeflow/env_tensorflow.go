// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package kubeflow

import (
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	kubeflowv1 "github.com/lockstep-k8s/lockstep/apis/kubeflow/v1"
)

// tellOfTensorFlow describes the cluster to the training container, in TF_CONFIG. If the job has a single Pod, there is
// no cluster.
func (b *builder) tellOfTensorFlow(pod *podMaking) {
	container := b.kind.namedContainer(&pod.Spec)
	if container < 0 || total(b.types) == 1 {
		return
	}
	// Names and addresses have nothing that JSON would escape.
	task := `,"task":{"type":"` + lower(pod.of.name) + `","index":` + strconv.Itoa(int(pod.index)) + `}`
	c := &pod.Spec.Containers[container]
	var value string
	if b.job.Spec.EnableDynamicWorker && !b.kind.designed {
		value = `{"cluster":` + b.sparseCluster(pod) + task + `}`
	} else {
		value = `{"cluster":` + b.mention(c, listCluster, b.cluster()) + task + `,"environment":"cloud"}`
	}
	c.Env = append(c.Env, corev1.EnvVar{Name: "TF_CONFIG", Value: value})
}

// renderCluster lists the addresses of all, by type.
func (b *builder) renderCluster() string {
	var lists []string
	for _, t := range b.types {
		if t.name != kubeflowv1.ReplicaLocal {
			lists = append(lists, `"`+lower(t.name)+`":`+jsonList(b.addresses(t)))
		}
	}
	slices.Sort(lists)
	return "{" + strings.Join(lists, ",") + "}"
}

// sparseCluster lists the addresses that a Pod needs in a cluster whose workers come and go. A worker gets its own
// address and the addresses of all parameter servers; a parameter server gets its own.
func (b *builder) sparseCluster(pod *podMaking) string {
	own := b.address(pod.of, pod.index)
	workers, servers := "{}", "[]"
	switch pod.of.name {
	case kubeflowv1.ReplicaWorker:
		workers = `{"` + strconv.Itoa(int(pod.index)) + `":"` + own + `"}`
		if ps := typeIn(b.types, kubeflowv1.ReplicaPS); ps != nil {
			servers = jsonList(b.addresses(ps))
		}
	case kubeflowv1.ReplicaPS:
		servers = jsonList([]string{own})
	}
	return `{"worker":` + workers + `,"ps":` + servers + `}`
}

// jsonList returns a list of texts that need no escapes.
func jsonList(texts []string) string {
	if len(texts) == 0 {
		return "[]"
	}
	return `["` + strings.Join(texts, `","`) + `"]`
}
