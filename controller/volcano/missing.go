// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package volcano

// noteMissing notes the Pods of a part that are not in sight when it begins to go. Of a task
// of which nothing was ever seen there are none.
func (d *decision) noteMissing(part target) {
	for _, t := range d.tasks {
		if len(t.members) == 0 && t.record.there.Count() == 0 {
			continue
		}
		for index := range t.record.reach() {
			if part.has(t, index) && !t.record.ended(index) && t.member(index) == nil && !d.wasNotFound(podName(d.Job.Name, t.spec.Name, index)) {
				t.record.missing.Set(index, true)
			}
		}
	}
}

// lookForMissing looks for them, and forgets those that are certainly not there, or have ended
// by now. One that is found is the Job's again, and goes.
func (d *decision) lookForMissing() (goOn bool) {
	for _, t := range d.tasks {
		for index := range t.record.reach() {
			name := ""
			switch {
			case !t.record.missing.Has(index):
				continue
			case hasPods(d.next.State.Phase), t.record.ended(index):
				t.record.missing.Set(index, false)
				continue
			case t.member(index) != nil:
				continue
			default:
				name = podName(d.Job.Name, t.spec.Name, index)
			}
			if d.wasNotFound(name) {
				t.record.missing.Set(index, false)
			} else {
				d.confirming[name] = true
			}
		}
	}
	return true
}

// areMissing says whether Pods may be there that are not in sight.
func (d *decision) areMissing() bool {
	for _, t := range d.tasks {
		if t.record.missing.Count() > 0 {
			return true
		}
	}
	return false
}
