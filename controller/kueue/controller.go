// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package kueue

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	"github.com/lockstep-k8s/lockstep/client/clientset/versioned"
	"github.com/lockstep-k8s/lockstep/controller/pacing"
	"github.com/lockstep-k8s/lockstep/internal/fair"
	"github.com/lockstep-k8s/lockstep/internal/informing"
	"github.com/lockstep-k8s/lockstep/internal/tombstone"
)

const (
	// FieldManager is the name under which the package writes.
	FieldManager = "lockstep-controller-kueue"
	// workers is how many Frameworks are looked at beside each other.
	workers = 4
	// minRetryDelay and maxRetryDelay bound the time to the next try of what has failed.
	minRetryDelay, maxRetryDelay = time.Second, time.Minute
)

// Controller keeps a Workload for each Framework in a queue. Several may run against one API server
// only if one of them is elected.
type Controller struct {
	frameworks cache.SharedIndexInformer
	workloads  cache.SharedIndexInformer
	lockstep   versioned.Interface
	client     dynamic.Interface
	// queue has namespaces take turns, and backoff says when what has failed is tried again.
	queue   fair.Queue
	backoff workqueue.TypedRateLimiter[cache.ObjectName]
	watch   fair.Watch

	mu sync.Mutex
	// held is since when a Framework is known to have no annotation.
	held map[cache.ObjectName]time.Time
	// refused is what was logged of a Framework that can't be in a queue.
	refused map[cache.ObjectName]string
}

// New makes a Controller of the Frameworks in some namespaces. It needs list, watch and patch of
// Frameworks, list, watch, create and delete of Workloads, patch of their status, and get of
// ResourceFlavors.
func New(lockstep versioned.Interface, client dynamic.Interface, namespaces informing.Namespaces) (*Controller, error) {
	queued := func(options *metav1.ListOptions) {
		options.LabelSelector = frameworkv1.LabelQueue
		informing.WantCurrent(options)
	}
	c := &Controller{
		lockstep: lockstep,
		client:   client,
		frameworks: namespaces.Informer(&frameworkv1.Framework{}, func(namespace string) cache.ListerWatcher {
			return informing.ListWatch(lockstep, lockstep.FrameworkcontrollerV1().Frameworks(namespace), queued)
		}),
		workloads: namespaces.Dynamic(client, workloads, informing.WantCurrent),
		queue:     fair.NewQueue("kueue", clock.RealClock{}),
		backoff:   workqueue.NewTypedItemExponentialFailureRateLimiter[cache.ObjectName](minRetryDelay, maxRetryDelay),
		held:      map[cache.ObjectName]time.Time{}, refused: map[cache.ObjectName]string{},
	}
	if err := c.frameworks.SetTransform(keepOfFramework); err != nil {
		return nil, fmt.Errorf("watching Frameworks in queues: %w", err)
	}
	if err := c.workloads.SetTransform(informing.DropManagedFields); err != nil {
		return nil, fmt.Errorf("watching Workloads: %w", err)
	}
	if err := informing.Quietly(c.workloads, func() bool { return false }); err != nil {
		return nil, fmt.Errorf("watching Workloads: %w", err)
	}
	for _, informer := range []cache.SharedIndexInformer{c.frameworks, c.workloads} {
		if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc:    c.enqueue,
			UpdateFunc: func(_, after any) { c.enqueue(after) },
			DeleteFunc: func(object any) { c.enqueue(tombstone.Object(object)) },
		}); err != nil {
			return nil, fmt.Errorf("watching Frameworks in queues and Workloads: %w", err)
		}
	}
	return c, nil
}

// keepOfFramework is a transform of an informer that keeps nothing of the tasks in the status.
func keepOfFramework(object any) (any, error) {
	framework, ok := object.(*frameworkv1.Framework)
	if !ok {
		return object, nil
	}
	kept := *framework
	kept.ManagedFields = nil
	if framework.Status != nil {
		status := *framework.Status
		status.AttemptStatus.TaskRoleStatuses, status.AttemptStatus.TaskRoleStatusesCompressed = nil, nil
		kept.Status = &status
	}
	return &kept, nil
}

