// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package volcano

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
)

// maxPodBytes is the most that the API server stores of a Pod.
const maxPodBytes = 3 << 19

// tooLarge returns a message about the part of the Job that is too large for the API server; "" if everything fits.
// Without this check the controller would build objects that the API server refuses: plugins and volumes can multiply
// a template by thousands, for dozens of Pods at the same time.
func (b *builder) tooLarge() string {
	for _, p := range b.plugins {
		kind, name, size := "", "", 0
		switch p := p.(type) {
		case *svcPlugin:
			kind, name, size = KindConfigMap, p.configName, p.size()
		case *sshPlugin:
			kind, name, size = KindSecret, p.name, p.size()
		}
		if size > corev1.MaxSecretSize {
			return fmt.Sprintf("The %s %s would have %d bytes, the API server takes %d: the Job has too many Pods for the plugin", kind, name, size, corev1.MaxSecretSize)
		}
	}
	for place := range b.spec.Tasks {
		task := &b.spec.Tasks[place]
		if size := b.pod(place, max(0, task.Replicas-1), podMoment{}).Size(); size > maxPodBytes {
			return fmt.Sprintf("With what plugins and volumes add to it, a Pod of task %s would have %d bytes, the API server takes %d", task.Name, size, maxPodBytes)
		}
	}
	return ""
}
