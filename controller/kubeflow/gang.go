// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package kubeflow

import (
	"fmt"
	"strconv"

	"k8s.io/apimachinery/pkg/util/json"

	kubeflowv1 "github.com/lockstep-k8s/lockstep/apis/kubeflow/v1"
	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/controller/engine/plan"
	"github.com/lockstep-k8s/lockstep/controller/jobpods"
)

// schedulingPolicy is that of the job. One of v1alpha2 has none.
func (b *builder) schedulingPolicy() kubeflowv1.SchedulingPolicy {
	if policy := b.job.Spec.RunPolicy.SchedulingPolicy; policy != nil && !b.kind.designed {
		return *policy
	}
	return kubeflowv1.SchedulingPolicy{}
}

// leastMembers is how many Pods are placed together or not at all: minAvailable, or else the
// fewest that an elastic job has, or all.
func (b *builder) leastMembers() int32 {
	if least := b.schedulingPolicy().MinAvailable; least != nil {
		return *least
	}
	sum := int32(0)
	for _, t := range b.types {
		switch elastic := b.job.Spec.ElasticPolicy; {
		case !t.member:
		case elastic != nil && t.name == kubeflowv1.ReplicaWorker:
			fewest, _ := bounds(elastic, t)
			sum += min(fewest, t.number)
		default:
			sum += t.number
		}
	}
	return sum
}

// podGroup is the gang of a start. done is how many of its members have ended and need no
// place any more.
func (b *builder) podGroup(start, done int32) (*schedulingv1alpha1.PodGroup, error) {
	policy := b.schedulingPolicy()
	queue := policy.Queue
	if queue == "" {
		queue = schedulingv1alpha1.DefaultQueue
	}
	group := &schedulingv1alpha1.PodGroup{
		ObjectMeta: b.metadata(b.kind.groupName(b.job, start), start),
		Spec: schedulingv1alpha1.PodGroupSpec{
			MinMember:         max(1, b.leastMembers()-done),
			PriorityClassName: policy.PriorityClass,
			Queue:             queue,
			DisruptionMode:    schedulingv1alpha1.DisruptGang,
		},
	}
	group.Labels = b.jobLabels()
	if len(policy.MinResources) > 0 {
		least, err := json.Marshal(policy.MinResources)
		if err != nil {
			return nil, fmt.Errorf("writing minResources: %w", err)
		}
		group.Annotations[KeyMinResources] = string(least)
	}
	if seconds := policy.ScheduleTimeoutSeconds; seconds != nil {
		group.Annotations[KeyScheduleTimeout] = strconv.Itoa(int(*seconds))
	}
	return group, nil
}

// planPodGroup makes the gang what it has to be. It says whether it is.
func (d *decision) planPodGroup() bool {
	for _, name := range jobpods.SortedKeys(d.PodGroups) {
		if group := d.PodGroups[name]; startOf(group) < d.next.Starts {
			d.remove(KindPodGroup, group)
		}
	}
	waiting, done := d.membersDone()
	if !d.isGang() || waiting == 0 {
		return true // There is no gang, or nobody left to place.
	}
	desired, err := d.builder.podGroup(d.next.Starts, done)
	if err != nil {
		d.fail(err)
		return false
	}
	action := plan.Action{
		Kind: KindPodGroup, Name: desired.Name, Owner: d.Job.UID,
		Content: fmt.Sprintf("minMember=%d", desired.Spec.MinMember), Detail: fmt.Sprintf("minMember=%d", desired.Spec.MinMember),
	}
	have := d.PodGroups[desired.Name]
	switch {
	case have == nil || d.isGone(have.UID):
		action.Verb, action.Object = plan.Create, desired
	case have.DeletionTimestamp != nil:
		return false // It is made anew once it is gone.
	case have.Spec.MinMember != desired.Spec.MinMember:
		action.Verb, action.UID = plan.Update, have.UID
		action.Patch = []plan.Operation{{Op: "add", Path: "/spec/minMember", Value: desired.Spec.MinMember}}
	default:
		return true
	}
	d.actIfCurrent(action)
	return false
}

// isGang says whether the Pods of this start are placed together. What makes a gang of a job
// that has Pods already counts from the next start on.
func (d *decision) isGang() bool {
	if !d.gang {
		return false
	}
	if d.PodGroups[d.kind.groupName(d.Job, d.next.Starts)] != nil {
		return true
	}
	for _, r := range d.replicas {
		for _, pod := range r.pods {
			if r.member && pod.Labels[schedulingv1alpha1.LabelPodGroup] == "" {
				return false
			}
		}
	}
	return true
}

// membersDone counts the members of the gang that are still to be placed or run, and those
// that have ended and need no place: they have failed, or their Pod is gone.
func (d *decision) membersDone() (waiting, done int32) {
	for _, r := range d.replicas {
		if !r.member {
			continue
		}
		for index := range r.number {
			switch {
			case !r.record.ended(index):
				waiting++
			case r.record.failed.Has(index) || r.pods[index] == nil:
				done++
			}
		}
	}
	return waiting, done
}

// planAutoscaler makes what scales the workers, and deletes it when nothing asks for it.
func (d *decision) planAutoscaler() {
	desired, err := d.builder.autoscaler(d.next.Starts)
	if err != nil {
		d.fail(err)
		return
	}
	have := d.Autoscalers[d.Job.Name]
	if have != nil && d.isGone(have.GetUID()) {
		have = nil
	}
	switch {
	case desired == nil && have != nil, have != nil && startOf(have) < d.next.Starts:
		d.remove(KindAutoscaler, have)
	case desired == nil || have != nil && have.GetDeletionTimestamp() != nil:
	case have == nil:
		d.actIfCurrent(plan.Action{
			Verb: plan.Create, Kind: KindAutoscaler, Name: desired.Name, Owner: d.Job.UID, Object: desired, Content: desired.Annotations[KeyContent],
		})
	case have.GetAnnotations()[KeyContent] != desired.Annotations[KeyContent]:
		d.actIfCurrent(plan.Action{
			Verb: plan.Update, Kind: KindAutoscaler, Name: have.GetName(), UID: have.GetUID(), Content: desired.Annotations[KeyContent],
			Patch: append(jobpods.Annotate(have, KeyContent, desired.Annotations[KeyContent]),
				plan.Operation{Op: "add", Path: "/spec", Value: desired.Spec}),
		})
	}
}
