// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package volcano

import (
	corev1 "k8s.io/api/core/v1"

	batchv1alpha1 "github.com/lockstep-k8s/lockstep/apis/batch/v1alpha1"
	"github.com/lockstep-k8s/lockstep/controller/jobpods"
)

// KeepOfPod is what decisions read of a Pod, and nothing else of it: so much is worth caching.
// Of its annotations those are kept that say for what it was made, and what is to become of it.
func KeepOfPod(pod *corev1.Pod) *corev1.Pod {
	return jobpods.Keep(pod,
		batchv1alpha1.KeyJobName, batchv1alpha1.KeyJobVersion, batchv1alpha1.KeyJobRetryCount, KeyMark, KeyEvictedAt)
}
