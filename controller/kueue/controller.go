// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package kueue

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	"github.com/lockstep-k8s/lockstep/controller/pacing"
	"github.com/lockstep-k8s/lockstep/internal/fair"
	"github.com/lockstep-k8s/lockstep/internal/informing"
	"github.com/lockstep-k8s/lockstep/internal/text"
	"github.com/lockstep-k8s/lockstep/internal/tombstone"
)

const (
	// FieldManager is the name under which the package writes.
	FieldManager = "lockstep-controller-kueue"
	// workers is how many Frameworks are looked at beside each other.
	workers = 4
	// maxRefusal bounds what is said of a Framework that can't be in a queue.
	maxRefusal = 512
)

// Controller creates and updates a Workload for each Framework in a queue. Several Controllers may use one API server
// only if they elect a leader.
type Controller struct {
	frameworks cache.SharedIndexInformer
	workloads  cache.SharedIndexInformer
	// pods holds the Pods that Kueue has gated, by the name of their Framework.
	pods cache.SharedIndexInformer
	// unread are the namespaces in which one of these may not be read.
	unread *informing.Unread
	client dynamic.Interface
	loop   *fair.Loop

	mu sync.Mutex
	// held is since when a Framework is known to have no annotation.
	held map[cache.ObjectName]time.Time
	// flavors are ResourceFlavors that were read a short while ago. gated says for a namespace whether Kueue gates its
	// Pods.
	flavors known[flavor]
	gated   known[bool]
}

// New returns a Controller for the Frameworks in some namespaces, and registers its metrics. client needs these rights:
// list, watch and patch Frameworks; list, watch, create and delete Workloads; patch their status; get ResourceFlavors;
// list, watch, create and patch Pods.
func New(client dynamic.Interface, namespaces informing.Namespaces, registerer prometheus.Registerer) (*Controller, error) {
	queued := func(options *metav1.ListOptions) {
		options.LabelSelector = frameworkv1.LabelQueue
		informing.WantCurrent(options)
	}
	gated := func(options *metav1.ListOptions) {
		options.LabelSelector = frameworkv1.LabelGated
		informing.WantCurrent(options)
	}
	c := &Controller{
		client:     client,
		frameworks: namespaces.Dynamic(client, frameworks, queued),
		workloads:  namespaces.Dynamic(client, workloads, informing.WantCurrent),
		pods:       namespaces.Dynamic(client, pods, gated),
		held:       map[cache.ObjectName]time.Time{}, flavors: known[flavor]{}, gated: known[bool]{},
	}
	c.loop = fair.NewLoop("kueue", "Framework", fair.Limits{Namespace: pacing.MaxFlights, All: pacing.MaxFlightsInAll}, pacing.Patience, c.sync)
	if err := c.pods.AddIndexers(cache.Indexers{byFramework: indexByFramework}); err != nil {
		return nil, fmt.Errorf("indexing Pods by Framework: %w", err)
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
	for informer, keep := range map[cache.SharedIndexInformer]cache.TransformFunc{
		c.frameworks: keepOfFramework, c.workloads: keepOfWorkload, c.pods: metadataOf,
	} {
		if err := errors.Join(informer.SetTransform(keep), c.unread.Follow(informer)); err != nil {
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

// enqueue enqueues the Framework to which an object belongs.
func (c *Controller) enqueue(object any) {
	switch o := object.(type) {
	case *frameworkv1.Framework:
		c.loop.Add(keyOf(o.Namespace, o.Name))
	case *workload:
		// A Workload of another owner may have its name.
		if name, ok := strings.CutPrefix(o.Name, workloadName("")); ok {
			c.loop.Add(keyOf(o.Namespace, name))
		}
	case *metav1.PartialObjectMetadata:
		if name := o.Labels[frameworkv1.KeyFrameworkName]; name != "" { // It is a Pod.
			c.loop.Add(keyOf(o.Namespace, name))
		}
	}
}

// enqueueAll enqueues all Frameworks of a namespace, and the Frameworks of its Workloads.
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
	defer c.loop.ShutDown()
	for _, informer := range []cache.SharedIndexInformer{c.frameworks, c.workloads, c.pods} {
		running.Go(func() { informer.RunWithContext(ctx) })
	}
	if !c.fill(ctx) {
		return nil // ctx has ended
	}
	klog.FromContext(ctx).Info("Frameworks wait in queues of Kueue")
	c.loop.Start(ctx, workers, &running)
	<-ctx.Done()
	return nil
}

// fill waits until Frameworks in queues and Workloads are listed, and returns false if ctx has ended before.
func (c *Controller) fill(ctx context.Context) bool {
	soon, cancel := context.WithTimeout(ctx, pacing.UnservedAfter)
	defer cancel()
	if cache.WaitForCacheSync(soon.Done(), c.frameworks.HasSynced, c.workloads.HasSynced, c.pods.HasSynced) || ctx.Err() != nil {
		return ctx.Err() == nil
	}
	klog.FromContext(ctx).Info("Frameworks in queues of Kueue are not admitted yet: the API server may not serve the kinds of Kueue, or not to the controller. "+
		"They will be as soon as they can be listed", "frameworks", c.frameworks.HasSynced(), "workloads", c.workloads.HasSynced(), "served", workloads.GroupVersion())
	return cache.WaitForCacheSync(ctx.Done(), c.frameworks.HasSynced, c.workloads.HasSynced, c.pods.HasSynced)
}

// Longest returns the sync that has been running for the longest time, and how long.
func (c *Controller) Longest() (fair.Key, time.Duration) { return c.loop.Longest() }

// keyOf returns the key of a Framework.
func keyOf(namespace, name string) fair.Key {
	return fair.Key{ObjectName: cache.ObjectName{Namespace: namespace, Name: name}}
}

// sync does the next step for a Framework. sync does nothing if Frameworks or Workloads can't be read in the namespace,
// because a Workload may exist that the cache does not show. sync also does nothing for a Framework that can't be
// decoded, about which the engine sends an event.
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
	framework, ok := object.(*frameworkv1.Framework)
	if exists && !ok {
		return nil
	}
	workload, err := c.workloadOf(key)
	if err != nil {
		return err
	}
	if !exists {
		return errors.Join(c.leave(ctx, key, workload), c.ungate(ctx, key, nil))
	}
	s := situation{framework: framework, workload: workload, now: time.Now()}
	s.heldSince = c.heldSince(key, framework, s.now)
	return errors.Join(c.do(ctx, s, decide(s)), c.ungate(ctx, key, framework))
}

// aRequest bounds one request.
func aRequest(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, pacing.RequestTime)
}

// workloadOf returns the cached Workload of a Framework, nil if there is none.
func (c *Controller) workloadOf(key cache.ObjectName) (*workload, error) {
	object, exists, err := c.workloads.GetStore().GetByKey(cache.ObjectName{Namespace: key.Namespace, Name: workloadName(key.Name)}.String())
	if err != nil || !exists {
		return nil, err
	}
	w, ok := object.(*workload)
	if !ok {
		return nil, fmt.Errorf("the Workload %s does not decode", workloadName(key.Name))
	}
	return w, nil
}

// leave deletes the Workload of a Framework that has left its queue or is gone.
func (c *Controller) leave(ctx context.Context, key cache.ObjectName, w *workload) error {
	if w == nil || !isOf(w, key.Name) {
		return nil
	}
	return c.remove(ctx, w)
}

// forget drops the memory about a Framework that has left its queue or is gone.
func (c *Controller) forget(key cache.ObjectName) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.held, key)
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

