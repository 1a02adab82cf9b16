// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package kubeflow

import (
	"strconv"

	corev1 "k8s.io/api/core/v1"

	kubeflowv1 "github.com/lockstep-k8s/lockstep/apis/kubeflow/v1"
	"github.com/lockstep-k8s/lockstep/controller/jobpods"
)

// podIP is the variable with the own address of the Pod where all meet.
const podIP = "POD_IP_DUMMY"

// tellOfPaddle sets the variables of PaddlePaddle's launcher in all containers of a Pod. The address where all Pods
// meet is that of the first master or, without masters, of worker 0. Masters are parameter servers: with masters, each
// Pod is one server or one trainer.
func (b *builder) tellOfPaddle(pod *podMaking) {
	env := []corev1.EnvVar{
		{Name: "PYTHONUNBUFFERED", Value: "1"},
		{Name: "PADDLE_JOB_ID", Value: b.job.Name},
		{Name: "PADDLE_NNODES", Value: strconv.Itoa(int(total(b.types)))},
	}
	master := typeIn(b.types, kubeflowv1.ReplicaMaster)
	meeting := master
	if meeting == nil {
		meeting = typeIn(b.types, kubeflowv1.ReplicaWorker)
	}
	host := b.name(meeting.name, 0)
	if pod.of == meeting && pod.index == 0 {
		env = append(env, corev1.EnvVar{Name: podIP, ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "status.podIP"}}})
		host = "$(" + podIP + ")"
	}
	env = append(env, corev1.EnvVar{Name: "PADDLE_MASTER", Value: host + ":" + b.portOf(meeting)})
	switch {
	case master == nil:
	case pod.of == master:
		env = append(env, corev1.EnvVar{Name: "PADDLE_SERVER_NUM", Value: "1"})
	default:
		env = append(env, corev1.EnvVar{Name: "PADDLE_TRAINER_NUM", Value: "1"})
	}
	if elastic := b.job.Spec.ElasticPolicy; elastic != nil && elastic.MaxRestarts != nil {
		env = append(env, corev1.EnvVar{Name: "PADDLE_MAX_RESTART", Value: strconv.Itoa(int(*elastic.MaxRestarts))})
	}
	jobpods.SetEnv(jobpods.AppContainers(&pod.Spec), env...)
}
