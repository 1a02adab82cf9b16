// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/lockstep-k8s/lockstep/internal/quantity"
)

// ReadObjects reads jobs of a live cluster, as printed by kubectl get frameworks,vcjobs,pytorchjobs,jobs -o json. Units
// are GPUs if any job requests GPUs, otherwise cores, rounded up. ReadObjects skips jobs that have not ended. If Pods
// of a job request different numbers of units, each Pod that requests any gets the mean, rounded up.
func ReadObjects(r io.Reader, perNode int) (Trace, error) {
	items, err := itemsOf(r)
	if err != nil {
		return Trace{}, err
	}
	trace, hasGPUs := Trace{Units: perNode}, false
	sizes := make([]size, len(items))
	for i := range items {
		sizes[i] = sizeOf(&items[i])
		hasGPUs = hasGPUs || sizes[i].gpus > 0
	}
	for i := range items {
		object := &items[i]
		began, ended := spanOf(object)
		pods, units := sizes[i].pods, sizes[i].cores
		if hasGPUs {
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
		job := Job{Name: kindOf(object) + "/" + object.GetNamespace() + "/" + object.GetName(), Owner: object.GetNamespace(),
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
// of each node, or its cores if no node has GPUs. ReadNodes leaves out nodes without any unit, and cordoned nodes.
func ReadNodes(r io.Reader) (Nodes, error) {
	items, err := itemsOf(r)
	if err != nil {
		return nil, err
	}
	var gpus, cores Nodes
	for i := range items {
		if cordoned, _, _ := unstructured.NestedBool(items[i].Object, "spec", "unschedulable"); cordoned {
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
		return gpus, gpus.check()
	case len(cores) > 0:
		return cores, cores.check()
	default:
		return nil, fmt.Errorf("of %d objects none is a node that Pods may be placed on", len(items))
	}
}

// kindOf returns the kind of an object, with its API group, because a Job of batch and one of Volcano may have one name.
func kindOf(object *unstructured.Unstructured) string {
	kind := object.GroupVersionKind().GroupKind()
	kind.Kind = strings.ToLower(kind.Kind)
	return kind.String()
}

func itemsOf(r io.Reader) ([]unstructured.Unstructured, error) {
	var list struct {
		Items []map[string]any `json:"items"`
	}
	if err := json.NewDecoder(r).Decode(&list); err != nil {
		return nil, fmt.Errorf("decoding a list of objects: %w", err)
	}
	items := make([]unstructured.Unstructured, len(list.Items))
	for i := range list.Items {
		items[i].Object = list.Items[i]
	}
	return items, nil
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
		s.gpus += int(float64(count) * gpus)
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
	s.cores = int(cores)
	if float64(s.cores) < cores {
		s.cores++
	}
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
// zero.
func spanOf(object *unstructured.Unstructured) (began, ended time.Time) {
	status := mapIn(object.Object, "status")
	began, ended = timeIn(status, "runTime"), timeIn(status, "completionTime")
	if began.IsZero() {
		began = timeIn(status, "startTime")
	}
	for _, condition := range listIn(status, "conditions") {
		name, _ := condition["type"].(string)
		if name == "" { // Volcano's conditions have the phase in the field status.
			name, _ = condition["status"].(string)
		} else if condition["status"] == "False" && name != "Running" { // The condition Running of an ended job is False, and its time that of the end.
			continue
		}
		switch at := timeIn(condition, "lastTransitionTime"); name {
		case "Running":
			if condition["status"] != "False" {
				began = at
			}
		case "Succeeded", "Failed", "Complete", "Completed", "Aborted", "Terminated":
			if ended.IsZero() {
				ended = at
			}
		}
	}
	return began, ended
}

// limitOf returns the longest run time that a job asks for.
func limitOf(object *unstructured.Unstructured) time.Duration {
	spec := mapIn(object.Object, "spec")
	deadline := numberIn(spec, "activeDeadlineSeconds", 0)
	if deadline == 0 {
		deadline = numberIn(mapIn(spec, "runPolicy"), "activeDeadlineSeconds", 0)
	}
	return limit(float64(deadline))
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
