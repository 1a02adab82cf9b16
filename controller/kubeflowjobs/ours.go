// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package kubeflowjobs

import (
	"encoding/json"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"

	kubeflowv1 "github.com/lockstep-k8s/lockstep/apis/kubeflow/v1"
	"github.com/lockstep-k8s/lockstep/controller/adapter"
	"github.com/lockstep-k8s/lockstep/controller/engine"
	"github.com/lockstep-k8s/lockstep/controller/jobpods"
	"github.com/lockstep-k8s/lockstep/controller/kubeflow"
)

// Job is a job as the cache holds it. Its status is kept apart.
type Job struct {
	*kubeflow.Job
	// ours reports whether this controller runs the job. The controller writes and reports nothing about other jobs,
	// even if they are invalid.
	ours bool
}

// DeepCopyObject makes a Job an object that informers can hold.
func (j *Job) DeepCopyObject() runtime.Object {
	copied := *j.Job
	j.ObjectMeta.DeepCopyInto(&copied.ObjectMeta)
	return &Job{Job: &copied, ours: j.ours}
}

// DecodeOwner decodes a job from the API server. The CRD may be the training operator's or a user's own, so the spec
// may hold anything; the decision checks it.
func (c *Core) DecodeOwner(_ metav1.TypeMeta, metadata metav1.ObjectMeta, spec []byte) (*Job, error) {
	metadata.ManagedFields = adapter.StatusWriters(metadata.ManagedFields)
	job, err := c.kind.decode(metadata, spec)
	if err != nil {
		return &Job{Job: job, ours: c.takesUnread(metadata, spec)}, err
	}
	ours := kubeflow.Takes(job, c.options)
	if !ours && !kubeflow.TakesBegun(job, c.options) {
		job = job.WithoutSpec() // Nobody reads it until it is edited, and is decoded anew.
	}
	return &Job{Job: job, ours: ours}, nil
}

// takesUnread reports whether this controller would run a job whose spec can't be decoded as a whole. takesUnread
// returns false if even the fields that decide this can't be decoded.
func (c *Core) takesUnread(metadata metav1.ObjectMeta, spec []byte) bool {
	var policy struct {
		RunPolicy struct {
			ManagedBy *string `json:"managedBy"`
		} `json:"runPolicy"`
	}
	if err := json.Unmarshal(spec, &policy); err != nil {
		return false
	}
	known := &kubeflow.Job{ObjectMeta: metadata}
	known.Spec.RunPolicy.ManagedBy = policy.RunPolicy.ManagedBy
	known.Spec.Replicas = c.templatesIn(spec)
	return kubeflow.Takes(known, c.options)
}

// templatesIn returns the templates in a spec that can be read, by type.
func (c *Core) templatesIn(spec []byte) map[string]kubeflowv1.ReplicaSpec {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(spec, &fields); err != nil {
		return nil
	}
	var types map[string]struct {
		Template runtime.RawExtension `json:"template"`
	}
	if err := json.Unmarshal(fields[c.kind.replicas], &types); err != nil {
		return nil
	}
	templates := make(map[string]kubeflowv1.ReplicaSpec, len(types))
	for name, replicas := range types {
		templates[name] = kubeflowv1.ReplicaSpec{Template: replicas.Template}
	}
	return templates
}

// Ignores reports whether a job is another controller's.
func (c *Core) Ignores(job *Job) bool {
	return !job.ours && !(kubeflow.TakesBegun(job.Job, c.options) && c.hasBegun(job))
}

// hasBegun reports whether this controller has written the status of a job, or created one of its Services or Pods.
func (c *Core) hasBegun(job *Job) bool {
	if jobpods.HasStatusOf(job, c.options.Manager) {
		return true
	}
	for _, informer := range []cache.SharedIndexInformer{c.informers.services, c.informers.pods} {
		objects, err := informer.GetIndexer().ByIndex(engine.ByOwner, engine.OwnerKey(job.Namespace, job.UID))
		if err != nil {
			return false
		}
		for _, object := range objects {
			if accessor, err := meta.Accessor(object); err == nil && kubeflow.IsOurs(accessor) {
				return true
			}
		}
	}
	return false
}