// enqueue has the Framework be looked at to which an object belongs.
func (c *Controller) enqueue(object any) {
	switch o := object.(type) {
	case *frameworkv1.Framework:
		c.queue.Add(keyOf(o.Namespace, o.Name))
	case *unstructured.Unstructured:
		if owner := metav1.GetControllerOf(o); owner != nil && owner.Kind == frameworkv1.FrameworkKind && owner.APIVersion == frameworkv1.SchemeGroupVersion.String() {
			c.queue.Add(keyOf(o.GetNamespace(), owner.Name))
		}
	}
}

// Run keeps the Workloads until ctx ends. It runs once.
func (c *Controller) Run(ctx context.Context) error {
	ctx = klog.NewContext(ctx, klog.FromContext(ctx).WithName("kueue"))
	var running sync.WaitGroup
	defer running.Wait()
	defer c.queue.ShutDown()
	running.Go(func() { c.frameworks.RunWithContext(ctx) })
	running.Go(func() { c.workloads.RunWithContext(ctx) })
	if !cache.WaitForCacheSync(ctx.Done(), c.frameworks.HasSynced, c.workloads.HasSynced) {
		return nil // ctx has ended
	}
	klog.FromContext(ctx).Info("Frameworks wait in queues of Kueue")
	for range workers {
		running.Go(func() {
			for c.processNext(ctx) {
			}
		})
	}
	<-ctx.Done()
	return nil
}

// Longest is the sync that has been running for the longest time, and how long.
func (c *Controller) Longest() (fair.Key, time.Duration) { return c.watch.Longest() }

// keyOf is the key of a Framework.
func keyOf(namespace, name string) fair.Key {
	return fair.Key{ObjectName: cache.ObjectName{Namespace: namespace, Name: name}}
}

// processNext looks at the next Framework, and says whether there may be more.
func (c *Controller) processNext(ctx context.Context) bool {
	queued, over := c.queue.Get()
	if over {
		return false
	}
	defer c.queue.Done(queued)
	c.watch.Begin(queued)
	defer c.watch.End(queued)
	key := queued.ObjectName
	err := c.sync(ctx, key)
	switch {
	case err == nil, ctx.Err() != nil:
		c.backoff.Forget(key)
	case apierrors.IsConflict(err), apierrors.IsAlreadyExists(err):
		// The caches are behind.
		c.queue.AddAfter(queued, c.backoff.When(key))
	default:
		klog.FromContext(ctx).Error(err, "Keeping the Workload of a Framework failed, will be tried again", "framework", klog.KRef(key.Namespace, key.Name))
		c.queue.AddAfter(queued, c.backoff.When(key))
	}
	return true
}

// sync does the next step of a Framework. It takes no longer than a request may.
func (c *Controller) sync(ctx context.Context, key cache.ObjectName) error {
	ctx, cancel := context.WithTimeout(ctx, pacing.RequestTime)
	defer cancel()
	object, exists, err := c.frameworks.GetStore().GetByKey(key.String())
	if err != nil {
		return err
	}
	workload, err := c.workloadOf(key)
	if err != nil {
		return err
	}
	framework, ok := object.(*frameworkv1.Framework)
	if !exists || !ok {
		return c.leave(ctx, key, workload)
	}
	s := situation{framework: framework, workload: workload, now: time.Now()}
	s.heldSince = c.heldSince(key, framework, s.now)
	return c.do(ctx, s, decide(s))
}

// workloadOf is the cached Workload of a Framework, nil if there is none.
func (c *Controller) workloadOf(key cache.ObjectName) (*unstructured.Unstructured, error) {
	object, exists, err := c.workloads.GetStore().GetByKey(cache.ObjectName{Namespace: key.Namespace, Name: workloadName(key.Name)}.String())
	if err != nil || !exists {
		return nil, err
	}
	workload, _ := object.(*unstructured.Unstructured)
	return workload, nil
}

// leave has a Framework that is in no queue any more, or is gone, have no Workload.
func (c *Controller) leave(ctx context.Context, key cache.ObjectName, workload *unstructured.Unstructured) error {
	c.mu.Lock()
	delete(c.held, key)
	delete(c.refused, key)
	c.mu.Unlock()
	if workload == nil {
		return nil
	}
	if owner := metav1.GetControllerOf(workload); owner == nil || owner.Kind != frameworkv1.FrameworkKind || owner.Name != key.Name {
		return nil
	}
	return c.remove(ctx, workload)
}