// do carries out a step. If the refusal in the Framework's annotation is outdated, it first corrects the annotation,
// unless only the creation of the Workload shows whether it is refused.
func (c *Controller) do(ctx context.Context, s situation, next step) error {
	if next.create == nil && next.refusal != s.framework.Annotations[frameworkv1.AnnotationRefusal] {
		return c.refuse(ctx, s.framework, next.refusal)
	}
	switch {
	case next.create != nil:
		return c.create(ctx, s.framework, next.create)
	case next.remove:
		return c.remove(ctx, s.workload)
	case next.hold:
		return c.hold(ctx, s)
	case next.admit:
		if written, err := c.admit(ctx, s); written || err != nil || next.status == nil {
			return err
		}
		return c.writeStatus(ctx, s.workload, next.status)
	case next.status != nil:
		return c.writeStatus(ctx, s.workload, next.status)
	case next.again > 0:
		c.loop.AddAfter(keyOf(s.framework.Namespace, s.framework.Name), next.again)
	}
	return nil
}

// admit gives a Framework the annotation for the admission of its Workload. written reports that the Framework did not
// have it already.
func (c *Controller) admit(ctx context.Context, s situation) (written bool, err error) {
	reading, cancel := context.WithTimeout(ctx, pacing.LookTime)
	defer cancel()
	admission, err := admissionOf(s, func(name string) (flavor, error) { return c.flavor(reading, name, s.now) })
	if err != nil {
		return false, err
	}
	if admission.Gated, err = c.isGated(reading, s.framework.Namespace, s.now); err != nil {
		return false, err
	}
	text, err := json.Marshal(admission)
	if err != nil || string(text) == s.framework.Annotations[frameworkv1.AnnotationAdmission] {
		return false, err
	}
	return true, c.annotate(ctx, s.framework, frameworkv1.AnnotationAdmission, string(text))
}

// hold removes the admission from a Framework's annotations, so that its attempt ends. The cache may lack a Workload
// that exists, for instance in a namespace that can't be listed, so the API server is asked first.
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
	return c.annotate(ctx, s.framework, frameworkv1.AnnotationAdmission, nil)
}

// create creates the Workload of a Framework. If the API server or Kueue refuses the Workload, an event says so, and
// the creation is tried again.
func (c *Controller) create(ctx context.Context, framework *frameworkv1.Framework, w *workload) error {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(w)
	if err != nil {
		return err
	}
	ctx, cancel := aRequest(ctx)
	defer cancel()
	_, err = c.client.Resource(workloads).Namespace(w.Namespace).Create(ctx, &unstructured.Unstructured{Object: fields}, metav1.CreateOptions{FieldManager: FieldManager})
	if isRefusal(err) {
		return errors.Join(err, c.refuse(ctx, framework, "its Workload is refused: "+err.Error()))
	}
	return err
}

