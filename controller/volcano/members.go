// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package volcano

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	batchv1alpha1 "github.com/lockstep-k8s/lockstep/apis/batch/v1alpha1"
	busv1alpha1 "github.com/lockstep-k8s/lockstep/apis/bus/v1alpha1"
	"github.com/lockstep-k8s/lockstep/controller/jobpods"
	"github.com/lockstep-k8s/lockstep/internal/podend"
)

// task is a task of the Job, with its Pods and what the status records of its indexes.
type task struct {
	// place is the position in the spec's list of tasks; the constant lost if the spec no longer has the task.
	place int
	spec  *batchv1alpha1.TaskSpec
	// members are the existing Pods of the task by index, including those that a rescale removes.
	members []*member
	record  record
	// persisted is the persisted part. Nil before the first use.
	persisted *record
	// counts are those of the present round.
	counts counts
}

// lost is the place of a task that the spec no longer has. Another project's CRD may let users remove or rename tasks;
// the Pods of such tasks still belong to the Job.
const lost = -1

// gatherTasks collects the tasks of the spec, and tasks that the spec no longer has but the status or a Pod names. If
// the spec was not changed, there are no such tasks.
func (d *decision) gatherTasks() {
	seen := map[string]bool{}
	for i := range d.spec.Tasks {
		if spec := &d.spec.Tasks[i]; !seen[spec.Name] {
			seen[spec.Name] = true
			d.tasks = append(d.tasks, &task{place: i, spec: spec})
		}
	}
	d.unclear = d.invalid != ""
	if d.unclear || d.recordedHash() != d.hash {
		for _, name := range d.knownTasks() {
			if !seen[name] {
				d.unclear = true
				d.tasks = append(d.tasks, &task{place: lost, spec: &batchv1alpha1.TaskSpec{Name: name, MinAvailable: new(int32)}})
			}
		}
	}
	for _, t := range d.tasks {
		reach := t.spec.Replicas
		if d.unclear || !isOpen(d.next.State.Phase) {
			reach = max(reach, reachOf(d.next, t.spec.Name)) // What a Job came to is not rescaled.
		}
		t.record = readRecord(d.next, t.spec.Name, reach)
	}
}

// knownTasks returns the names of all tasks that the status records or that have Pods, sorted.
func (d *decision) knownTasks() []string {
	names := map[string]bool{}
	for key := range d.next.ControlledResources {
		if name, ok := strings.CutPrefix(key, recordPrefix); ok {
			names[name] = true
		}
	}
	for pod := range d.Pods {
		if name, _, ok := partsOf(d.Job.Name, pod); ok {
			names[name] = true
		}
	}
	return jobpods.SortedKeys(names)
}

// minAvailable returns the effective minAvailable of the task.
func (t *task) minAvailable() int32 { return *t.spec.MinAvailable }

// member is a Pod of a task. Each index of a task has at most one Pod, because names are fixed.
type member struct {
	*corev1.Pod
	task  *task
	index int32
	// version and retries are those of the Job at the Pod's creation.
	version, retries int32
}

// standing is what a Pod is to the Job.
type standing int

const (
	// alive: the Pod counts by its phase.
	alive standing = iota
	// ended: the Pod has ended for good, and stays.
	ended
	// going: the Pod is being deleted, or is to be deleted.
	going
)

// gatherMembers assigns the Pods to tasks and indexes. Pods with names that the Job would not use are skipped; the
// garbage collector deletes them.
func (d *decision) gatherMembers() (goOn bool) {
	byName := make(map[string]*task, len(d.tasks))
	for _, t := range d.tasks {
		byName[t.spec.Name] = t
	}
	for name, pod := range d.Pods {
		taskName, index, ok := partsOf(d.Job.Name, name)
		t := byName[taskName]
		if !ok || t == nil || d.Gone[pod.UID] {
			continue
		}
		m := &member{Pod: pod, task: t, index: index, version: versionOf(pod), retries: retriesOf(pod)}
		switch newer := m.version > d.next.Version || m.retries > d.next.RetryCount; {
		case newer && !d.Checked[pod.UID]:
			d.outdated = true // The status is an old one, by all appearances.
			d.CheckStatus(pod.UID)
			continue
		case newer:
			m.version = -1 // Somebody has changed what the Pod says of itself.
		}
		t.members = append(t.members, m)
	}
	for _, t := range d.tasks {
		slices.SortFunc(t.members, func(a, b *member) int { return cmp.Compare(a.index, b.index) })
	}
	return !d.outdated
}

// partsOf returns the task and the index that the name of a Pod contains. Labels are not used, because users may change
// them. ok is false if no Pod of the Job can have the name.
func partsOf(job, pod string) (task string, index int32, ok bool) {
	rest, ok := strings.CutPrefix(pod, job+"-")
	last := strings.LastIndexByte(rest, '-')
	if !ok || last < 0 {
		return "", 0, false
	}
	task = rest[:last]
	number, err := strconv.ParseInt(rest[last+1:], 10, 32)
	return task, int32(number), err == nil && number >= 0 && pod == podName(job, task, int32(number))
}

