// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package kubeflow

import (
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	kubeflowv1 "github.com/lockstep-k8s/lockstep/apis/kubeflow/v1"
	"github.com/lockstep-k8s/lockstep/controller/jobpods"
)

// tellOfXGBoost gives all containers of a Pod two addresses: that of the master, where XGBoost's tracker runs, and
// those of all workers, which LightGBM needs.
func (b *builder) tellOfXGBoost(pod *podMaking) {
	master, worker := typeIn(b.types, kubeflowv1.ReplicaMaster), typeIn(b.types, kubeflowv1.ReplicaWorker)
	rank := pod.index
	if pod.of != master {
		rank += master.number
	}
	env := []corev1.EnvVar{
		{Name: "MASTER_PORT", Value: b.portOf(master)},
		{Name: "MASTER_ADDR", Value: b.masterName()},
		{Name: "WORLD_SIZE", Value: strconv.Itoa(int(total(b.types)))},
		{Name: "RANK", Value: strconv.Itoa(int(rank))},
		{Name: "PYTHONUNBUFFERED", Value: "1"},
	}
	if worker != nil && worker.number > 0 {
		env = append(env,
			corev1.EnvVar{Name: "WORKER_PORT", Value: b.portOf(worker)},
			b.listVariable(listWorkerAddrs, b.workers()),
		)
	}
	jobpods.SetEnv(jobpods.AppContainers(&pod.Spec), env...)
}

// renderWorkers lists the names of all workers.
func (b *builder) renderWorkers() string {
	worker := typeIn(b.types, kubeflowv1.ReplicaWorker)
	names := make([]string, 0, worker.number)
	for index := range worker.number {
		names = append(names, b.name(worker.name, index))
	}
	return strings.Join(names, ",")
}
