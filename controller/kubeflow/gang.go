// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package kubeflow

import (
	"fmt"
	"maps"
	"strconv"

	corev1 "k8s.io/api/core/v1"
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

// leastMembers returns how many Pods are placed in one step or not at all. That is minAvailable if the job has it.
// Otherwise it is the minimum of an elastic job, or the number of all Pods of any other job.
func (b *builder) leastMembers() int32 {
	if least := b.schedulingPolicy().MinAvailable; least != nil {
		return *least
	}
	sum := int32(0)
	for _, t := range b.types {
		switch elastic := b.job.Spec.ElasticPolicy; {
		case !t.member, t.launches && b.launchesLater():
		case elastic != nil && t.name == kubeflowv1.ReplicaWorker:
			fewest, _ := bounds(elastic, t)
			sum += min(fewest, t.number)
		default:
			sum += t.number
		}
	}
	return sum
}

// renderLeastResources returns, as JSON, the resources that the minimum of the gang needs: minResources, else the sum
// of what the first Pods request. "" if there are none, or more kinds of resources than minResources may have.
func (b *builder) renderLeastResources() (string, error) {
	if given := b.schedulingPolicy().MinResources; len(given) > 0 {
		least, err := json.Marshal(given)
		return string(least), err
	}
	sum := corev1.ResourceList{}
	left := b.leastMembers()
	for _, t := range b.types {
		n := min(left, t.number)
		if !t.member || n == 0 || t.launches && b.launchesLater() {
			continue
		}
		left -= n
		for name, amount := range requestsOf(&t.template.Spec) {
			amount.Mul(int64(n))
			total := sum[name]
			total.Add(amount)
			sum[name] = total
		}
	}
	if len(sum) == 0 || len(sum) > maxAmounts {
		return "", nil
	}
	least, err := json.Marshal(sum)
	return string(least), err
}

// requestsOf returns the requests of a Pod's containers, or the limits where there is no request.
func requestsOf(spec *corev1.PodSpec) corev1.ResourceList {
	sum := corev1.ResourceList{}
	for _, c := range jobpods.AppContainers(spec) {
		wanted := corev1.ResourceList{}
		maps.Copy(wanted, c.Resources.Limits)
		maps.Copy(wanted, c.Resources.Requests)
		for name, amount := range wanted {
			total := sum[name]
			total.Add(amount)
			sum[name] = total
		}
	}
	return sum
}

// podGroup returns the PodGroup of a start. `done` is how many members have ended and need no node any more.
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
	least, err := b.leastResources()
	if err != nil {
		return nil, fmt.Errorf("writing minResources: %w", err)
	}
	if least != "" {
		group.Annotations[KeyMinResources] = least
	}
	if seconds := policy.ScheduleTimeoutSeconds; seconds != nil {
		group.Annotations[KeyScheduleTimeout] = strconv.Itoa(int(*seconds))
	}
	return group, nil
}

// planPodGroup updates the gang's PodGroup, and reports whether the gang has a place.
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
		d.Fail(err)
		return false
	}
	d.runtimesOfGroup().Set(&desired.Spec)
	have := d.PodGroups[desired.Name]
	if have != nil && d.isGone(have.UID) {
		have = nil
	}
	return jobpods.PlanPodGroup(&d.Draft, d.Job.UID, have, desired, d.surplusGoesFirst) && !d.surplusGoesFirst()
}

// surplusGoesFirst reports whether the gang waits for nodes while it has Pods that were scaled away and that are not
// being deleted yet.
func (d *decision) surplusGoesFirst() bool {
	if !jobpods.WaitForPlace(d.Pods) {
		return false
	}
	found := false
	d.eachPod(func(r *replicas, index int32, pod *corev1.Pod) {
		found = found || index >= r.number && pod.DeletionTimestamp == nil && !d.Deleted[pod.UID] && !jobpods.HasEnded(pod)
	})
	return found
}

// hasGroup reports whether the PodGroup of this start exists. If a user deletes the PodGroup, the job stays a gang
// until the next start.
func (d *decision) hasGroup() bool {
	return d.next.Starts > 0 && d.PodGroups[d.kind.groupName(d.Job, d.next.Starts)] != nil
}

// isGang reports whether the Pods of this start are placed together. A change that turns a job with Pods into a gang
// counts from the next start on.
func (d *decision) isGang() bool {
	if !d.gang {
		return false
	}
	if d.hasGroup() {
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

// membersDone counts the members of the gang that still have to be placed or run, and the ended members that need no
// node: they have failed, or their Pod is gone.
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

// planAutoscaler creates the autoscaler of the workers, and deletes it when the spec has none.
func (d *decision) planAutoscaler() {
	desired, err := d.builder.autoscaler(d.next.Starts)
	if err != nil {
		d.Fail(err)
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
		d.ActIfCurrent(plan.Action{
			Verb: plan.Create, Kind: KindAutoscaler, Name: desired.Name, Owner: d.Job.UID, Object: desired, Content: desired.Annotations[KeyContent],
		})
	case have.GetAnnotations()[KeyContent] != desired.Annotations[KeyContent]:
		d.ActIfCurrent(plan.Action{
			Verb: plan.Update, Kind: KindAutoscaler, Name: have.GetName(), UID: have.GetUID(), Content: desired.Annotations[KeyContent],
			Patch: append(jobpods.Annotate(have, KeyContent, desired.Annotations[KeyContent]),
				plan.Operation{Op: "add", Path: "/spec", Value: desired.Spec}),
		})
	}
}
