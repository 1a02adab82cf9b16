// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package kubeflow

import (
	"strconv"
	"strings"

	kubeflowv1 "github.com/lockstep-k8s/lockstep/apis/kubeflow/v1"
)

// tellAsDesigned appends four arguments to the program of a TFJob of v1alpha2: the addresses of the parameter servers
// and of the workers, and the Pod's own type and index. It also sets TF_CONFIG. A Local replica gets none of this,
// because it has no other Pods.
func (b *builder) tellAsDesigned(pod *podMaking) {
	if pod.of.name == kubeflowv1.ReplicaLocal {
		return
	}
	hosts := b.hosts()
	container := b.kind.mainContainer(&pod.Spec)
	container.Args = append(container.Args,
		"--ps_hosts="+b.mention(container, listPS, hosts[kubeflowv1.ReplicaPS]),
		"--worker_hosts="+b.mention(container, listWorkers, hosts[kubeflowv1.ReplicaWorker]),
		"--job_name="+lower(pod.of.name),
		"--task_index="+strconv.Itoa(int(pod.index)),
	)
	b.tellOfTensorFlow(pod)
}

// renderHosts lists the addresses of all, by type, in the form of arguments.
func (b *builder) renderHosts() map[string]string {
	hosts := map[string]string{}
	for _, t := range b.types {
		hosts[t.name] = strings.Join(b.addresses(t), ",")
	}
	return hosts
}
