// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package kubeflow

import (
	kubeflowv1 "github.com/lockstep-k8s/lockstep/apis/kubeflow/v1"
	"github.com/lockstep-k8s/lockstep/controller/jobpods"
)

// record is what the status remembers of the Pods of a type, by index.
type record struct {
	// completed and failed are the indexes that have ended. Their Pods are not run again, even if somebody deletes
	// them.
	completed, failed jobpods.Indexes
	// restarting are the indexes with a Pod that was counted as a restart and is being deleted. An index stays here
	// until that Pod is gone, and gets no new Pod before, so no restart is counted twice.
	restarting jobpods.Indexes
	restarts   int32
}

// readRecord decodes the record of a type from a status. It ignores indexes that are not below `reach`.
func readRecord(stored kubeflowv1.ReplicaStatus, reach int32) record {
	r := record{
		make(jobpods.Indexes, reach), make(jobpods.Indexes, reach), make(jobpods.Indexes, reach), max(0, stored.Restarts),
	}
	r.completed.Read(stored.CompletedIndexes)
	r.failed.Read(stored.FailedIndexes)
	r.restarting.Read(stored.RestartingIndexes)
	return r
}

// reachOf returns how many indexes a status remembers something of.
func reachOf(stored kubeflowv1.ReplicaStatus) int32 {
	reach := int32(0)
	for _, list := range []string{stored.CompletedIndexes, stored.FailedIndexes, stored.RestartingIndexes} {
		reach = max(reach, jobpods.Reach(list, kubeflowv1.MaxReplicas-1))
	}
	return reach
}

// ended reports whether an index has ended.
func (r *record) ended(index int32) bool { return r.completed.Has(index) || r.failed.Has(index) }

// add counts restarts.
func (r *record) add(restarts int32) {
	r.restarts = int32(min(int64(r.restarts)+int64(max(0, restarts)), 1<<31-1))
}

// clear resets the record for a new start.
func (r *record) clear() {
	r.completed.Clear()
	r.failed.Clear()
	r.restarting.Clear()
	r.restarts = 0
}

// write stores the record in the status of its type.
func (r *record) write(into *kubeflowv1.ReplicaStatus) {
	into.CompletedIndexes, into.FailedIndexes = r.completed.String(), r.failed.String()
	into.RestartingIndexes, into.Restarts = r.restarting.String(), r.restarts
}

// statusesOf returns what a status has of the types of replicas.
func (k *kind) statusesOf(status *kubeflowv1.JobStatus) map[string]kubeflowv1.ReplicaStatus {
	switch {
	case status == nil:
		return nil
	case k.designed:
		return status.TFReplicaStatuses
	default:
		return status.ReplicaStatuses
	}
}
