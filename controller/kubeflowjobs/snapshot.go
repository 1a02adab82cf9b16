// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package kubeflowjobs

import (
	"errors"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kubeflowv1 "github.com/lockstep-k8s/lockstep/apis/kubeflow/v1"
	"github.com/lockstep-k8s/lockstep/controller/engine"
	"github.com/lockstep-k8s/lockstep/controller/kubeflow"
)

// view is what the engine knows of a job.
type view = engine.View[*Job, kubeflowv1.JobStatus]

// snapshot collects what is known of a job, without changing it. The Snapshot contains the objects that the job
// controls, by UID.
func (c *Core) snapshot(view *view, memory kubeflow.Memory) (kubeflow.Snapshot, error) {
	snapshot := kubeflow.Snapshot{Job: view.Owner.Job, Memory: memory, Options: c.options}
	if view.DeletionTimestamp != nil && snapshot.Job.DeletionTimestamp == nil {
		deleted := *snapshot.Job // The cache is behind.
		deleted.DeletionTimestamp = view.DeletionTimestamp
		snapshot.Job = &deleted
	}
	err := errors.Join(
		own(view, kubeflow.KindPod, &snapshot.Pods), own(view, kubeflow.KindService, &snapshot.Services),
		own(view, kubeflow.KindPodGroup, &snapshot.PodGroups), own(view, kubeflow.KindAutoscaler, &snapshot.Autoscalers),
	)
	if c.kind.configMaps {
		err = errors.Join(err, own(view, kubeflow.KindConfigMap, &snapshot.ConfigMaps))
	}
	if c.kind.secrets {
		err = errors.Join(err, own(view, kubeflow.KindSecret, &snapshot.Secrets))
	}
	snapshot.Known = view.Known // Only now it has all that is terminating.
	return snapshot, err
}

// own finds the objects of a kind that the job controls.
func own[T metav1.Object](view *view, kind string, into *map[string]T) (err error) {
	*into, err = engine.Owned[T](view, kind, view.Owner.UID)
	return err
}
