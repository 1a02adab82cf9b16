// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package kueue

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"runtime/debug"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
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
	// unread are the namespaces in which one of both may not be read.
	unread   *informing.Unread
	lockstep versioned.Interface
	client   dynamic.Interface
	// queue has namespaces take turns, and backoff says when what has failed is tried again.
	queue   fair.Queue
	workers *fair.Workers
	backoff workqueue.TypedRateLimiter[cache.ObjectName]

	mu sync.Mutex
	// held is since when a Framework is known to have no annotation.
	held map[cache.ObjectName]time.Time
	// refused is what was logged of a Framework that can't be in a queue.
	refused map[cache.ObjectName]string
	// flavors are those that were read a short while ago.
	flavors map[string]readFlavor
}

// readFlavor is a flavor as it was at some time, and flavorTime is how long it is taken to be so: a thousand
// Frameworks that are admitted together read it once, and what has failed half-way goes on from there.
type readFlavor struct {
	flavor
	at time.Time
}

const flavorTime = time.Minute

// New makes a Controller of the Frameworks in some namespaces, and registers its metrics. It needs list, watch and patch of
// Frameworks, list, watch, create and delete of Workloads, patch of their status, and get of
// ResourceFlavors.
func New(lockstep versioned.Interface, client dynamic.Interface, namespaces informing.Namespaces, registerer prometheus.Registerer) (*Controller, error) {
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
		held:      map[cache.ObjectName]time.Time{}, refused: map[cache.ObjectName]string{}, flavors: map[string]readFlavor{},
	}
	c.workers = fair.NewWorkers(c.queue, fair.Limits{Namespace: pacing.MaxFlights, All: pacing.MaxFlightsInAll}, pacing.Patience, c.process, nil)
	if err := c.frameworks.SetTransform(keepOfFramework); err != nil {
		return nil, fmt.Errorf("watching Frameworks in queues: %w", err)
	}
	if err := c.workloads.SetTransform(informing.DropManagedFields); err != nil {
		return nil, fmt.Errorf("watching Workloads: %w", err)
	}
	if err := informing.Quietly(c.workloads, c.workloads.HasSynced); err != nil {
		return nil, fmt.Errorf("watching Workloads: %w", err)
	}
	c.unread = namespaces.Unread(c.enqueueAll)
	for _, gauge := range []prometheus.Collector{
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "lockstep_controller_listed_workloads",
			Help: "1 once Workloads of Kueue could be listed, and Frameworks in queues are admitted. 0 before. Only with Kueue switched on.",
		}, c.listed),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "lockstep_controller_unread_namespaces_workloads",
			Help: "Namespaces whose Frameworks in queues are left as they are, because Frameworks or Workloads may not be read there. Only with Kueue switched on.",
		}, func() float64 { return float64(c.unread.Count()) }),
	} {
		if err := registerer.Register(gauge); err != nil {
			return nil, fmt.Errorf("registering metrics: %w", err)
		}
	}
	for _, informer := range []cache.SharedIndexInformer{c.frameworks, c.workloads} {
		if err := c.unread.Follow(informer); err != nil {
			return nil, fmt.Errorf("watching Frameworks in queues and Workloads: %w", err)
		}
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

// listed is 1 if the Workloads were listed, and 0 if not.
func (c *Controller) listed() float64 {
	if c.workloads.HasSynced() {
		return 1
	}
	return 0
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

// enqueueAll has all Frameworks of a namespace be looked at, and those of which there is only a Workload.
func (c *Controller) enqueueAll(namespace string) {
	for _, informer := range []cache.SharedIndexInformer{c.frameworks, c.workloads} {
		for _, object := range informing.In(informer, namespace) {
			c.enqueue(object)
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
	if !c.fill(ctx) {
		return nil // ctx has ended
	}
	klog.FromContext(ctx).Info("Frameworks wait in queues of Kueue")
	for range workers {
		running.Go(func() { c.workers.Work(ctx, &running) })
	}
	<-ctx.Done()
	return nil
}

// fill waits until Frameworks in queues and Workloads are listed, and says whether they are, or else ctx has ended.
func (c *Controller) fill(ctx context.Context) bool {
	soon, cancel := context.WithTimeout(ctx, pacing.UnservedAfter)
	defer cancel()
	if cache.WaitForCacheSync(soon.Done(), c.frameworks.HasSynced, c.workloads.HasSynced) || ctx.Err() != nil {
		return ctx.Err() == nil
	}
	klog.FromContext(ctx).Info("Frameworks in queues of Kueue are not admitted yet: the API server may not serve the kinds of Kueue, or not to the controller. "+
		"They will be as soon as they can be listed", "frameworks", c.frameworks.HasSynced(), "workloads", c.workloads.HasSynced(), "served", workloads.GroupVersion())
	return cache.WaitForCacheSync(ctx.Done(), c.frameworks.HasSynced, c.workloads.HasSynced)
}

// Longest is the sync that has been running for the longest time, and how long.
func (c *Controller) Longest() (fair.Key, time.Duration) { return c.workers.Longest() }

// keyOf is the key of a Framework.
func keyOf(namespace, name string) fair.Key {
	return fair.Key{ObjectName: cache.ObjectName{Namespace: namespace, Name: name}}
}

// process looks at a Framework.
func (c *Controller) process(ctx context.Context, queued fair.Key) {
	if ctx.Err() != nil {
		return
	}
	key := queued.ObjectName
	err := c.syncSafely(ctx, key)
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
}

// syncSafely makes a panic an error of this one Framework.
func (c *Controller) syncSafely(ctx context.Context, key cache.ObjectName) (err error) {
	defer func() {
		if value := recover(); value != nil {
			err = fmt.Errorf("panic: %v\n%s", value, debug.Stack())
		}
	}()
	return c.sync(ctx, key)
}

// sync does the next step of a Framework. It does none where Frameworks or Workloads may not be read: one that is not
// shown may be there.
func (c *Controller) sync(ctx context.Context, key cache.ObjectName) error {
	object, exists, err := c.frameworks.GetStore().GetByKey(key.String())
	if err != nil {
		return err
	}
	if !exists {
		c.forget(key)
	}
	if c.unread.Has(key.Namespace) {
		return nil
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

// aRequest bounds one request.
func aRequest(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, pacing.RequestTime)
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
	if workload == nil {
		return nil
	}
	if owner := metav1.GetControllerOf(workload); owner == nil || owner.Kind != frameworkv1.FrameworkKind || owner.Name != key.Name {
		return nil
	}
	return c.remove(ctx, workload)
}

// forget drops what is known of a Framework that is in no queue any more, or is gone.
func (c *Controller) forget(key cache.ObjectName) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.held, key)
	delete(c.refused, key)
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
	switch {
	case next.refusal != "":
		c.tell(ctx, s.framework, next.refusal)
		return nil
	case next.create != nil:
		return c.create(ctx, next.create)
	case next.remove:
		return c.remove(ctx, s.workload)
	case next.hold:
		return c.hold(ctx, s)
	case next.admit:
		return c.admit(ctx, s)
	case next.status != nil:
		return c.writeStatus(ctx, s.workload, next.status)
	case next.again > 0:
		c.queue.AddAfter(keyOf(s.framework.Namespace, s.framework.Name), next.again)
	}
	return nil
}

// admit has a Framework have the annotation that its Workload implies, and no other.
func (c *Controller) admit(ctx context.Context, s situation) error {
	reading, cancel := context.WithTimeout(ctx, pacing.LookTime)
	defer cancel()
	admission, err := admissionOf(s.workload, func(name string) (flavor, error) { return c.flavor(reading, name, s.now) })
	if err != nil {
		return err
	}
	text, err := json.Marshal(admission)
	if err != nil || string(text) == s.framework.Annotations[frameworkv1.AnnotationAdmission] {
		return err
	}
	return c.annotate(ctx, s.framework, string(text))
}

// hold has a Framework have no annotation, so that what runs of it ends. A Workload that is not known may be there all
// the same: in a namespace where none can be listed, say. So the API server is asked first.
func (c *Controller) hold(ctx context.Context, s situation) error {
	if s.workload == nil {
		asking, cancel := aRequest(ctx)
		defer cancel()
		name := workloadName(s.framework.Name)
		found, err := c.client.Resource(workloads).Namespace(s.framework.Namespace).
			List(asking, metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, name).String()})
		switch {
		case apierrors.IsNotFound(err): // what runs is left alone, as nobody has taken its admission back
			return errors.New("the API server serves no Workloads of Kueue")
		case err != nil:
			return err
		case len(found.Items) > 0:
			return fmt.Errorf("the Workload %s is there, and the watch of Workloads does not show it", name)
		}
	}
	return c.annotate(ctx, s.framework, nil)
}

func (c *Controller) create(ctx context.Context, workload *unstructured.Unstructured) error {
	ctx, cancel := aRequest(ctx)
	defer cancel()
	_, err := c.client.Resource(workloads).Namespace(workload.GetNamespace()).Create(ctx, workload, metav1.CreateOptions{FieldManager: FieldManager})
	return err
}

func (c *Controller) writeStatus(ctx context.Context, workload *unstructured.Unstructured, status map[string]any) error {
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": workload.GetUID(), "resourceVersion": workload.GetResourceVersion()}, "status": status,
	})
	if err != nil {
		return err
	}
	ctx, cancel := aRequest(ctx)
	defer cancel()
	_, err = c.client.Resource(workloads).Namespace(workload.GetNamespace()).
		Patch(ctx, workload.GetName(), types.MergePatchType, patch, metav1.PatchOptions{FieldManager: FieldManager}, "status")
	return ignoreGone(err)
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

