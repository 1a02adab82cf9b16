// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package volcano

import (
	"fmt"
	"strconv"

	batchv1alpha1 "github.com/lockstep-k8s/lockstep/apis/batch/v1alpha1"
	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/controller/jobpods"
)

// podGroupName returns the name of the PodGroup of a version of a Job: {job}-job-{version}.
func podGroupName(job string, version int32) string { return jobpods.GroupName(job, "job", version) }

// podGroup returns the gang of a version of the Job.
func (b *builder) podGroup(version int32, spec schedulingv1alpha1.PodGroupSpec) *schedulingv1alpha1.PodGroup {
	return &schedulingv1alpha1.PodGroup{ObjectMeta: b.metadata(podGroupName(b.job.Name, version)), Spec: spec}
}

// activity is what a gang can expect of a task.
type activity struct {
	// Started says that Pods of the task may be made.
	Started bool
	// Active is how many indexes count for the gang, now or once their Pods exist: those whose Pods have not ended, or
	// have succeeded and still exist.
	Active int32
	// Done is how many indexes have ended and no longer count: their Pods have failed or are gone.
	Done int32
}

// podGroupSpec returns the PodGroup of a Job, from its spec with all defaults. activities has an entry for each task,
// by position, with the Pods that can be expected. It returns false if no Pod can be expected.
//
// The PodGroup has the Job's minimum. The minima of tasks count only if the Job's minimum is at least their sum: task
// minima default to all replicas, so a lower minimum of the Job means Pods of any tasks. A task that starts only when
// others run does not count, and neither does a task that is done.
func podGroupSpec(spec *batchv1alpha1.JobSpec, activities []activity, topology []schedulingv1alpha1.TopologyConstraint) (schedulingv1alpha1.PodGroupSpec, bool) {
	var minima, active int32
	for i := range spec.Tasks {
		minima = addUp(minima, *spec.Tasks[i].MinAvailable)
		if activities[i].Started {
			active = addUp(active, activities[i].Active)
		}
	}
	if active < 1 {
		return schedulingv1alpha1.PodGroupSpec{}, false
	}
	ofTasks := spec.MinAvailable >= minima
	least := spec.MinAvailable
	var roles map[string]int32
	for i := range spec.Tasks {
		task, now := &spec.Tasks[i], activities[i]
		switch {
		case now.Started:
			least -= now.Done
		case ofTasks:
			least -= *task.MinAvailable
		}
		if own := min(*task.MinAvailable-now.Done, now.Active); ofTasks && now.Started && own > 0 {
			if roles == nil {
				roles = map[string]int32{}
			}
			roles[task.Name] = own
		}
	}
	return schedulingv1alpha1.PodGroupSpec{
		MinMember:         max(1, min(least, active)),
		MinRoleMember:     roles,
		PriorityClassName: spec.PriorityClassName,
		Queue:             spec.Queue,
		Topology:          topology,
		DisruptionMode:    schedulingv1alpha1.DisruptGang,
	}, true
}

// topologyOf returns the topology constraints for the widest network tier that a Job may span. tiers maps the numbers
// and names of tiers to node labels. If there is no label for the tier, unmapped says so: a Job with a hard topology
// can't be placed then.
func topologyOf(spec *batchv1alpha1.JobSpec, tiers map[string]string) (constraints []schedulingv1alpha1.TopologyConstraint, unmapped string) {
	topology := spec.NetworkTopology
	if topology == nil {
		return nil, ""
	}
	tier := topology.HighestTierName
	switch {
	case topology.HighestTierAllowed != nil:
		tier = strconv.Itoa(int(*topology.HighestTierAllowed))
	case tier == "":
		return nil, "" // It may span all of them.
	}
	key := tiers[tier]
	if key == "" {
		return nil, fmt.Sprintf("The configuration of the controller has no label of nodes for tier %s of networkTopology", tier)
	}
	mode := schedulingv1alpha1.TopologyRequired
	if topology.Mode == batchv1alpha1.NetworkTopologySoft {
		mode = schedulingv1alpha1.TopologyPreferred
	}
	return []schedulingv1alpha1.TopologyConstraint{{Key: key, Mode: mode}}, ""
}
