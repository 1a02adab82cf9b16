// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package testbed

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	batchv1alpha1 "github.com/lockstep-k8s/lockstep/apis/batch/v1alpha1"
	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	kubeflowv1 "github.com/lockstep-k8s/lockstep/apis/kubeflow/v1"
)

// Recording is all that happened to the Frameworks, or the jobs of a kind, of a namespace, and to its
// Pods, whoever did it, in the order in which it was stored. It is read from etcd, and so goes on
// while the API server and etcd are killed.
type Recording struct {
	cluster   *Cluster
	namespace string
	owners    owners
	done      sync.WaitGroup

	mu     sync.Mutex
	events []event
	// troubles are why the recording may have gaps.
	troubles []string
}

// owners are the kind of objects that Pods are recorded with.
type owners struct {
	kept keptAs
	list func(ctx context.Context) (runtime.Object, error)
	// broken says what in a history must not have happened.
	broken func([]event) []string
}

// event is a write. Exactly one of framework, job, training and pod is not nil.
type event struct {
	// version is the resource version, which all kinds share: etcd counts its
	// writes.
	version   uint64
	gone      bool
	framework *frameworkv1.Framework
	job       *batchv1alpha1.Job
	training  *trainingRecord
	pod       *corev1.Pod
}

// owner is the object, if it is not a Pod.
func (e event) owner() metav1.Object {
	switch {
	case e.job != nil:
		return e.job
	case e.training != nil:
		return e.training
	}
	return e.framework
}

// Record begins to record the Frameworks of a namespace in which there is nothing yet.
func (c *Cluster) Record(t testing.TB, namespace string) *Recording {
	t.Helper()
	client := c.Lockstep.FrameworkcontrollerV1().Frameworks(namespace)
	return c.record(t, namespace, owners{
		kept:   keptJSON(frameworkv1.Resource("frameworks"), func() object { return &frameworkv1.Framework{} }),
		list:   func(ctx context.Context) (runtime.Object, error) { return client.List(ctx, metav1.ListOptions{}) },
		broken: brokenGuarantees,
	})
}

// RecordVolcanoJobs begins to record the Volcano Jobs of a namespace in which there is nothing
// yet.
func (c *Cluster) RecordVolcanoJobs(t testing.TB, namespace string) *Recording {
	t.Helper()
	client := c.Lockstep.BatchV1alpha1().Jobs(namespace)
	return c.record(t, namespace, owners{
		kept:   keptJSON(batchv1alpha1.Resource("jobs"), func() object { return &batchv1alpha1.Job{} }),
		list:   func(ctx context.Context) (runtime.Object, error) { return client.List(ctx, metav1.ListOptions{}) },
		broken: brokenJobGuarantees,
	})
}

// RecordTrainingJobs begins to record Kubeflow's jobs of a kind of a namespace in which there is
// nothing yet.
func (c *Cluster) RecordTrainingJobs(t testing.TB, namespace string, kind TrainingKind) *Recording {
	t.Helper()
	client := c.trainingJobs(t, namespace, kind, kind.storedVersion())
	return c.record(t, namespace, owners{
		kept:   keptJSON(kubeflowv1.Resource(kind.plural), func() object { return &unstructured.Unstructured{} }),
		list:   func(ctx context.Context) (runtime.Object, error) { return client.List(ctx, metav1.ListOptions{}) },
		broken: brokenTrainingGuarantees,
	})
}

func (c *Cluster) record(t testing.TB, namespace string, owners owners) *Recording {
	t.Helper()
	r := &Recording{cluster: c, namespace: namespace, owners: owners}

	list, err := owners.list(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	since, err := meta.ListAccessor(list)
	if err != nil {
		t.Fatal(err)
	}
	version, err := strconv.ParseInt(since.GetResourceVersion(), 10, 64)
	if err != nil {
		t.Fatalf("resource version: %v", err)
	}
	stored := c.openStore(t)
	t.Cleanup(r.done.Wait)
	for _, kind := range []keptAs{owners.kept, keptPods} {
		r.done.Go(func() {
			if err := stored.follow(t.Context(), kind, namespace, version, r.add); err != nil {
				r.mu.Lock()
				defer r.mu.Unlock()
				r.troubles = append(r.troubles, err.Error())
			}
		})
	}
	return r
}

// add records a write.
func (r *Recording) add(o object, gone bool) {
	recorded, err := newEvent(o)
	recorded.gone = gone
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		r.troubles = append(r.troubles, err.Error())
		return
	}
	r.events = append(r.events, recorded)
}

