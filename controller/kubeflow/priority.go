// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package kubeflow

import (
	"time"

	"github.com/lockstep-k8s/lockstep/controller/engine/plan"
)

// classGrace is how long Pods of a new start may be refused before the job's PriorityClass counts as missing. If the
// class was created together with the job, the API server's admission may know it only a moment later.
const classGrace = 2 * time.Second

// followPriorityClass records that the PriorityClass of the schedulingPolicy does not exist, and warns about it. Then
// the Pods of the job run without the class, as under the training operator with scheduler-plugins. This holds until
// the job is suspended or names another class.
func (d *decision) followPriorityClass() {
	if d.invalid != "" || d.wantsSuspension() || isFinished(d.next) {
		return
	}
	class := d.builder.schedulingPolicy().PriorityClass
	if class == "" || d.Memory.missingClass != class && !d.isClassMissing() {
		return
	}
	d.memory.missingClass = class
	d.WarnOnce(plan.ReasonPriorityClassNotFound,
		"spec.runPolicy.schedulingPolicy.priorityClass: PriorityClass %s does not exist; the Pods run without it", class)
}

// isClassMissing reports whether a Pod has been refused for longer than classGrace because of the PriorityClass of the
// schedulingPolicy.
func (d *decision) isClassMissing() bool {
	for _, block := range d.Blocked {
		if !d.isOfMissingClass(block) || d.next.StartTime == nil {
			continue
		}
		due := d.next.StartTime.Add(classGrace)
		if !d.clock.Before(due) {
			return true
		}
		d.WakeAt(due)
	}
	return false
}

// isOfMissingClass reports whether a block is about a PriorityClass that the schedulingPolicy alone
// names. A class that the Pod template names stays an error.
func (d *decision) isOfMissingClass(block plan.Block) bool {
	if block.Kind != KindPod || block.Reason != plan.ReasonPriorityClassNotFound {
		return false
	}
	for _, t := range d.types {
		if t.ranked && block.Group == lower(t.name) {
			return true
		}
	}
	return false
}
