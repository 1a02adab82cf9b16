// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package volcano

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	batchv1alpha1 "github.com/lockstep-k8s/lockstep/apis/batch/v1alpha1"
	"github.com/lockstep-k8s/lockstep/controller/engine/plan"
	"github.com/lockstep-k8s/lockstep/controller/jobpods"
	"github.com/lockstep-k8s/lockstep/internal/podend"
)

// planActions derives from the status, which is persisted, what is to be done.
func (d *decision) planActions() {
	switch phase := d.next.State.Phase; {
	case hasPods(phase):
		d.planAttempt()
	case phase == batchv1alpha1.JobRestarting:
		if d.planMarks() {
			d.planSurplus()
			d.planDeletions()
		}
	default:
		d.planDeletions()
		if isOver(phase) {
			if d.counts().left() == 0 {
				d.planRemovals() // What still ends may need its Service, and the NetworkPolicy protects it.
			}
			d.planRetention()
		}
	}
	if d.listsPods {
		d.Act(plan.Action{Verb: plan.List, Kind: KindPod, Name: d.Job.Name, Owner: d.Job.UID, Selector: batchv1alpha1.KeyJobName + "=" + d.Job.Name})
	}
	for _, name := range jobpods.SortedKeys(d.confirming) {
		d.Act(plan.Action{Verb: plan.ConfirmNo, Kind: KindPod, Name: name, Owner: d.Job.UID})
	}
}

// planMarks adds the annotation KeyMark to the Pods that the current restart is going to delete, before the first of
// them is deleted. Pods that have joined the restart get it only after the status that names them was written.
// planMarks reports whether all these Pods have the annotation.
func (d *decision) planMarks() bool {
	unmarked := d.unmarkedTargets()
	onRecord, _ := d.targetOnRecord()
	for _, m := range unmarked {
		switch {
		case onRecord.isOf(m):
			d.mark(m, onRecord.String())
		case d.persistedOf(m.task).joined.Has(m.index):
			d.mark(m, "restart")
		default:
			d.Persist(plan.PersistSoon)
		}
	}
	return len(unmarked) == 0
}

// planSurplus adds the annotation KeyMark to the Pods that a rescale removes. Then the end of such a Pod triggers no
// policy, even if the Job is scaled up again before the Pod is deleted. Before the first such write, planSurplus reads
// the spec from the API server, to be sure that the known spec is current.
func (d *decision) planSurplus() {
	d.eachMember(func(m *member) {
		switch {
		case !d.isSurplus(m) || m.isMarked() || m.version < d.next.Version:
		case !d.Checked[m.UID]:
			d.CheckStatus(m.UID)
		default:
			d.mark(m, "rescale")
		}
	})
}

func (d *decision) mark(m *member, why string) {
	d.Act(plan.Action{
		Verb: plan.Update, Kind: KindPod, Name: m.Name, UID: m.UID,
		Patch: jobpods.Annotate(m.Pod, KeyMark, why), Content: why, Detail: "mark",
	})
}

// planDeletions deletes the Pods that are to go.
func (d *decision) planDeletions() {
	d.eachMember(func(m *member) {
		if d.standing(m) != going || m.DeletionTimestamp != nil || d.Deleted[m.UID] {
			return
		}
		switch {
		case m.isMarked():
			if d.isOnRecord(m) {
				d.Persist(plan.PersistSoon) // A controller that begins would miss it, or take its successor for it.
				return
			}
			d.Act(jobpods.Deletion(KindPod, m.Pod))
		case !isOpen(d.next.State.Phase):
			d.Act(jobpods.DeletionAsSeen(KindPod, m.Pod)) // If it has ended meanwhile, that counts.
		case m.version < d.next.Version:
			d.Act(jobpods.Deletion(KindPod, m.Pod))
		case d.isSurplus(m):
			// The Pod gets its mark first.
		case !m.task.record.ended(m.index):
			d.deleteTaken(m)
		default:
			d.ActIfChecked(jobpods.Deletion(KindPod, m.Pod)) // Its index has ended before.
		}
	})
}

// deletionPatience is how long the controller waits for another client to delete a Pod, after that client has
// announced the deletion.
const deletionPatience = 10 * time.Second