// remove deletes a Workload as it was seen: a later one may be what a Framework runs by.
func (c *Controller) remove(ctx context.Context, workload *unstructured.Unstructured) error {
	ctx, cancel := aRequest(ctx)
	defer cancel()
	uid, version := workload.GetUID(), workload.GetResourceVersion()
	return ignoreGone(c.client.Resource(workloads).Namespace(workload.GetNamespace()).
		Delete(ctx, workload.GetName(), metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid, ResourceVersion: &version}}))
}

// annotate has a Framework, as it was seen, have the annotation of an admission, or none if that is nil. One that has
// changed since may run by another admission.
func (c *Controller) annotate(ctx context.Context, framework *frameworkv1.Framework, admission any) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": framework.UID, "resourceVersion": framework.ResourceVersion, "annotations": map[string]any{frameworkv1.AnnotationAdmission: admission},
	}})
	if err != nil {
		return err
	}
	ctx, cancel := aRequest(ctx)
	defer cancel()
	_, err = c.lockstep.FrameworkcontrollerV1().Frameworks(framework.Namespace).
		Patch(ctx, framework.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: FieldManager})
	return ignoreGone(err)
}

// flavor is where Pods may run. It is asked for if it was not a short while ago.
func (c *Controller) flavor(ctx context.Context, name string, now time.Time) (flavor, error) {
	c.mu.Lock()
	maps.DeleteFunc(c.flavors, func(_ string, read readFlavor) bool { return now.Sub(read.at) > flavorTime })
	read, known := c.flavors[name]
	c.mu.Unlock()
	if known {
		return read.flavor, nil
	}
	found, err := c.readFlavor(ctx, name)
	if err != nil {
		return flavor{}, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.flavors[name] = readFlavor{flavor: found, at: now}
	return found, nil
}

// readFlavor asks where Pods may run.
func (c *Controller) readFlavor(ctx context.Context, name string) (flavor, error) {
	ctx, cancel := aRequest(ctx)
	defer cancel()
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
