// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package volcanojobs

import (
	"bytes"
	"encoding/json"
	"fmt"

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
	// ours reports whether this controller runs the Job, by the Job's scheduler name. The controller writes and reports
	// nothing about other Jobs, even if they are invalid.
	ours bool
	// unreadable says why the spec can't be decoded; "" if it can. The spec is empty if it can't.
	unreadable string
}

// DeepCopyObject makes a Job an object that informers can hold.
func (j *Job) DeepCopyObject() runtime.Object {
	return &Job{Job: j.Job.DeepCopy(), ours: j.ours, unreadable: j.unreadable}
}

// DecodeOwner decodes a Job from the API server. The CRD may be Volcano's or a user's own, so the spec may hold
// anything; the decision checks even a spec that could not be decoded.
func (c *Core) DecodeOwner(kind metav1.TypeMeta, metadata metav1.ObjectMeta, spec []byte) (*Job, error) {
	metadata.ManagedFields = adapter.StatusWriters(metadata.ManagedFields)
	job := &Job{Job: &batchv1alpha1.Job{TypeMeta: kind, ObjectMeta: metadata}}
	if err := decodeSpec(spec, &job.Spec); err != nil {
		job.Spec = batchv1alpha1.JobSpec{}
		job.ours, job.unreadable = c.namesUs(spec), err.Error()
		return job, nil
	}
	job.ours = volcano.IsOurs(&job.Spec, c.options)
	return job, nil
}

// decodeSpec decodes a spec, unless that would take far more memory than its text.
func decodeSpec(raw []byte, into *batchv1alpha1.JobSpec) error {
	if len(raw) == 0 {
		return nil
	}
	if err := volcano.CheckSpec(raw); err != nil {
		return err
	}
	return utiljson.Unmarshal(raw, into)
}

// namesUs reports whether a spec that can't be decoded as a whole belongs to a Job that this controller runs. namesUs
// returns false if the spec names no scheduler.
func (c *Core) namesUs(spec []byte) bool {
	var names struct {
		SchedulerName string          `json:"schedulerName"`
		Tasks         json.RawMessage `json:"tasks"`
	}
	if err := json.Unmarshal(spec, &names); err != nil {
		return false
	}
	known := &batchv1alpha1.JobSpec{SchedulerName: names.SchedulerName}
	if known.SchedulerName == "" && len(names.Tasks) > 0 {
		var err error
		if known.Tasks, err = firstTasks(names.Tasks); err != nil {
			return false
		}
	}
	return volcano.IsOurs(known, c.options)
}

// firstTasks returns the templates of at most as many tasks as a Job may have. firstTasks does not read further tasks,
// of which there may be any number.
func firstTasks(raw []byte) ([]batchv1alpha1.TaskSpec, error) {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	switch begin, err := decoder.Token(); {
	case err != nil:
		return nil, err
	case begin == nil:
		return nil, nil
	case begin != json.Delim('['):
		return nil, fmt.Errorf("tasks are no list")
	}
	var tasks []batchv1alpha1.TaskSpec
	for decoder.More() && len(tasks) < batchv1alpha1.MaxTasks {
		var task struct {
			Template runtime.RawExtension `json:"template"`
		}
		if err := decoder.Decode(&task); err != nil {
			return nil, err
		}
		tasks = append(tasks, batchv1alpha1.TaskSpec{Template: task.Template})
	}
	return tasks, nil
}

// Ignores reports whether a Job is another controller's.
func (c *Core) Ignores(job *Job) bool { return !job.ours }
