// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package volcano

import (
	"maps"
	"strings"

	batchv1alpha1 "github.com/lockstep-k8s/lockstep/apis/batch/v1alpha1"
	"github.com/lockstep-k8s/lockstep/controller/jobpods"
)

// record is the status's record of the Pods of a task, by index. It is stored in status.controlledResources, because
// every CRD of a Job keeps that field: "pods-worker": "there=0-2 succeeded=3,5 failed=4".
type record struct {
	// `there` has the indexes with a Pod that was seen running or waiting, is of the present version and is not to be
	// deleted. If such a Pod is gone, another client has deleted it.
	there jobpods.Indexes
	// succeeded and failed are the indexes that have ended. Their Pods are not created again, even if somebody deletes
	// them.
	succeeded, failed jobpods.Indexes
	// missing are indexes whose Pods the controller must look for: Pods that were not seen when the Job, or a part of
	// the Job, began to restart or stop, and Pods without their label, which a new controller does not see. Neither a
	// restart nor a stop ends before these Pods are certainly gone.
	missing jobpods.Indexes
	// joined are the indexes whose Pods were added to the current restart after it had begun. The Pods with which the
	// restart began are named in status.state.message.
	joined jobpods.Indexes
	// These are failures (waits), evictions (lost) and the end of the task (done) for which an action is due later.
	// They are recorded because the Pods may be gone by then.
	waits, lost waits
	done        *lastSuccess
}

// recordPrefix is that of the keys in status.controlledResources.
const recordPrefix = "pods-"

// set is one set of indexes in a record, with its name there.
type set struct {
	name    string
	indexes *jobpods.Indexes
}

// sets are those of a record, in the stored order.
func (r *record) sets() []set {
	return []set{{"there", &r.there}, {"succeeded", &r.succeeded}, {"failed", &r.failed}, {"missing", &r.missing}, {"joined", &r.joined}}
}

// readRecord decodes the record of a task from a status. It ignores indexes that are not below `replicas`.
func readRecord(status *batchv1alpha1.JobStatus, task string, replicas int32) record {
	r := record{}
	for _, s := range r.sets() {
		*s.indexes = make(jobpods.Indexes, replicas)
	}
	if status == nil {
		return r
	}
	for _, field := range strings.Fields(status.ControlledResources[recordPrefix+task]) {
		name, ranges, _ := strings.Cut(field, "=")
		r.readMoment(name, ranges)
		for _, s := range r.sets() {
			if s.name == name {
				s.indexes.Read(ranges)
			}
		}
	}
	return r
}

// reachOf returns how many indexes of a task a status remembers something of.
func reachOf(status *batchv1alpha1.JobStatus, task string) int32 {
	if status == nil {
		return 0
	}
	reach := int32(0)
	for _, field := range strings.Fields(status.ControlledResources[recordPrefix+task]) {
		_, ranges, _ := strings.Cut(field, "=")
		reach = max(reach, jobpods.Reach(ranges, batchv1alpha1.MaxReplicas-1))
	}
	return reach
}

// String returns the record as it is stored in the status; "" if it is empty.
func (r record) String() string {
	var fields []string
	for _, s := range r.sets() {
		if ranges := s.indexes.String(); ranges != "" {
			fields = append(fields, s.name+"="+ranges)
		}
	}
	return strings.Join(append(fields, r.momentFields()...), " ")
}

// reach returns how many indexes can be on record.
func (r record) reach() int32 { return int32(len(r.there)) }

// isEmpty reports whether no Pod was ever seen.
func (r record) isEmpty() bool { return r.there.Count()+r.succeeded.Count()+r.failed.Count() == 0 }

// ended reports whether an index has ended.
func (r record) ended(index int32) bool { return r.succeeded.Has(index) || r.failed.Has(index) }

// forget forgets all of an index.
func (r *record) forget(index int32) {
	r.there.Set(index, false)
	r.succeeded.Set(index, false)
	r.failed.Set(index, false)
	r.dealtWith(index)
}

// write stores the records in a status.
func (d *decision) writeRecords() {
	resources := maps.Clone(d.next.ControlledResources)
	maps.DeleteFunc(resources, func(key, _ string) bool { return strings.HasPrefix(key, recordPrefix) })
	for _, t := range d.tasks {
		if stored := t.record.String(); stored != "" {
			if resources == nil {
				resources = map[string]string{}
			}
			resources[recordPrefix+t.spec.Name] = stored
		}
	}
	if len(resources) == 0 {
		resources = nil
	}
	d.next.ControlledResources = resources
}
