// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package volcano

import (
	"cmp"
	"maps"
	"slices"
	"strconv"

	batchv1alpha1 "github.com/lockstep-k8s/lockstep/apis/batch/v1alpha1"
)

// defaultMaxRetry is that of a Job, and of a task, that has none.
const defaultMaxRetry = 3

// effective returns a spec with all defaults filled in, including those of the schema, because another project's CRD
// may be installed. The API server keeps the spec as written; if defaults were stored, a client that replaces the
// whole spec would lose them. effective does not change the given spec; both share the raw templates and claims.
func effective(spec *batchv1alpha1.JobSpec) *batchv1alpha1.JobSpec {
	e := *spec
	e.Queue = cmp.Or(e.Queue, "default")
	e.MaxRetry = cmp.Or(e.MaxRetry, defaultMaxRetry)
	e.NetworkTopology = effectiveTopology(e.NetworkTopology)
	e.Plugins = effectivePlugins(e.Plugins)
	e.Tasks = slices.Clone(e.Tasks)
	sum := int32(0)
	for i := range e.Tasks {
		e.Tasks[i] = effectiveTask(e.Tasks[i], i)
		sum = addUp(sum, *e.Tasks[i].MinAvailable)
	}
	e.MinAvailable = cmp.Or(e.MinAvailable, sum)
	return &e
}

// effectiveTask returns a task, at its place in the list, with all defaults.
func effectiveTask(task batchv1alpha1.TaskSpec, place int) batchv1alpha1.TaskSpec {
	task.Name = TaskName(&task, place)
	task.MaxRetry = cmp.Or(task.MaxRetry, defaultMaxRetry)
	if partitions := task.PartitionPolicy; partitions != nil {
		copied := *partitions
		copied.NetworkTopology = effectiveTopology(copied.NetworkTopology)
		task.PartitionPolicy = &copied
	}
	if on := task.DependsOn; on != nil {
		copied := *on
		copied.Iteration = cmp.Or(copied.Iteration, batchv1alpha1.IterationAll)
		task.DependsOn = &copied
	}
	if task.MinAvailable == nil {
		least := task.Replicas
		if p := task.PartitionPolicy; p != nil && p.MinPartitions > 0 {
			least = multiply(p.MinPartitions, p.PartitionSize)
		}
		task.MinAvailable = &least
	}
	return task
}

// TaskName returns the name of a task at its place in the list.
func TaskName(task *batchv1alpha1.TaskSpec, place int) string {
	return cmp.Or(task.Name, defaultTaskName(place))
}

// defaultTaskName returns the name of a task that has none.
func defaultTaskName(place int) string { return "default" + strconv.Itoa(place) }

func effectiveTopology(topology *batchv1alpha1.NetworkTopologySpec) *batchv1alpha1.NetworkTopologySpec {
	if topology == nil {
		return nil
	}
	copied := *topology
	copied.Mode = cmp.Or(copied.Mode, batchv1alpha1.NetworkTopologyHard)
	return &copied
}

// bringsAlong is which plugins need which others.
var bringsAlong = map[string][]string{
	batchv1alpha1.PluginTensorflow: {batchv1alpha1.PluginSvc},
	batchv1alpha1.PluginPytorch:    {batchv1alpha1.PluginSvc},
	batchv1alpha1.PluginMPI:        {batchv1alpha1.PluginSvc, batchv1alpha1.PluginSSH},
	batchv1alpha1.PluginRay:        {batchv1alpha1.PluginSvc},
}

func effectivePlugins(plugins map[string]batchv1alpha1.PluginFlags) map[string]batchv1alpha1.PluginFlags {
	all := maps.Clone(plugins)
	for name := range plugins {
		for _, needed := range bringsAlong[name] {
			if _, there := all[needed]; !there {
				all[needed] = nil
			}
		}
	}
	return all
}

// addUp and multiply return the nearest int32 if the result is out of range. A spec that was not validated may have any
// numbers.
func addUp(a, b int32) int32    { return clamp(int64(a) + int64(b)) }
func multiply(a, b int32) int32 { return clamp(int64(a) * int64(b)) }

func clamp(n int64) int32 { return int32(max(-1<<31, min(n, 1<<31-1))) }
