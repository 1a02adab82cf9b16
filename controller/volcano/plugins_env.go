// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package volcano

import (
	"strconv"

	corev1 "k8s.io/api/core/v1"

	batchv1alpha1 "github.com/lockstep-k8s/lockstep/apis/batch/v1alpha1"
	"github.com/lockstep-k8s/lockstep/controller/jobpods"
)

// envPlugin gives containers the index of their Pod.
type envPlugin struct{ withoutObjects }

func newEnvPlugin(_ *builder, flags []string) (plugin, string) {
	return envPlugin{}, newPluginFlags(batchv1alpha1.PluginEnv).parse(flags)
}

func (envPlugin) change(pod *corev1.Pod, _ int, index int32) {
	number := strconv.Itoa(int(index))
	jobpods.SetEnv(jobpods.AllContainers(&pod.Spec),
		corev1.EnvVar{Name: "VK_TASK_INDEX", Value: number},
		corev1.EnvVar{Name: "VC_TASK_INDEX", Value: number})
}