// versionOf returns the version of the Job for which a Pod was created. A Pod without a version counts as older than
// all others.
func versionOf(pod *corev1.Pod) int32 { return numberOf(pod, batchv1alpha1.KeyJobVersion) }

// retriesOf returns how often the Job had been restarted when a Pod was created; 0 if the Pod has no such number.
func retriesOf(pod *corev1.Pod) int32 { return numberOf(pod, batchv1alpha1.KeyJobRetryCount) }

func numberOf(pod *corev1.Pod, annotation string) int32 {
	number, err := strconv.ParseInt(pod.Annotations[annotation], 10, 32)
	if err != nil {
		return -1
	}
	return int32(number)
}

// member returns the Pod of an index, nil if there is none.
func (t *task) member(index int32) *member {
	i, found := slices.BinarySearchFunc(t.members, index, func(m *member, index int32) int { return cmp.Compare(m.index, index) })
	if !found {
		return nil
	}
	return t.members[i]
}

func (d *decision) eachMember(do func(*member)) {
	for _, t := range d.tasks {
		for _, m := range t.members {
			do(m)
		}
	}
}

// hasEnded reports whether the Pod has succeeded or failed.
func (m *member) hasEnded() bool { return jobpods.HasEnded(m.Pod) }

// isMarked reports whether the Pod is to go, and its end is no event.
func (m *member) isMarked() bool { return m.Annotations[KeyMark] != "" }

// isSurplus reports whether a rescale removes the Pod.
func (d *decision) isSurplus(m *member) bool {
	return !d.unclear && m.index >= m.task.spec.Replicas
}

// isTaken reports whether a Pod is being deleted, or the cluster has ended it. Such a Pod does not count, and is
// replaced. But if the Job has policies for failures and none for evictions, a Pod that the cluster ended counts as
// failed, as under Volcano.
func (d *decision) isTaken(m *member) bool {
	switch {
	case jobpods.IsBeingDeleted(m.Pod):
		return true
	case !podend.Of(m.Pod).ByCluster():
		return false
	}
	speaksOf := func(event busv1alpha1.Event) bool {
		return d.policyFor(happening{event: event, task: m.task}) != nil
	}
	return speaksOf(busv1alpha1.EventPodEvicted) || !speaksOf(busv1alpha1.EventPodFailed)
}

// isEvicted reports whether another client is deleting a Pod of the present version, and the Pod was not seen to end
// before that.
func (d *decision) isEvicted(m *member) bool {
	return d.isTaken(m) && m.version == d.next.Version && !m.isMarked() && !d.isSurplus(m) &&
		!m.task.record.ended(m.index)
}

// standing returns what the Pod is to the Job now.
func (d *decision) standing(m *member) standing {
	phase := d.next.State.Phase
	switch {
	case m.isMarked():
		return going
	case d.isSurplus(m) && isOpen(phase):
		return going
	case m.task.record.ended(m.index):
		if m.hasEnded() {
			return ended
		}
		return going // The index has ended: this Pod was made by somebody who did not know.
	case m.version < d.next.Version, d.isTaken(m):
		return going
	case d.isTarget(m):
		return going
	case !isOpen(phase) && !m.hasEnded():
		return going
	default:
		return alive
	}
}

// followRecords updates the records of tasks from the existing Pods.
func (d *decision) followRecords() (goOn bool) {
	phase := d.next.State.Phase
	for _, t := range d.tasks {
		here := make(jobpods.Indexes, t.record.reach())
		for _, m := range t.members {
			if m.isMarked() {
				t.record.forget(m.index)
				continue
			}
			here.Set(m.index, m.version == d.next.Version && !d.isTaken(m))
			if !t.record.ended(m.index) && d.endCounts(m) {
				t.noteEnd(m)
			}
		}
		t.followThere(here, hasPods(phase))
	}
	return true
}

// followThere records which Pods exist, if `made` says that the controller creates Pods at present. The index of a Pod
// that is missing stays recorded until the Pod exists again or the controller has reacted. So a new controller learns
// of the loss, too.
func (t *task) followThere(here jobpods.Indexes, made bool) {
	for index := range t.record.reach() {
		switch {
		case t.record.ended(index):
			t.record.there.Set(index, false)
		case made && here.Has(index):
			t.record.there.Set(index, true)
		}
	}
}

// endCounts reports whether the result of a Pod without the annotation KeyMark counts. The result counts if the
// controller saw the end before the deletion and is not going to create the Pod again. When the Job stops, Pods that
// were about to be deleted count too. A Pod older than the last version never counts.
func (d *decision) endCounts(m *member) bool {
	switch phase := d.next.State.Phase; {
	case !m.hasEnded() || d.isTaken(m):
		return false
	case !isOpen(phase):
		return m.version >= d.next.Version-1
	default:
		return m.version == d.next.Version && !d.isTarget(m)
	}
}

// noteEnd notes that an index has ended as its Pod has.
func (t *task) noteEnd(m *member) {
	switch m.Status.Phase {
	case corev1.PodSucceeded:
		t.record.succeeded.Set(m.index, true)
	case corev1.PodFailed:
		t.record.failed.Set(m.index, true)
	}
}
