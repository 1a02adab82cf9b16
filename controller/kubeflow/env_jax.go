// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package kubeflow

import (
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"github.com/lockstep-k8s/lockstep/controller/jobpods"
)

// tellOfJAX gives all containers of a Pod the address of the coordinator, which is worker 0, the number of processes,
// and the container's own rank.
func (b *builder) tellOfJAX(pod *podMaking) {
	jobpods.SetEnv(jobpods.AppContainers(&pod.Spec),
		corev1.EnvVar{Name: "PYTHONUNBUFFERED", Value: "1"},
		corev1.EnvVar{Name: "COORDINATOR_PORT", Value: b.portOf(pod.of)},
		corev1.EnvVar{Name: "COORDINATOR_ADDRESS", Value: b.name(pod.of.name, 0)},
		corev1.EnvVar{Name: "NUM_PROCESSES", Value: strconv.Itoa(int(total(b.types)))},
		corev1.EnvVar{Name: "PROCESS_ID", Value: strconv.Itoa(int(pod.index))},
	)
}
