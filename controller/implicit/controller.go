// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package implicit

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/client/clientset/versioned"
	schedulinginformers "github.com/lockstep-k8s/lockstep/client/informers/externalversions/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/controller/adapter"
	"github.com/lockstep-k8s/lockstep/controller/pacing"
	"github.com/lockstep-k8s/lockstep/internal/fair"
	"github.com/lockstep-k8s/lockstep/internal/informing"
	"github.com/lockstep-k8s/lockstep/internal/tombstone"
	"github.com/lockstep-k8s/lockstep/podgroup"
)

const (
	// fieldManager is the name under which the package writes.
	fieldManager = "lockstep-controller-implicit"
	// workers is how many PodGroups are looked at beside each other.
	workers = 8

	byGroup = "lockstep.implicit" // index of Pods by the PodGroups of which they may be members
	byOwner = "lockstep.owner"    // index of Pods by the owner that they name, and of owners
)

// Controller creates PodGroups for Jobs, JobSets and LeaderWorkerSets. Several Controllers may use one API server only
// if they elect a leader.
type Controller struct {
	client     versioned.Interface
	groups     cache.SharedIndexInformer
	namespaces cache.SharedIndexInformer
	// kinds are the kinds of owners, with their informers. The informers are started as soon as a namespace has
	// LabelGangByOwner, or a PodGroup with memberLabels is seen.
	kinds []kindInformers
	// unread are the namespaces with Pods that may not be read.
	unread *informing.Unread
	loop   *fair.Loop

	synced    []cache.InformerSynced
	needed    chan struct{}
	needsPods func()
}

// kindInformers are the informers of a kind of owners and of their Pods.
type kindInformers struct {
	*ownerKind
	owners, pods cache.SharedIndexInformer
}

// New makes a Controller for some namespaces. The caller starts the informer of PodGroups. The clients need the rights
// to list and watch namespaces, Pods, Jobs, JobSets and LeaderWorkerSets, and to create, patch and delete PodGroups.
func New(clients adapter.Clients, podGroups schedulinginformers.PodGroupInformer, namespaces informing.Namespaces) (*Controller, error) {
	c := &Controller{
		client: clients.Lockstep,
		groups: podGroups.Informer(),
		namespaces: informing.Namespaces(nil).Informer(&corev1.Namespace{}, func(string) cache.ListerWatcher {
			return informing.ListWatch(clients.Kube, clients.Kube.CoreV1().Namespaces(), func(options *metav1.ListOptions) {
				options.LabelSelector = schedulingv1alpha1.LabelGangByOwner + "=true"
				informing.WantCurrent(options)
			})
		}),
		needed: make(chan struct{}),
	}
	c.needsPods = sync.OnceFunc(func() { close(c.needed) })
	c.loop = fair.NewLoop("implicit-podgroup", "PodGroup", fair.Limits{Namespace: pacing.MaxFlights, All: pacing.MaxFlightsInAll}, pacing.Patience, c.sync)
	c.unread = namespaces.Unread(c.enqueueNamespace)
	for i := range ownerKinds {
		kind := kindInformers{ownerKind: &ownerKinds[i]}
		kind.owners = namespaces.Dynamic(clients.Dynamic, kind.resource, informing.WantCurrent)
		kind.pods = namespaces.Informer(&corev1.Pod{}, func(namespace string) cache.ListerWatcher {
			return informing.ListWatch(clients.Kube, clients.Kube.CoreV1().Pods(namespace), func(options *metav1.ListOptions) {
				options.LabelSelector = kind.ownerKind.pods
				informing.WantCurrent(options)
			})
		})
		if err := c.watchKind(kind); err != nil {
			return nil, fmt.Errorf("watching %s and their Pods: %w", kind.resource.GroupResource(), err)
		}
		c.kinds = append(c.kinds, kind)
	}
	if err := c.watchGroups(); err != nil {
		return nil, fmt.Errorf("watching namespaces and PodGroups: %w", err)
	}
	return c, nil
}

