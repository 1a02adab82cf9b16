// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package volcano

import (
	"fmt"
	"slices"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	batchv1alpha1 "github.com/lockstep-k8s/lockstep/apis/batch/v1alpha1"
	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/controller/jobpods"
	"github.com/lockstep-k8s/lockstep/podgroup"
)

// podGroup returns the gang of the present version, nil if there is none.
func (d *decision) podGroup() *schedulingv1alpha1.PodGroup {
	group := d.PodGroups[podGroupName(d.Job.Name, d.next.Version)]
	if group == nil || group.DeletionTimestamp != nil || d.Gone[group.UID] {
		return nil
	}
	return group
}

// activities returns, for each task of the gang, whether the task may start and how many of its Pods are active or
// done. A task that waits for other tasks raises the minimum once it starts.
func (d *decision) activities() []activity {
	all := make([]activity, len(d.tasks))
	for i, t := range d.tasks {
		if !d.members[i] {
			continue
		}
		a := activity{Started: d.hasStarted(t)}
		for index := range t.spec.Replicas {
			m := t.member(index)
			stays := t.record.succeeded.Has(index) && m != nil && m.version == d.next.Version
			if t.record.ended(index) && !stays {
				a.Done++
			} else {
				a.Active++
			}
		}
		all[i] = a
	}
	return all
}

// hasStarted reports whether a task has Pods, or may have Pods now.
func (d *decision) hasStarted(t *task) bool {
	return slices.ContainsFunc(t.members, func(m *member) bool { return d.standing(m) == alive }) || d.mayStart(t)
}

// planPodGroup updates the gang's PodGroup, before Pods are created. It reports whether the PodGroup is as it should
// be, so that Pods may be created.
func (d *decision) planPodGroup() bool {
	desired := d.desiredPodGroup()
	if desired == nil {
		return true
	}
	have := d.PodGroups[desired.Name]
	if have != nil && d.Gone[have.UID] {
		have = nil
	}
	if !jobpods.PlanPodGroup(&d.Draft, d.Job.UID, have, desired, d.surplusGoesFirst) || d.surplusGoesFirst() {
		return false
	}
	d.planOldPodGroups()
	return true
}

// surplusGoesFirst reports whether the gang waits for nodes while it has Pods that a rescale removes and that are not
// being deleted yet.
func (d *decision) surplusGoesFirst() bool {
	if !jobpods.WaitForPlace(d.Pods) {
		return false
	}
	for _, t := range d.tasks {
		for _, m := range t.members {
			if d.isSurplus(m) && m.DeletionTimestamp == nil && !d.Deleted[m.UID] && !m.hasEnded() {
				return true
			}
		}
	}
	return false
}

// planOldPodGroups deletes the gangs of earlier versions.
func (d *decision) planOldPodGroups() {
	for _, name := range jobpods.SortedKeys(d.PodGroups) {
		group := d.PodGroups[name]
		version, err := strconv.ParseInt(group.Annotations[batchv1alpha1.KeyJobVersion], 10, 32)
		if err == nil && version < int64(d.next.Version) && group.DeletionTimestamp == nil && !d.Deleted[group.UID] && !d.Gone[group.UID] {
			d.Act(jobpods.Deletion(KindPodGroup, group))
		}
	}
}

// desiredPodGroup returns the gang that the Job needs now. Nil if none is needed.
func (d *decision) desiredPodGroup() *schedulingv1alpha1.PodGroup {
	spec, needed := podGroupSpec(d.spec, d.activities(), d.topology)
	if !needed {
		return nil
	}
	d.runtimesInForce().Set(&spec)
	group := d.builder.podGroup(d.next.Version, spec)
	metav1.SetMetaDataAnnotation(&group.ObjectMeta, batchv1alpha1.KeyJobVersion, strconv.Itoa(int(d.next.Version)))
	metav1.SetMetaDataAnnotation(&group.ObjectMeta, KeyImmutableHash, d.recordedHash())
	return group
}

// waitingGang returns reason and message of the PodGroup's Unschedulable condition; "" if there is no PodGroup or the
// condition is not True.
func (d *decision) waitingGang() string {
	group := d.podGroup()
	if group == nil {
		return ""
	}
	waits := podgroup.Condition(group, schedulingv1alpha1.ConditionUnschedulable)
	if waits == nil || waits.Status != metav1.ConditionTrue {
		return ""
	}
	return fmt.Sprintf("%s: %s", schedulingv1alpha1.CleanReason(waits.Reason), waits.Message)
}
