// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package kubeflow

import (
	"cmp"
	"iter"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kubeflowv1 "github.com/lockstep-k8s/lockstep/apis/kubeflow/v1"
	"github.com/lockstep-k8s/lockstep/controller/jobpods"
)

// replicas are the Pods of a type, and what is remembered of them.
type replicas struct {
	*replicaType
	// pods are the existing Pods of the present start, by index; services are the Services.
	pods     map[int32]*corev1.Pod
	services map[int32]metav1.Object
	// old are Pods of other starts.
	old []*corev1.Pod
	// reach is one more than the highest index that has an object or should have one. counted is the same for indexes
	// that count; indexes that were scaled away do not.
	reach, counted int32
	// record is what the status records of the indexes. persisted is the same in the written status.
	record, persisted record
	counts            counts
}

// counts are Pods by what they are to the job.
type counts struct{ active, succeeded, failed int32 }

// ofSpec reports whether the spec has this replica type. If not, there are only leftover Pods and Services of a
// removed type.
func (d *decision) ofSpec(r *replicas) bool { return d.typeNamed(r.name) != nil }

// gather assigns the Pods and Services to types and indexes. Objects with names that the job would not use are skipped;
// the garbage collector deletes them.
func (d *decision) gather() (goOn bool) {
	for _, t := range d.types {
		d.replicas = append(d.replicas, &replicas{replicaType: t, reach: t.number})
	}
	for _, pod := range d.Pods {
		r, index := d.placeOf(pod)
		if r == nil || d.isGone(pod.UID) {
			continue
		}
		if startOf(pod) == d.next.Starts {
			r.pods[index] = pod
			continue
		}
		d.old = append(d.old, pod)
		r.old = append(r.old, pod)
	}
	slices.SortFunc(d.old, func(a, b *corev1.Pod) int { return cmp.Compare(a.Name, b.Name) })
	for _, service := range d.Services {
		if r, index := d.placeOf(service); r != nil && !d.isGone(service.GetUID()) {
			r.services[index] = service
		}
	}
	for object := range d.objects() {
		d.checkStart(object)
	}
	now, before := d.kind.statusesOf(d.next), d.kind.statusesOf(d.Persisted)
	for _, name := range d.kind.types {
		if _, known := now[name]; known {
			d.replicasOf(name)
		}
	}
	slices.SortStableFunc(d.replicas, func(a, b *replicas) int {
		return cmp.Compare(slices.Index(d.kind.types, a.name), slices.Index(d.kind.types, b.name))
	})
	for _, r := range d.replicas {
		r.reach = max(r.reach, reachOf(now[r.name]), reachOf(before[r.name]))
		r.record, r.persisted = readRecord(now[r.name], r.reach), readRecord(before[r.name], r.reach)
		r.counted = r.number
		if d.invalid != "" || isFinished(d.next) {
			r.counted = r.reach // Nothing is scaled.
		}
	}
	return !d.outdated
}

// checkStart plans to read the status from the API server if an object belongs to a start that the known status does
// not have. Until then nothing that depends on this start is decided.
func (d *decision) checkStart(object metav1.Object) {
	if startOf(object) > d.next.Starts && !d.Checked[object.GetUID()] && !d.isGone(object.GetUID()) {
		d.outdated = true
		d.CheckStatus(object.GetUID())
	}
}

// objects returns all that the job has, in no order.
func (d *decision) objects() iter.Seq[metav1.Object] {
	return func(yield func(metav1.Object) bool) {
		_ = each(d.Pods, yield) && each(d.Services, yield) && each(d.PodGroups, yield) && each(d.Autoscalers, yield)
	}
}

// podsAndServices are those of the job.
func (d *decision) podsAndServices() iter.Seq[metav1.Object] {
	return func(yield func(metav1.Object) bool) { _ = each(d.Pods, yield) && each(d.Services, yield) }
}

// each visits the objects of a map, until one says that it is enough.
func each[T metav1.Object](objects map[string]T, yield func(metav1.Object) bool) (goOn bool) {
	for _, object := range objects {
		if !yield(object) {
			return false
		}
	}
	return true
}

// placeOf returns the type and the index in the name of a Pod or a Service; nil if no object of the job can have that
// name.
func (d *decision) placeOf(object metav1.Object) (*replicas, int32) {
	t, index := d.kind.placeNamed(d.Job, object.GetName())
	if t == "" {
		return nil, 0
	}
	r := d.replicasOf(t)
	r.reach = max(r.reach, index+1)
	if r.pods == nil {
		r.pods, r.services = map[int32]*corev1.Pod{}, map[int32]metav1.Object{}
	}
	return r, index
}

// replicasOf are those of a type, which the spec may not have any more.
func (d *decision) replicasOf(name string) *replicas {
	for _, r := range d.replicas {
		if r.name == name {
			return r
		}
	}
	r := &replicas{replicaType: &replicaType{name: name, policy: kubeflowv1.RestartNever}}
	d.replicas = append(d.replicas, r)
	return r
}

// startOf returns the number of the start for which an object was created. An object without a number counts as older
// than all others.
func startOf(object metav1.Object) int32 {
	n, err := strconv.ParseInt(object.GetAnnotations()[KeyStart], 10, 32)
	if err != nil || n < 0 {
		return -1
	}
	return int32(n)
}

// runs reports whether a Pod runs and is not being deleted.
func runs(pod *corev1.Pod) bool {
	return pod != nil && pod.Status.Phase == corev1.PodRunning && pod.DeletionTimestamp == nil
}

// hasRun reports whether a Pod has ever run.
func hasRun(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodRunning || pod.Status.Phase == corev1.PodUnknown || jobpods.HasEnded(pod)
}

// succeeded and failed are how many of the indexes that count have.
func (r *replicas) succeeded() int32 { return r.record.completed[:r.counted].Count() }
func (r *replicas) failed() int32    { return r.record.failed[:r.counted].Count() }

// allSucceeded reports whether all indexes of a type have succeeded.
func (r *replicas) allSucceeded() bool { return r.number > 0 && r.succeeded() >= r.number }

// isBound reports whether a Pod takes room on a node.
func isBound(pod *corev1.Pod) bool { return pod.Spec.NodeName != "" && !jobpods.HasEnded(pod) }

// eachPod visits the Pods of the present start, in order.
func (d *decision) eachPod(visit func(*replicas, int32, *corev1.Pod)) {
	for _, r := range d.replicas {
		for index := range r.reach {
			if pod := r.pods[index]; pod != nil {
				visit(r, index, pod)
			}
		}
	}
}
