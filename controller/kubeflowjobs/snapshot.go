// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package kubeflowjobs

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kubeflowv1 "github.com/lockstep-k8s/lockstep/apis/kubeflow/v1"
	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/controller/engine"
	"github.com/lockstep-k8s/lockstep/controller/kubeflow"
)

// view is what the engine knows of a job.
type view = engine.View[*Job, kubeflowv1.JobStatus]

// snapshot puts together what is known of a job. Everything in it is read only. The objects are
// those that the job controls, by UID.
func (c *Core) snapshot(view *view, memory kubeflow.Memory) (kubeflow.Snapshot, error) {
	snapshot := kubeflow.Snapshot{Job: view.Owner.Job, Memory: memory, Options: c.options}
	if view.DeletionTimestamp != nil && snapshot.Job.DeletionTimestamp == nil {
		deleted := *snapshot.Job // The cache is behind.
		deleted.DeletionTimestamp = view.DeletionTimestamp
		snapshot.Job = &deleted
	}
	uid := view.Owner.UID
	var err error
	if snapshot.Pods, err = engine.Owned[*corev1.Pod](view, kubeflow.KindPod, uid); err != nil {
		return snapshot, err
	}
	if snapshot.Services, err = engine.Owned[metav1.Object](view, kubeflow.KindService, uid); err != nil {
		return snapshot, err
	}
	if snapshot.PodGroups, err = engine.Owned[*schedulingv1alpha1.PodGroup](view, kubeflow.KindPodGroup, uid); err != nil {
		return snapshot, err
	}
	if snapshot.Autoscalers, err = engine.Owned[metav1.Object](view, kubeflow.KindAutoscaler, uid); err != nil {
		return snapshot, err
	}
	if c.kind.configMaps {
		if snapshot.ConfigMaps, err = engine.Owned[metav1.Object](view, kubeflow.KindConfigMap, uid); err != nil {
			return snapshot, err
		}
	}
	if c.kind.secrets {
		if snapshot.Secrets, err = engine.Owned[metav1.Object](view, kubeflow.KindSecret, uid); err != nil {
			return snapshot, err
		}
	}
	snapshot.Known = view.Known // Only now it has all that is terminating.
	return snapshot, nil
}
