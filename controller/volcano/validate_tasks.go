// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package volcano

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	batchv1alpha1 "github.com/lockstep-k8s/lockstep/apis/batch/v1alpha1"
	"github.com/lockstep-k8s/lockstep/controller/jobpods"
)

// validateTasks returns the errors in the tasks of a Job. path is the path of the spec.
func validateTasks(spec *batchv1alpha1.JobSpec, path *field.Path) field.ErrorList {
	if len(spec.Tasks) == 0 {
		return field.ErrorList{field.Invalid(path, nil, "No task specified in job spec: at least one is needed")}
	}
	list := path.Child("tasks")
	var errs field.ErrorList
	for i := range spec.Tasks {
		if errs = append(errs, validateTask(&spec.Tasks[i], list.Index(i))...); len(errs) > jobpods.MaxProblems {
			return errs // That is enough to mend for once.
		}
	}
	// Names are needed below, so tasks without a name get one from their position.
	tasks := effective(spec).Tasks
	if name, twice := firstTwice(tasks); twice {
		return append(errs, field.Invalid(list, name, "duplicated task name: every task needs a name of its own"))
	}
	return append(errs, validateDependencies(tasks, list)...)
}

// firstTwice returns the first name that two tasks have.
func firstTwice(tasks []batchv1alpha1.TaskSpec) (string, bool) {
	seen := map[string]bool{}
	for i := range tasks {
		if seen[tasks[i].Name] {
			return tasks[i].Name, true
		}
		seen[tasks[i].Name] = true
	}
	return "", false
}

func validateTask(task *batchv1alpha1.TaskSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if task.Name != "" {
		for _, problem := range validation.IsDNS1123Label(task.Name) {
			errs = append(errs, field.Invalid(path.Child("name"), task.Name, problem))
		}
	}
	errs = append(errs, jobpods.AtLeast(path.Child("replicas"), task.Replicas, 0)...)
	errs = append(errs, jobpods.AtLeast(path.Child("maxRetry"), task.MaxRetry, 0)...)
	if least := task.MinAvailable; least != nil {
		errs = append(errs, jobpods.AtLeast(path.Child("minAvailable"), *least, 0)...)
		if *least > max(0, task.Replicas) {
			errs = append(errs, field.Invalid(path.Child("minAvailable"), *least, "'minAvailable' is greater than 'replicas' in task"))
		}
	}
	errs = append(errs, jobpods.OneOf(path.Child("topologyPolicy"), task.TopologyPolicy,
		"", batchv1alpha1.NumaNone, batchv1alpha1.NumaBestEffort, batchv1alpha1.NumaRestricted, batchv1alpha1.NumaSingleNumaNode)...)
	if _, err := jobpods.DecodeTemplate(task.Template.Raw); err != nil {
		errs = append(errs, field.Invalid(path.Child("template"), field.OmitValueType{}, err.Error()))
	}
	errs = append(errs, validatePartitions(task, path)...)
	return append(errs, validatePolicies(task.Policies, path.Child("policies"))...)
}

// validatePartitions returns the errors in the partitions of a task. path is the path of the task.
func validatePartitions(task *batchv1alpha1.TaskSpec, path *field.Path) field.ErrorList {
	p := task.PartitionPolicy
	if p == nil {
		return nil
	}
	own := path.Child("partitionPolicy")
	errs := jobpods.AtLeast(own.Child("totalPartitions"), p.TotalPartitions, 1)
	errs = append(errs, jobpods.AtLeast(own.Child("partitionSize"), p.PartitionSize, 1)...)
	errs = append(errs, jobpods.AtLeast(own.Child("minPartitions"), p.MinPartitions, 0)...)
	if p.MinPartitions > p.TotalPartitions {
		errs = append(errs, field.Invalid(own.Child("minPartitions"), p.MinPartitions, "must be at most totalPartitions"))
	}
	if int64(task.Replicas) != int64(p.TotalPartitions)*int64(p.PartitionSize) {
		errs = append(errs, field.Invalid(path.Child("replicas"), task.Replicas, "must be totalPartitions × partitionSize of the partitionPolicy"))
	}
	if least := task.MinAvailable; p.MinPartitions > 0 && least != nil && int64(*least) != int64(p.MinPartitions)*int64(p.PartitionSize) {
		errs = append(errs, field.Invalid(path.Child("minAvailable"), *least, "must be minPartitions × partitionSize of the partitionPolicy, or absent"))
	}
	return append(errs, validateTopology(p.NetworkTopology, own.Child("networkTopology"))...)
}

