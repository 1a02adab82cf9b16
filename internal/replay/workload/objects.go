// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/internal/quantity"
	"github.com/lockstep-k8s/lockstep/podgroup"
)

// Unit is what the units of nodes and of jobs are. Empty means unknown.
type Unit string

const (
	// GPUs are the units of a cluster with GPUs.
	GPUs Unit = "GPUs"
	// Cores are the units of a cluster without GPUs.
	Cores Unit = "cores"
)

// ReadObjects reads jobs of a live cluster, as printed by kubectl get frameworks,vcjobs,pytorchjobs,jobs -o json. unit
// is the unit of the nodes. If the unit is unknown, jobs count by GPUs if any job requests GPUs, otherwise by cores.
// Cores are rounded up. ReadObjects skips jobs that have not ended, and jobs that request none of the units. If Pods of
// a job request different numbers of units, each Pod that requests any gets the mean, rounded up.
func ReadObjects(r io.Reader, perNode int, unit Unit) (Trace, error) {
	items, err := itemsOf(r, "kubectl get frameworks,vcjobs,pytorchjobs,jobs -A -o json")
	if err != nil {
		return Trace{}, err
	}
	trace, countGPUs := Trace{Units: perNode}, unit == GPUs
	sizes := make([]size, len(items))
	for i := range items {
		sizes[i] = sizeOf(&items[i])
		countGPUs = countGPUs || unit == "" && sizes[i].gpus > 0
	}
	for i := range items {
		object := &items[i]
		began, ended := spanOf(object)
		pods, units := sizes[i].pods, sizes[i].cores
		if countGPUs {
			pods, units = sizes[i].podsWithGPUs, sizes[i].gpus
		}
		if ended.IsZero() || units == 0 {
			trace.Skipped++
			continue
		}
		created := object.GetCreationTimestamp().Time
		if began.IsZero() || began.Before(created) {
			began = created
		}
		job := Job{Name: object.GetNamespace() + "/" + object.GetName(), Owner: object.GetNamespace(),
			Submit: time.Duration(created.Unix()) * time.Second, Runtime: max(0, ended.Sub(began)), Limit: limitOf(object),
			Pods: pods, Units: (units + pods - 1) / pods}
		if job.Units > perNode {
			job.Split(units, perNode)
		}
		trace.Jobs = append(trace.Jobs, job)
	}
	return trace, nil
}

// ReadNodes reads the nodes of a live cluster, as printed by kubectl get nodes -o json. Units are the allocatable GPUs
// of each node, or its cores if no node has GPUs. ReadNodes leaves out nodes without any unit, and nodes that take no
// jobs.
func ReadNodes(r io.Reader) (Nodes, Unit, error) {
	items, err := itemsOf(r, "kubectl get nodes -o json")
	if err != nil {
		return nil, "", err
	}
	var gpus, cores Nodes
	for i := range items {
		if !takesJobs(items[i].Object) {
			continue
		}
		has, _, _ := unstructured.NestedStringMap(items[i].Object, "status", "allocatable")
		if n := int(amount(has, isGPU)); n > 0 {
			gpus = append(gpus, n)
		}
		if n := int(amount(has, isCPU)); n > 0 {
			cores = append(cores, n)
		}
	}
	switch {
	case len(gpus) > 0:
		return gpus, GPUs, gpus.check()
	case len(cores) > 0:
		return cores, Cores, cores.check()
	default:
		return nil, "", fmt.Errorf("of %d objects none is a node that Pods may be placed on", len(items))
	}
}

// takesJobs reports whether jobs may be placed on a node: the node is ready, not cordoned, and not of the control plane.
func takesJobs(node map[string]any) bool {
	for _, condition := range listIn(mapIn(node, "status"), "conditions") {
		if condition["type"] == "Ready" && condition["status"] != "True" {
			return false
		}
	}
	spec := mapIn(node, "spec")
	for _, taint := range listIn(spec, "taints") {
		switch taint["key"] {
		case "node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master":
			if taint["effect"] == "NoSchedule" {
				return false
			}
		}
	}
	return spec["unschedulable"] != true
}

