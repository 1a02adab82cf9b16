// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package kubeflow

import (
	"strconv"
	"strings"

	kubeflowv1 "github.com/lockstep-k8s/lockstep/apis/kubeflow/v1"
)

// tellAsDesigned gives the program of a TFJob of v1alpha2 the addresses of the others, in its arguments, after the
// user's: always all four. A local replica is alone. TF_CONFIG is set, too.
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
