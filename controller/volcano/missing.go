// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package volcano

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"

	batchv1alpha1 "github.com/lockstep-k8s/lockstep/apis/batch/v1alpha1"
)

// noteMissing records Pods of a part that is about to be deleted: Pods that are missing, and Pods without their label,
// which a new controller could not find. If all unfinished Pods of the Job are to be deleted, noteMissing records all
// of them: a Pod that loses the label later would otherwise be left running. endedGo means that the controller also
// deletes Pods that have ended, so noteMissing records these, too. Tasks without a record are skipped.
func (d *decision) noteMissing(part target, endedGo bool) {
	for _, t := range d.tasks {
		if len(t.members) == 0 && t.record.isEmpty() {
			continue
		}
		for index := range t.record.reach() {
			if part.has(t, index) && (endedGo || !t.record.ended(index)) && d.mayBeMissed(t, index) {
				t.record.missing.Set(index, true)
			}
		}
	}
}

// mayBeMissed reports whether a Pod that has to be deleted may exist although a controller that starts now would not
// find it.
func (d *decision) mayBeMissed(t *task, index int32) bool {
	m := t.member(index)
	if m == nil {
		return !d.wasNotFound(podName(d.Job.Name, t.spec.Name, index))
	}
	return !isOpen(d.next.State.Phase) || m.Labels[batchv1alpha1.KeyJobName] == ""
}

// lookForMissing reads the Pods that are recorded as missing from the API server. It removes from the record the Pods
// that do not exist or have ended. The Pods that it finds belong to the Job again, and are deleted.
func (d *decision) lookForMissing() (goOn bool) {
	for _, t := range d.tasks {
		for index := range t.record.reach() {
			if !t.record.missing.Has(index) {
				continue
			}
			switch m, name := t.member(index), podName(d.Job.Name, t.spec.Name, index); {
			case hasPods(d.next.State.Phase), t.record.ended(index):
				t.record.missing.Set(index, false)
			case m != nil:
				d.noteInSight(name, m.UID)
			case d.wasNotFound(name), d.Gone[d.Memory.InSight[name]]:
				t.record.missing.Set(index, false)
			default:
				d.confirming[name] = true
			}
		}
	}
	return true
}

// noteInSight remembers the UID of the Pod that was last seen with a name. If an event reports that this Pod is gone,
// the controller need not look for it.
func (d *decision) noteInSight(name string, uid types.UID) {
	if d.memory.InSight == nil {
		d.memory.InSight = map[string]types.UID{}
	}
	d.memory.InSight[name] = uid
}

// areMissing reports whether Pods may be there that are not in sight.
func (d *decision) areMissing() bool {
	return slices.ContainsFunc(d.tasks, func(t *task) bool { return t.record.missing.Count() > 0 })
}