// watchKind prepares the informers of a kind.
func (c *Controller) watchKind(kind kindInformers) error {
	handled, err := kind.pods.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: c.enqueuePod,
		UpdateFunc: func(before, after any) {
			was, ok1 := before.(*corev1.Pod)
			is, ok2 := after.(*corev1.Pod)
			if ok1 && ok2 && !saysSame(was, is) {
				c.enqueuePod(was)
				c.enqueuePod(is)
			}
		},
		DeleteFunc: c.enqueuePod,
	})
	if err != nil {
		return err
	}
	c.synced = append(c.synced, handled.HasSynced)
	onOwner := func(object any) {
		if owner, ok := object.(*unstructured.Unstructured); ok {
			c.enqueueAll(kind.pods.GetIndexer().ByIndex(byOwner, kind.keyOf(owner)))
		}
	}
	_, err = kind.owners.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: onOwner, UpdateFunc: func(_, after any) { onOwner(after) }})
	return errors.Join(err,
		kind.pods.SetTransform(strip),
		kind.pods.AddIndexers(cache.Indexers{
			byGroup: indexBy(func(pod *corev1.Pod) []string {
				var keys []string
				for _, name := range groupsOf(pod) {
					keys = append(keys, cache.NewObjectName(pod.Namespace, name).String())
				}
				return keys
			}),
			byOwner: indexBy(func(pod *corev1.Pod) []string { return []string{kind.keyFrom(pod)} }),
		}),
		c.unread.Follow(kind.pods),
		kind.owners.SetTransform(func(object any) (any, error) {
			if owner, ok := object.(*unstructured.Unstructured); ok {
				reduce(owner)
			}
			return object, nil
		}),
		kind.owners.AddIndexers(cache.Indexers{byOwner: indexBy(func(owner *unstructured.Unstructured) []string { return []string{kind.keyOf(owner)} })}),
		informing.Quietly(kind.owners, kind.owners.HasSynced),
	)
}

// watchGroups prepares the informers of namespaces and PodGroups.
func (c *Controller) watchGroups() error {
	onNamespace := func(object any) {
		if namespace, ok := object.(*corev1.Namespace); ok {
			c.needsPods()
			c.enqueueNamespace(namespace.Name)
		}
	}
	namespaces, err := c.namespaces.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: onNamespace})
	if err != nil {
		return err
	}
	onGroup := func(object any) {
		group, ok := tombstone.Object(object).(*schedulingv1alpha1.PodGroup)
		if !ok || len(group.Spec.MemberLabels) == 0 {
			return
		}
		c.needsPods()
		key := cache.MetaObjectToName(group)
		c.loop.Add(fair.Key{ObjectName: key})
		if group.Spec.SchedulingPolicy == schedulingv1alpha1.PolicyGangPerJob {
			for _, pod := range c.podsOf(key) {
				c.enqueuePod(pod) // what is decided for the JobSet holds for its Jobs
			}
		}
	}
	groups, err := c.groups.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    onGroup,
		UpdateFunc: func(_, after any) { onGroup(after) },
		DeleteFunc: onGroup,
	})
	if err != nil {
		return err
	}
	c.synced = append(c.synced, namespaces.HasSynced, groups.HasSynced)
	return nil
}

// indexBy makes an index of objects of a type.
func indexBy[T any](values func(T) []string) cache.IndexFunc {
	return func(object any) ([]string, error) {
		if o, ok := object.(T); ok {
			return values(o), nil
		}
		return nil, nil
	}
}

// groupsOf returns the names of the PodGroups that may be created for a Pod; none if the Pod names a PodGroup itself.
func groupsOf(pod *corev1.Pod) []string {
	if _, named := podgroup.GroupOf(pod); named {
		return nil
	}
	return podgroup.GroupsOf(pod)
}

// saysSame reports whether two states of a Pod say the same of its PodGroup.
func saysSame(before, after *corev1.Pod) bool {
	return before.UID == after.UID && maps.Equal(before.Labels, after.Labels) && maps.Equal(before.Annotations, after.Annotations)
}

func (c *Controller) enqueuePod(object any) {
	if pod, ok := tombstone.Object(object).(*corev1.Pod); ok {
		for _, name := range groupsOf(pod) {
			c.loop.Add(fair.Key{ObjectName: cache.NewObjectName(pod.Namespace, name)})
		}
	}
}

// enqueueAll enqueues the groups of some Pods from an index.
func (c *Controller) enqueueAll(pods []any, err error) {
	if err != nil {
		klog.Background().Error(err, "Looking for the Pods of an owner failed")
	}
	for _, pod := range pods {
		c.enqueuePod(pod)
	}
}

// enqueueNamespace enqueues all groups of a namespace.
func (c *Controller) enqueueNamespace(namespace string) {
	for _, kind := range c.kinds {
		c.enqueueAll(informing.In(kind.pods, namespace), nil)
	}
	for _, object := range informing.In(c.groups, namespace) {
		if group, ok := object.(*schedulingv1alpha1.PodGroup); ok && isOurs(group) {
			c.loop.Add(fair.Key{ObjectName: cache.MetaObjectToName(group)})
		}
	}
}

// Pods returns the informers of the Pods for which PodGroups are created. Run starts them once a namespace has the
// label that requests PodGroups.
func (c *Controller) Pods() []cache.SharedIndexInformer {
	var pods []cache.SharedIndexInformer
	for _, kind := range c.kinds {
		pods = append(pods, kind.pods)
	}
	return pods
}

// Longest returns the sync that has been running for the longest time, and how long.
func (c *Controller) Longest() (fair.Key, time.Duration) { return c.loop.Longest() }