// itemsOf returns the objects of a file of JSON documents. Each document is a list or one object. Of an object that
// the file has several times, the last state counts. command is the command that prints such a file.
func itemsOf(r io.Reader, command string) ([]unstructured.Unstructured, error) {
	var items []unstructured.Unstructured
	at := map[types.UID]int{}
	decoder := json.NewDecoder(r)
	for n := 1; ; n++ {
		var document map[string]any
		err := decoder.Decode(&document)
		switch {
		case errors.Is(err, io.EOF) && len(items) == 0:
			return nil, fmt.Errorf("there are no objects: want what %s prints", command)
		case errors.Is(err, io.EOF):
			return items, nil
		case err != nil:
			return nil, fmt.Errorf("decoding document %d: %w", n, err)
		}
		objects := listIn(document, "items")
		if _, isList := document["items"]; !isList {
			if document["kind"] == nil {
				return nil, fmt.Errorf("document %d is neither a list nor an object of Kubernetes: want what %s prints", n, command)
			}
			objects = []map[string]any{document}
		}
		for _, object := range objects {
			item := unstructured.Unstructured{Object: object}
			uid := item.GetUID()
			if i, again := at[uid]; again && uid != "" {
				items[i] = item
				continue
			}
			at[uid] = len(items)
			items = append(items, item)
		}
	}
}

// size is what all Pods of a job ask for together.
type size struct{ pods, podsWithGPUs, gpus, cores int }

func sizeOf(object *unstructured.Unstructured) size {
	var s size
	var cores float64
	add := func(count int64, pod map[string]any) {
		count = max(0, count) // of a task that the API server refuses
		gpus, cpus := requestsOf(pod)
		s.pods += int(count)
		if gpus > 0 {
			s.podsWithGPUs += int(count)
		}
		s.gpus = int(min(float64(s.gpus)+float64(count)*gpus, mostPods))
		cores += float64(count) * cpus
	}
	spec, _, _ := unstructured.NestedMap(object.Object, "spec")
	for _, role := range listIn(spec, "taskRoles") { // Framework
		add(numberIn(role, "taskNumber", 1), mapIn(role, "task", "pod", "spec"))
	}
	for _, task := range listIn(spec, "tasks") { // Job of Volcano
		add(numberIn(task, "replicas", 1), mapIn(task, "template", "spec"))
	}
	for name := range spec { // training jobs of Kubeflow
		if strings.HasSuffix(strings.ToLower(name), "replicaspecs") {
			for role := range mapIn(spec, name) {
				of := mapIn(spec, name, role)
				add(numberIn(of, "replicas", 1), mapIn(of, "template", "spec"))
			}
		}
	}
	if template := mapIn(spec, "template", "spec"); template != nil { // Job of batch
		add(numberIn(spec, "parallelism", 1), template)
	}
	s.cores = int(math.Ceil(min(cores-1e-6, mostPods))) // sums of fractions are a bit more or less than they should be
	return s
}

// requestsOf returns the sums of what the containers of a Pod request. As in Kubernetes, a limit without a request
// counts as a request.
func requestsOf(pod map[string]any) (gpus, cpus float64) {
	for _, container := range listIn(pod, "containers") {
		asks := map[string]string{}
		for _, of := range []string{"limits", "requests"} {
			for name, value := range mapIn(container, "resources", of) {
				asks[name] = fmt.Sprint(value)
			}
		}
		gpus += amount(asks, isGPU)
		cpus += amount(asks, isCPU)
	}
	return gpus, cpus
}

func isGPU(name string) bool { return strings.HasSuffix(name, "/gpu") }
func isCPU(name string) bool { return name == string(corev1.ResourceCPU) }

// amount returns the quantity of a resource, at most mostPods; 0 if it is missing, invalid or negative.
func amount(of map[string]string, is func(name string) bool) float64 {
	var sum float64
	for name, text := range of {
		if !is(name) {
			continue
		}
		if quantity.Check(text) != nil {
			continue
		}
		if quantity, err := resource.ParseQuantity(text); err == nil {
			sum += max(0, quantity.AsApproximateFloat64())
		}
	}
	return min(sum, mostPods)
}

