// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package kubeflow

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	kubeflowv1 "github.com/lockstep-k8s/lockstep/apis/kubeflow/v1"
	"github.com/lockstep-k8s/lockstep/controller/jobpods"
)

// count counts the Pods of all types. A running Pod that is being deleted is not counted. A failed Pod that will be
// replaced counts as failed until it is gone. For a suspended job, all Pods on nodes are counted, of any start, because
// other jobs wait for the room that these Pods occupy.
func (d *decision) count() {
	suspended := is(d.next, kubeflowv1.JobConditionSuspended)
	for _, r := range d.replicas {
		r.counts = counts{succeeded: r.succeeded(), failed: r.failed()}
		for _, pod := range r.old {
			if suspended && isBound(pod) {
				r.counts.active++
			}
		}
		for index, pod := range r.pods {
			switch {
			case suspended && isBound(pod), runs(pod):
				r.counts.active++
			case r.record.restarting.Has(index) && pod.Status.Phase == corev1.PodFailed && jobpods.EndedForGood(pod):
				r.counts.failed++
			}
		}
	}
}

// writeCounts writes the counts of Pods into the status, and stores the records. The counts of a job that has ended
// follow the remaining Pods, and then stay.
func (d *decision) writeCounts() {
	d.count()
	if d.invalid != "" && !d.hasReplicas() {
		return
	}
	statuses := map[string]kubeflowv1.ReplicaStatus{}
	for _, r := range d.replicas {
		s := kubeflowv1.ReplicaStatus{Active: r.counts.active, Succeeded: r.counts.succeeded, Failed: r.counts.failed}
		if before, known := d.kind.statusesOf(d.Status)[r.name]; known && isFinished(d.Status) && len(r.pods) == 0 && before.Active == 0 {
			statuses[r.name] = before
			continue
		}
		r.record.write(&s)
		if d.kind.scales {
			s.Selector = fmt.Sprintf("%s=%s,%s=%s,%s=%s", kubeflowv1.KeyJobName, d.Job.Name,
				kubeflowv1.KeyOperatorName, d.kind.operator, kubeflowv1.KeyReplicaType, lower(r.name))
		}
		if d.ofSpec(r) || d.invalid != "" || len(r.pods) > 0 || r.record.restarting.Count() > 0 || r.record.restarts > 0 {
			statuses[r.name] = s
		}
	}
	if len(statuses) == 0 {
		statuses = nil
	}
	if d.kind.designed {
		d.next.TFReplicaStatuses = statuses
	} else {
		d.next.ReplicaStatuses = statuses
	}
}

func (d *decision) hasReplicas() bool { return len(d.replicas) > 0 }