// Run makes the PodGroups until ctx ends. It runs once.
func (c *Controller) Run(ctx context.Context) error {
	ctx = klog.NewContext(ctx, klog.FromContext(ctx).WithName("implicit-podgroups"))
	var running sync.WaitGroup
	defer running.Wait()
	defer c.loop.ShutDown()
	running.Go(func() { c.namespaces.RunWithContext(ctx) })
	select {
	case <-c.needed:
	case <-ctx.Done():
		return nil
	}
	for _, kind := range c.kinds {
		running.Go(func() { kind.pods.RunWithContext(ctx) })
		running.Go(func() { kind.owners.RunWithContext(ctx) })
	}
	if !cache.WaitForCacheSync(ctx.Done(), c.synced...) {
		return nil
	}
	klog.FromContext(ctx).Info("Making PodGroups for Jobs, JobSets and LeaderWorkerSets in namespaces with the label", "label", schedulingv1alpha1.LabelGangByOwner)
	c.loop.Start(ctx, workers, &running)
	<-ctx.Done()
	return nil
}

// sync does the next step of a PodGroup.
func (c *Controller) sync(ctx context.Context, key cache.ObjectName) error {
	if c.unread.Has(key.Namespace) {
		return nil // Pods that are not shown may be there
	}
	ctx, cancel := context.WithTimeout(ctx, pacing.RequestTime)
	defer cancel()
	return c.do(ctx, key, decide(c.look(key)))
}

// look returns what is known of the Pods of a PodGroup.
func (c *Controller) look(key cache.ObjectName) situation {
	_, asks, _ := c.namespaces.GetStore().GetByKey(key.Namespace)
	s := situation{asks: asks, name: key.Name, group: c.group(key), pods: c.podsOf(key)}
	if len(s.pods) == 0 {
		return s
	}
	// Labels differ only if a user has written them by hand. Then they are not to be read in turns.
	s.pod = slices.MinFunc(s.pods, func(a, b *corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	first, perJob := podgroup.ImplicitOf(s.pod)
	s.implicit = first
	if whole := first.Name(s.pod); whole != key.Name {
		s.implicit, s.whole = perJob, c.group(cache.NewObjectName(key.Namespace, whole))
	}
	for _, kind := range c.kinds {
		if kind.rule != first.Rule {
			continue
		}
		if owners, err := kind.owners.GetIndexer().ByIndex(byOwner, kind.keyFrom(s.pod)); err == nil && len(owners) > 0 {
			s.owner, _ = owners[0].(*unstructured.Unstructured)
		}
	}
	return s
}

// podsOf returns the Pods that a PodGroup is for.
func (c *Controller) podsOf(key cache.ObjectName) []*corev1.Pod {
	var pods []*corev1.Pod
	for _, kind := range c.kinds {
		objects, err := kind.pods.GetIndexer().ByIndex(byGroup, key.String())
		if err != nil {
			continue // the index exists
		}
		for _, object := range objects {
			if pod, ok := object.(*corev1.Pod); ok {
				pods = append(pods, pod)
			}
		}
	}
	return pods
}

// group returns a PodGroup from the cache, nil if none.
func (c *Controller) group(key cache.ObjectName) *schedulingv1alpha1.PodGroup {
	object, exists, err := c.groups.GetStore().GetByKey(key.String())
	if err != nil || !exists {
		return nil
	}
	group, _ := object.(*schedulingv1alpha1.PodGroup)
	return group
}

// do carries out a step. The write contains the UID of the PodGroup, so it fails if another PodGroup has the name.
func (c *Controller) do(ctx context.Context, key cache.ObjectName, next step) error {
	groups, logger := c.client.SchedulingV1alpha1().PodGroups(key.Namespace), klog.FromContext(ctx)
	switch {
	case next.create != nil:
		if _, err := groups.Create(ctx, next.create, metav1.CreateOptions{FieldManager: fieldManager}); err != nil {
			return fmt.Errorf("creating the PodGroup: %w", err)
		}
		owner := next.create.OwnerReferences[0]
		logger.V(2).Info("Created a PodGroup", "podGroup", key, "kind", owner.Kind, "owner", owner.Name, "minMember", next.create.Spec.MinMember, "policy", next.create.Spec.SchedulingPolicy)
	case next.minMember > 0:
		patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": next.uid}, "spec": map[string]any{"minMember": next.minMember}})
		if err != nil {
			return err
		}
		if _, err := groups.Patch(ctx, key.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: fieldManager}); err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("changing minMember: %w", err)
		}
		logger.V(2).Info("Changed minMember of a PodGroup", "podGroup", key, "minMember", next.minMember)
	case next.remove:
		if err := groups.Delete(ctx, key.Name, *metav1.NewPreconditionDeleteOptions(string(next.uid))); err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("deleting the PodGroup: %w", err)
		}
		logger.V(2).Info("Deleted a PodGroup", "podGroup", key)
	}
	return nil
}