// spanOf returns when a job began to run and when it ended, from its status. A time that the status does not have is
// zero. The status of a Job of batch has no time at which Pods began to run, so its startTime counts.
func spanOf(object *unstructured.Unstructured) (began, ended time.Time) {
	status := mapIn(object.Object, "status")
	began, ended = timeIn(status, "runTime"), timeIn(status, "completionTime")
	if began.IsZero() {
		began = timeIn(status, "startTime")
	}
	enoughRan := timeIn(mapIn(status, "runtimeLimit"), "since") // of a training job that Lockstep limits
	for _, condition := range listIn(status, "conditions") {
		name, _ := condition["type"].(string)
		if name == "" { // Volcano's conditions have the phase in the field status.
			name, _ = condition["status"].(string)
		} else if condition["status"] == "False" && name != "Running" {
			continue
		}
		switch at := timeIn(condition, "lastTransitionTime"); name {
		case "Running":
			if condition["status"] != "False" {
				began = at
				if at.After(ended) { // The job was aborted, and then resumed.
					ended = time.Time{}
				}
			} else if enoughRan.IsZero() {
				// The condition of an ended training job. The time is the job's start if Kubeflow's operator ran the
				// job, and the job's end if Lockstep did.
				enoughRan = at
			}
		case "Succeeded", "Failed", "Complete", "Completed", "Aborted", "Terminated":
			if ended.IsZero() {
				ended = at
			}
		}
	}
	if enoughRan.After(began) && enoughRan.Before(ended) {
		began = enoughRan
	}
	return began, ended
}

// limitOf returns the smallest limit of a job's run time, or the job's estimate if there is no limit; 0 without
// both.
func limitOf(object *unstructured.Unstructured) time.Duration {
	spec := mapIn(object.Object, "spec")
	gang, runPolicy := mapIn(spec, "gang"), mapIn(spec, "runPolicy")
	fields := podgroup.Runtimes{Max: runtimeIn(gang, "maxRuntimeSeconds"), Expected: runtimeIn(gang, "expectedRuntimeSeconds")}
	for _, of := range []map[string]any{spec, runPolicy} {
		fields.Max = podgroup.Smaller(fields.Max, runtimeIn(of, "activeDeadlineSeconds"))
	}
	if text, ok := spec["runningEstimate"].(string); ok { // of a Job of Volcano
		if estimate, err := time.ParseDuration(text); err == nil {
			fields.Expected = runtimeOf(estimate.Seconds())
		}
	}
	runtimes, _ := podgroup.ReadRuntimes(object, fields)
	if runtimes.Max == nil {
		runtimes.Max = runtimes.Expected
	}
	return time.Duration(ptr.Deref(runtimes.Max, 0)) * time.Second
}

// runtimeIn returns a run time of an object, in seconds; nil if the object has none.
func runtimeIn(object map[string]any, name string) *int32 {
	return runtimeOf(float64(numberIn(object, name, 0)))
}

// runtimeOf returns a run time in whole seconds, at most ten years; nil if it is not above 0.
func runtimeOf(s float64) *int32 {
	if s <= 0 {
		return nil
	}
	return ptr.To(int32(math.Ceil(min(s, schedulingv1alpha1.MaxRuntimeSeconds))))
}

func mapIn(object map[string]any, path ...string) map[string]any {
	for _, name := range path {
		object, _ = object[name].(map[string]any)
	}
	return object
}

func listIn(object map[string]any, name string) []map[string]any {
	list, _ := object[name].([]any)
	var maps []map[string]any
	for _, item := range list {
		if of, ok := item.(map[string]any); ok {
			maps = append(maps, of)
		}
	}
	return maps
}

// numberIn returns a number of an object, at most mostPods more or less than 0. It returns `otherwise` if the object has
// no such number.
func numberIn(object map[string]any, name string, otherwise int64) int64 {
	if number, ok := object[name].(float64); ok {
		return int64(max(-mostPods, min(number, mostPods)))
	}
	return otherwise
}

func timeIn(object map[string]any, name string) time.Time {
	text, _ := object[name].(string)
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return time.Time{}
	}
	return at
}