func newEvent(object runtime.Object) (event, error) {
	var e event
	var version string
	switch object := object.(type) {
	case *frameworkv1.Framework:
		e.framework, version = object, object.ResourceVersion
	case *batchv1alpha1.Job:
		e.job, version = object, object.ResourceVersion
	case *unstructured.Unstructured:
		e.training, version = &trainingRecord{Object: object}, object.GetResourceVersion()
		if _, status := readTrainingJob(object); status != nil {
			e.training.status = *status
		}
	case *corev1.Pod:
		e.pod, version = object, object.ResourceVersion
	default:
		return e, fmt.Errorf("%T can't be recorded", object)
	}
	var err error
	if e.version, err = strconv.ParseUint(version, 10, 64); err != nil {
		return e, fmt.Errorf("resource version: %w", err)
	}
	return e, nil
}

// Check fails the test for everything in the recording so far that the
// consistency guarantees rule out. It does not end the recording.
func (r *Recording) Check(t testing.TB) {
	t.Helper()
	upTo := r.catchUp(t)
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, trouble := range r.troubles {
		t.Errorf("the recording may have gaps: %s", trouble)
	}
	r.sort()
	events := slices.DeleteFunc(slices.Clone(r.events), func(e event) bool { return e.version > upTo })
	for i, broken := range r.owners.broken(events) {
		if i == 10 {
			t.Error("… and more")
			break
		}
		t.Error(broken)
	}
	if len(events) == 0 {
		t.Error("nothing was recorded")
	}
}

// catchUp waits until all that is stored now is recorded, and returns the resource
// version up to which that is so for both kinds: one watch may be ahead of the
// other.
func (r *Recording) catchUp(t testing.TB) uint64 {
	t.Helper()
	pods, err := r.cluster.Kube.CoreV1().Pods(r.namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	listed, err := r.owners.list(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	stored := map[types.UID]string{}
	podsAt, err := addStored(stored, pods)
	if err != nil {
		t.Fatal(err)
	}
	ownersAt, err := addStored(stored, listed)
	if err != nil {
		t.Fatal(err)
	}
	Eventually(t, "the recording to catch up", func(context.Context) (bool, string, error) {
		recorded := r.objectsAt(podsAt, ownersAt)
		return maps.Equal(recorded, stored), fmt.Sprintf("%d objects of %d; %s", len(recorded), len(stored), r.trouble()), nil
	})
	return min(podsAt, ownersAt)
}

// trouble is why the recording may have gaps, empty if it has none.
func (r *Recording) trouble() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Join(r.troubles, "; ")
}

// addStored adds the resource versions of the objects in a list, and returns its own.
func addStored(stored map[types.UID]string, list runtime.Object) (at uint64, err error) {
	err = meta.EachListItem(list, func(item runtime.Object) error {
		object, err := meta.Accessor(item)
		if err != nil {
			return err
		}
		stored[object.GetUID()] = object.GetResourceVersion()
		return nil
	})
	if err != nil {
		return 0, err
	}
	accessor, err := meta.ListAccessor(list)
	if err != nil {
		return 0, err
	}
	return strconv.ParseUint(accessor.GetResourceVersion(), 10, 64)
}

// objectsAt are the resource versions of the objects that existed, Pods at one
// resource version and their owners at another.
func (r *Recording) objectsAt(pods, owners uint64) map[types.UID]string {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sort()
	objects := map[types.UID]string{}
	for _, e := range r.events {
		object, at := e.owner(), owners
		if e.pod != nil {
			object, at = e.pod, pods
		}
		switch {
		case e.version > at:
		case e.gone:
			delete(objects, object.GetUID())
		default:
			objects[object.GetUID()] = object.GetResourceVersion()
		}
	}
	return objects
}

// sort brings the events of both watches into one order. The caller holds mu.
func (r *Recording) sort() {
	slices.SortStableFunc(r.events, func(a, b event) int { return cmp.Compare(a.version, b.version) })
}

// Pods is how many Pods have been made.
func (r *Recording) Pods() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	seen := map[string]bool{}
	for _, e := range r.events {
		if e.pod != nil {
			seen[string(e.pod.UID)] = true
		}
	}
	return len(seen)
}