// heldSince is since when a Framework is known to have no annotation.
func (c *Controller) heldSince(key cache.ObjectName, framework *frameworkv1.Framework, now time.Time) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if framework.Annotations[frameworkv1.AnnotationAdmission] != "" {
		delete(c.held, key)
		return time.Time{}
	}
	if _, known := c.held[key]; !known {
		c.held[key] = now
	}
	return c.held[key]
}

// do does a step.
func (c *Controller) do(ctx context.Context, s situation, next step) error {
	namespace := s.framework.Namespace
	options := metav1.PatchOptions{FieldManager: FieldManager}
	switch {
	case next.refusal != "":
		c.tell(ctx, s.framework, next.refusal)
		return nil
	case next.create != nil:
		_, err := c.client.Resource(workloads).Namespace(namespace).Create(ctx, next.create, metav1.CreateOptions{FieldManager: FieldManager})
		return err
	case next.remove:
		return c.remove(ctx, s.workload)
	case next.hold:
		return c.annotate(ctx, s.framework, nil)
	case next.admit:
		admission, err := admissionOf(s.workload, func(name string) (flavor, error) { return c.flavor(ctx, name) })
		if err != nil {
			return err
		}
		return c.annotate(ctx, s.framework, &admission)
	case next.status != nil:
		patch, err := json.Marshal(map[string]any{
			"metadata": map[string]any{"uid": s.workload.GetUID(), "resourceVersion": s.workload.GetResourceVersion()}, "status": next.status,
		})
		if err != nil {
			return err
		}
		_, err = c.client.Resource(workloads).Namespace(namespace).Patch(ctx, s.workload.GetName(), types.MergePatchType, patch, options, "status")
		return ignoreGone(err)
	case next.again > 0:
		c.queue.AddAfter(keyOf(namespace, s.framework.Name), next.again)
	}
	return nil
}

// tell logs once why a Framework can't be in a queue.
func (c *Controller) tell(ctx context.Context, framework *frameworkv1.Framework, refusal string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	key := keyOf(framework.Namespace, framework.Name).ObjectName
	if c.refused[key] != refusal {
		c.refused[key] = refusal
		klog.FromContext(ctx).Info("A Framework waits, as it can't be in a queue of Kueue", "framework", klog.KObj(framework), "reason", refusal)
	}
}

func (c *Controller) remove(ctx context.Context, workload *unstructured.Unstructured) error {
	uid := workload.GetUID()
	return ignoreGone(c.client.Resource(workloads).Namespace(workload.GetNamespace()).
		Delete(ctx, workload.GetName(), metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}}))
}

// annotate has a Framework have the annotation of an admission, or none.
func (c *Controller) annotate(ctx context.Context, framework *frameworkv1.Framework, admission *frameworkv1.Admission) error {
	var value any
	if admission != nil {
		text, err := json.Marshal(admission)
		if err != nil {
			return err
		}
		value = string(text)
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": framework.UID, "annotations": map[string]any{frameworkv1.AnnotationAdmission: value},
	}})
	if err != nil {
		return err
	}
	_, err = c.lockstep.FrameworkcontrollerV1().Frameworks(framework.Namespace).
		Patch(ctx, framework.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: FieldManager})
	return ignoreGone(err)
}

// flavor asks where Pods may run.
func (c *Controller) flavor(ctx context.Context, name string) (flavor, error) {
	object, err := c.client.Resource(flavors).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return flavor{}, fmt.Errorf("reading the ResourceFlavor %s: %w", name, err)
	}
	var found flavor
	found.nodeLabels, _, _ = unstructured.NestedStringMap(object.Object, "spec", "nodeLabels")
	list, _, _ := unstructured.NestedSlice(object.Object, "spec", "tolerations")
	for _, item := range list {
		var toleration corev1.Toleration
		fields, ok := item.(map[string]any)
		if !ok {
			continue
		}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(fields, &toleration); err != nil {
			return flavor{}, fmt.Errorf("reading the ResourceFlavor %s: %w", name, err)
		}
		found.tolerations = append(found.tolerations, toleration)
	}
	return found, nil
}

func ignoreGone(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