// isRefusal reports whether the API server has refused an object, and will refuse it again until the object or a policy
// is changed. If the object is too large for etcd, the error has no known reason, only the code 500.
func isRefusal(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return false
	}
	switch status.Status().Reason {
	case metav1.StatusReasonInvalid, metav1.StatusReasonBadRequest, metav1.StatusReasonForbidden, metav1.StatusReasonRequestEntityTooLarge:
		return true
	case metav1.StatusReasonUnknown:
		return status.Status().Code == http.StatusInternalServerError
	default:
		return false
	}
}

// refuse sets the annotation with the reason why a Framework can't be in a queue, or removes it if refusal is "". The
// engine reports the refusal.
func (c *Controller) refuse(ctx context.Context, framework *frameworkv1.Framework, refusal string) error {
	refusal = text.Shorten(refusal, maxRefusal)
	if refusal == framework.Annotations[frameworkv1.AnnotationRefusal] {
		return nil
	}
	if refusal == "" {
		return c.annotate(ctx, framework, frameworkv1.AnnotationRefusal, nil)
	}
	klog.FromContext(ctx).Info("A Framework waits, as it can't be in a queue of Kueue", "framework", klog.KObj(framework), "reason", refusal)
	return c.annotate(ctx, framework, frameworkv1.AnnotationRefusal, refusal)
}

func (c *Controller) writeStatus(ctx context.Context, w *workload, status *statusChange) error {
	return c.patch(ctx, workloads, w, types.MergePatchType, map[string]any{
		"metadata": map[string]any{"uid": w.UID, "resourceVersion": w.ResourceVersion}, "status": status,
	}, "status")
}

// patch patches an object, unless it is gone.
func (c *Controller) patch(ctx context.Context, resource schema.GroupVersionResource, object metav1.Object, kind types.PatchType, change map[string]any, subresources ...string) error {
	patch, err := json.Marshal(change)
	if err != nil {
		return err
	}
	ctx, cancel := aRequest(ctx)
	defer cancel()
	_, err = c.client.Resource(resource).Namespace(object.GetNamespace()).
		Patch(ctx, object.GetName(), kind, patch, metav1.PatchOptions{FieldManager: FieldManager}, subresources...)
	return ignoreGone(err)
}

// remove deletes a Workload, provided that it has not changed since the decision: a later version may have admitted the
// Framework.
func (c *Controller) remove(ctx context.Context, w *workload) error {
	ctx, cancel := aRequest(ctx)
	defer cancel()
	return ignoreGone(c.client.Resource(workloads).Namespace(w.Namespace).
		Delete(ctx, w.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &w.UID, ResourceVersion: &w.ResourceVersion}}))
}

// annotate sets an annotation of a Framework; a nil value removes it. The write fails if the Framework has changed
// after it was read: another admission may have started it.
func (c *Controller) annotate(ctx context.Context, framework *frameworkv1.Framework, annotation string, value any) error {
	return c.patch(ctx, frameworks, framework, types.MergePatchType, map[string]any{"metadata": map[string]any{
		"uid": framework.UID, "resourceVersion": framework.ResourceVersion, "annotations": map[string]any{annotation: value},
	}})
}

// known caches what was read recently. So a thousand Frameworks that are admitted together cause one request, and a
// step that failed half-way finds what it has read.
type known[T any] map[string]finding[T]

type finding[T any] struct {
	value T
	at    time.Time
}

// knownTime is how long what was found out is taken to be so.
const knownTime = time.Minute

// lookUp returns what is known of a name, or else finds it out.
func lookUp[T any](mu *sync.Mutex, all known[T], name string, now time.Time, find func() (T, error)) (T, error) {
	mu.Lock()
	maps.DeleteFunc(all, func(_ string, found finding[T]) bool { return now.Sub(found.at) > knownTime })
	found, ok := all[name]
	mu.Unlock()
	if ok {
		return found.value, nil
	}
	value, err := find()
	if err != nil {
		return value, err
	}
	mu.Lock()
	defer mu.Unlock()
	all[name] = finding[T]{value, now}
	return value, nil
}

// flavor returns the labels and tolerations of a ResourceFlavor. Answers are cached for a short time.
func (c *Controller) flavor(ctx context.Context, name string, now time.Time) (flavor, error) {
	return lookUp(&c.mu, c.flavors, name, now, func() (flavor, error) {
		ctx, cancel := aRequest(ctx)
		defer cancel()
		var found resourceFlavor
		object, err := c.client.Resource(flavors).Get(ctx, name, metav1.GetOptions{})
		if err == nil {
			err = runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &found)
		}
		if err != nil {
			return flavor{}, fmt.Errorf("reading the ResourceFlavor %s: %w", name, err)
		}
		return found.Spec, nil
	})
}

func ignoreGone(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
