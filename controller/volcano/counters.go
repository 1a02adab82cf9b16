// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package volcano

import (
	corev1 "k8s.io/api/core/v1"

	batchv1alpha1 "github.com/lockstep-k8s/lockstep/apis/batch/v1alpha1"
)

// counts are the numbers of a Job's Pods by state. A Pod that is being deleted, or is going to be, counts only in
// terminating. A Pod that has ended stays counted after its deletion.
type counts struct {
	pending, running, succeeded, failed, terminating, unknown int32
}

func (c counts) plus(other counts) counts {
	return counts{
		c.pending + other.pending, c.running + other.running, c.succeeded + other.succeeded,
		c.failed + other.failed, c.terminating + other.terminating, c.unknown + other.unknown,
	}
}

// left returns how many Pods are there that have not ended.
func (c counts) left() int32 { return c.pending + c.running + c.unknown + c.terminating }

// counts counts the Pods of all tasks.
func (d *decision) counts() counts {
	var all counts
	for _, t := range d.tasks {
		t.counts = d.countsOf(t)
		all = all.plus(t.counts)
	}
	return all
}

func (d *decision) countsOf(t *task) counts {
	c := counts{succeeded: t.record.succeeded.Count(), failed: t.record.failed.Count()}
	for _, m := range t.members {
		switch standing := d.standing(m); {
		case standing == going:
			c.terminating++
		case standing == ended, m.hasEnded():
			// The Pod is on record, or about to be created again.
		case m.Status.Phase == corev1.PodRunning:
			c.running++
		case m.Status.Phase == corev1.PodUnknown:
			c.unknown++
		default:
			c.pending++
		}
	}
	return c
}

// writeCounts writes into the status how many Pods there are.
func (d *decision) writeCounts() {
	c := d.counts()
	s := d.next
	s.MinAvailable = d.minAvailable()
	s.Pending, s.Running, s.Succeeded, s.Failed = c.pending, c.running, c.succeeded, c.failed
	s.Terminating, s.Unknown = c.terminating, c.unknown
	s.TaskStatusCount = nil
	for _, t := range d.tasks {
		phases := map[corev1.PodPhase]int32{}
		for phase, n := range map[corev1.PodPhase]int32{
			corev1.PodPending: t.counts.pending, corev1.PodRunning: t.counts.running,
			corev1.PodSucceeded: t.counts.succeeded, corev1.PodFailed: t.counts.failed,
			corev1.PodUnknown: t.counts.unknown,
		} {
			if n > 0 {
				phases[phase] = n
			}
		}
		if len(phases) == 0 {
			continue
		}
		if s.TaskStatusCount == nil {
			s.TaskStatusCount = map[string]batchv1alpha1.TaskState{}
		}
		s.TaskStatusCount[t.spec.Name] = batchv1alpha1.TaskState{Phase: phases}
	}
}

// replicas returns how many Pods the Job has, over all tasks.
func (d *decision) replicas() int32 {
	sum := int32(0)
	for _, t := range d.tasks {
		sum += t.spec.Replicas
	}
	return sum
}

// minAvailable returns the effective minAvailable of the Job.
func (d *decision) minAvailable() int32 { return d.spec.MinAvailable }