// validateDependencies returns an error for each dependency on a task that does not exist, and for cycles. Each task
// must have a name already. path is the path of the list of tasks.
func validateDependencies(tasks []batchv1alpha1.TaskSpec, path *field.Path) field.ErrorList {
	places := make(map[string]int, len(tasks))
	for i := range tasks {
		places[tasks[i].Name] = i
	}
	var errs field.ErrorList
	for i := range tasks {
		on := tasks[i].DependsOn
		switch {
		case on == nil:
			continue
		case len(errs) > jobpods.MaxProblems:
			return errs
		}
		errs = append(errs, jobpods.OneOf(path.Index(i).Child("dependsOn", "iteration"), on.Iteration,
			batchv1alpha1.IterationAny, batchv1alpha1.IterationAll)...)
		if problems := tooMany(path.Index(i).Child("dependsOn", "name"), len(on.Name), maxDependencies); len(problems) > 0 {
			errs = append(errs, problems...)
			continue
		}
		for _, name := range on.Name {
			if place, ok := places[name]; !ok || place == i {
				errs = append(errs, field.Invalid(path, name, "dependsOn must name other tasks of the Job"))
			}
		}
	}
	if len(errs) > 0 {
		return errs
	}
	if circle := tasksInCircles(tasks); len(circle) > 0 {
		return field.ErrorList{field.Invalid(path, circle, "dependsOn must not form a cycle")}
	}
	return nil
}

// tasksInCircles returns the tasks that depend on themselves, directly or through others, and all tasks that depend on
// these.
func tasksInCircles(tasks []batchv1alpha1.TaskSpec) []string {
	free := map[string]bool{}
	isStuck := func(name string) bool { return !free[name] }
	for found := true; found; {
		found = false
		for i := range tasks {
			on := tasks[i].DependsOn
			if !free[tasks[i].Name] && (on == nil || !slices.ContainsFunc(on.Name, isStuck)) {
				free[tasks[i].Name] = true
				found = true
			}
		}
	}
	var stuck []string
	for i := range tasks {
		if isStuck(tasks[i].Name) {
			stuck = append(stuck, tasks[i].Name)
		}
	}
	return stuck
}

// validatePlugins returns an error for each plugin that does not exist or lacks a task that it needs. path is the path
// of the plugins.
func validatePlugins(spec *batchv1alpha1.JobSpec, path *field.Path) field.ErrorList {
	if errs := tooMany(path, len(spec.Plugins), maxPlugins); len(errs) > 0 {
		return errs
	}
	var errs field.ErrorList
	tasks := effective(spec).Tasks
	has := func(name string) bool {
		return slices.ContainsFunc(tasks, func(task batchv1alpha1.TaskSpec) bool { return task.Name == name })
	}
	for _, name := range slices.Sorted(maps.Keys(spec.Plugins)) {
		if !isPlugin(name) {
			errs = append(errs, field.Invalid(path, name,
				"unable to find job plugin: there are env, svc, ssh, tensorflow, pytorch, mpi, ray and hcclrank"))
		}
		errs = append(errs, tooMany(path.Key(name), len(spec.Plugins[name]), maxFlags)...)
		for i, flag := range spec.Plugins[name] {
			errs = append(errs, tooLong(path.Key(name).Index(i), flag, maxFlag)...)
		}
	}
	for _, plugin := range []struct {
		name string
		task func(flags []string) string
	}{{batchv1alpha1.PluginMPI, mpiMaster}, {batchv1alpha1.PluginRay, rayHead}} {
		flags, used := spec.Plugins[plugin.name]
		if needed := plugin.task(flags); used && !has(needed) {
			errs = append(errs, field.Invalid(path.Key(plugin.name), needed, "must have the task that the plugin needs"))
		}
	}
	return errs
}