// deleteTaken deletes a Pod that the cluster has ended, unless the Pod has changed since. If another client has
// announced that it deletes the Pod, the controller first waits for that deletion.
func (d *decision) deleteTaken(m *member) {
	if podend.IsAboutToBeDeleted(m.Pod) {
		due := d.since("about to be deleted "+string(m.UID), jobpods.DeletionTime(m.Pod)).Add(deletionPatience)
		if d.clock.Before(due) {
			d.WakeAt(due)
			return
		}
	}
	d.Act(jobpods.DeletionAsSeen(KindPod, m.Pod))
}

// isOnRecord reports whether the written status records the Pod's index as existing or ended.
func (d *decision) isOnRecord(m *member) bool {
	persisted := d.persistedOf(m.task)
	return persisted.there.Has(m.index) || persisted.ended(m.index)
}

// persistedOf returns what is persisted of a task.
func (d *decision) persistedOf(t *task) *record {
	if t.persisted == nil {
		r := readRecord(d.Persisted, t.spec.Name, max(t.spec.Replicas, reachOf(d.Persisted, t.spec.Name)))
		t.persisted = &r
	}
	return t.persisted
}

// planAttempt creates and deletes objects of a Job that has Pods to run. It changes the gang's minimum before it
// creates or deletes Pods, so that the scheduler never uses an outdated minimum. There is one exception: while a gang
// waits for nodes, surplus Pods are deleted before the minimum is lowered.
func (d *decision) planAttempt() {
	makes := d.mayMakePods()
	group := !makes || d.planPodGroup()
	if group || d.surplusGoesFirst() {
		d.planSurplus()
	}
	d.planDeletions()
	if objects := makes && d.planObjects(); objects && group {
		d.planPods()
	}
}

// planPods makes the Pods that are missing.
func (d *decision) planPods() {
	for _, t := range d.tasks {
		if !d.mayStart(t) {
			continue
		}
		for index := range t.spec.Replicas {
			if t.record.ended(index) || t.member(index) != nil {
				continue
			}
			if d.persistedOf(t).ended(index) {
				d.Persist(plan.PersistSoon) // It was scaled away since; another controller would not know.
				continue
			}
			name := podName(d.Job.Name, t.spec.Name, index)
			if d.confirming[name] {
				continue
			}
			d.ActIfCurrent(plan.Action{
				Verb: plan.Create, Kind: KindPod, Name: name, Owner: d.Job.UID,
				Build: d.podRecipe(t, index), Group: t.spec.Name, Content: d.content(),
			})
		}
	}
}

// content names what the Job's objects contain at present (Action.Content). It changes when the Job restarts or stops.
// While it stays the same, an object that another client deletes is recreated after a longer wait each time.
func (d *decision) content() string {
	return fmt.Sprintf("version %d, retry %d", d.next.Version, d.next.RetryCount)
}

// mayMakePods reports whether Pods may be created at all: the spec must be valid, and no Pod of an earlier version may
// be left.
func (d *decision) mayMakePods() bool {
	if d.invalid != "" || d.obstacle.reason != "" || !d.isHashWritten() {
		return false
	}
	left := false
	d.eachMember(func(m *member) { left = left || m.version < d.next.Version && d.standing(m) == going })
	return !left
}

// podRecipe builds the Pod of an index, when it is created.
func (d *decision) podRecipe(t *task, index int32) func() (metav1.Object, error) {
	evictedAt := time.Time{}
	if lost, ok := d.podLost(t, index); ok {
		if p := d.policyFor(lost); p != nil && p.delay > 0 {
			evictedAt = lost.at
		}
	}
	moment := podMoment{Version: d.next.Version, RetryCount: d.next.RetryCount}
	if d.members[t.place] {
		moment.Group = podGroupName(d.Job.Name, d.next.Version)
	}
	b, place := d.builder, t.place
	return func() (metav1.Object, error) {
		pod := b.pod(place, index, moment)
		if !evictedAt.IsZero() {
			metav1.SetMetaDataAnnotation(&pod.ObjectMeta, KeyEvictedAt, evictedAt.UTC().Format(time.RFC3339))
		}
		return pod, nil
	}
}
