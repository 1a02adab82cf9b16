// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package volcanojobs

import (
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	batchv1alpha1 "github.com/lockstep-k8s/lockstep/apis/batch/v1alpha1"
	"github.com/lockstep-k8s/lockstep/controller/adapter"
	"github.com/lockstep-k8s/lockstep/controller/volcano"
)

// Job is a Job as the cache holds it. Its status is kept apart.
type Job struct {
	*batchv1alpha1.Job
	// ours says whether its scheduler makes it ours. Of one that is not, nothing is ever
	// written, and nobody is told of it, even if it makes no sense.
	ours bool
	// unreadable says why the spec, which is empty then, can't be read. Empty if it can.
	unreadable string
}

// DeepCopyObject makes a Job an object that informers can hold.
func (j *Job) DeepCopyObject() runtime.Object {
	return &Job{Job: j.Job.DeepCopy(), ours: j.ours, unreadable: j.unreadable}
}

// DecodeOwner makes a Job of what the API server has sent. The CRD may be Volcano's, or
// anybody's: what a spec may hold is for the decision to look at, and what if it can't be read.
func (c *Core) DecodeOwner(kind metav1.TypeMeta, metadata metav1.ObjectMeta, spec []byte) (*Job, error) {
	metadata.ManagedFields = adapter.StatusWriters(metadata.ManagedFields)
	job := &Job{Job: &batchv1alpha1.Job{TypeMeta: kind, ObjectMeta: metadata}}
	if len(spec) > 0 {
		if err := utiljson.Unmarshal(spec, &job.Spec); err != nil {
			job.Spec = batchv1alpha1.JobSpec{}
			job.ours, job.unreadable = c.namesUs(spec), err.Error()
			return job, nil
		}
	}
	job.ours = volcano.IsOurs(&job.Spec, c.options)
	return job, nil
}

// namesUs says whether a spec that does not decode as a whole is that of a Job of ours. One
// that does not even say so is not.
func (c *Core) namesUs(spec []byte) bool {
	var names struct {
		SchedulerName string `json:"schedulerName"`
		Tasks         []struct {
			Template runtime.RawExtension `json:"template"`
		} `json:"tasks"`
	}
	if err := json.Unmarshal(spec, &names); err != nil {
		return false
	}
	known := &batchv1alpha1.JobSpec{SchedulerName: names.SchedulerName}
	for _, task := range names.Tasks {
		known.Tasks = append(known.Tasks, batchv1alpha1.TaskSpec{Template: task.Template})
	}
	return volcano.IsOurs(known, c.options)
}

// Ignores says whether a Job is somebody else's.
func (c *Core) Ignores(job *Job) bool { return !job.ours }
