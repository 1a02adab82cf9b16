// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/informers/internalinterfaces"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// NewInformerFactory returns the informers for a scheduler with the plugin. It differs from kube-scheduler's
// NewInformerFactory only in the informer of Pods; see Pods. name is used in the informers' metrics and may be nil.
func NewInformerFactory(client kubernetes.Interface, name *cache.InformerName) informers.SharedInformerFactory {
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithInformerName(name))
	factory.InformerFor(&corev1.Pod{}, func(client kubernetes.Interface, resync time.Duration) cache.SharedIndexInformer {
		pods := &Pods{adapt: func(object any) (any, error) { return object, nil }, isMember: func(*corev1.Pod) bool { return true }}
		pods.SharedIndexInformer = coreinformers.NewPodInformerWithOptions(client, metav1.NamespaceAll,
			internalinterfaces.InformerOptions{ResyncPeriod: resync, Indexers: cache.Indexers{}, InformerName: name})
		_ = pods.SharedIndexInformer.SetTransform(pods.transform) // the only error is for an informer that was already started
		return pods
	})
	return factory
}

// Pods is an informer of all Pods. Used as a SharedIndexInformer, it shows only Pods that have not ended, and a Pod
// that ends appears as deleted. This is what kube-scheduler's own informer does by its field selector, so
// kube-scheduler and its plugins see the same as without Lockstep. All shows also Pods that have ended (ADR 71).
type Pods struct {
	cache.SharedIndexInformer
	// adapt is the transform that others have set.
	adapt cache.TransformFunc
	// isMember reports whether a Pod may be a member of a gang.
	isMember func(*corev1.Pod) bool
}

// PodsOf returns the informer of Pods from a factory that NewInformerFactory has made. For any other factory it returns
// an error.
func PodsOf(factory informers.SharedInformerFactory) (*Pods, error) {
	pods, ok := factory.InformerFor(&corev1.Pod{}, func(client kubernetes.Interface, resync time.Duration) cache.SharedIndexInformer {
		return coreinformers.NewPodInformer(client, metav1.NamespaceAll, resync, cache.Indexers{})
	}).(*Pods)
	if !ok {
		return nil, fmt.Errorf("the informers of the scheduler do not show Pods that have ended: the program must make them with kube.NewInformerFactory")
	}
	return pods, nil
}

// All returns the informer that shows all Pods.
func (p *Pods) All() cache.SharedIndexInformer {
	return p.SharedIndexInformer
}

// KeepMembers makes the informer reduce each ended Pod that is not a member of a gang to little more than its name.
// Call it before the informer is started.
func (p *Pods) KeepMembers(isMember func(*corev1.Pod) bool) {
	p.isMember = isMember
}

// SetTransform implements cache.SharedInformer: Pods that have ended are reduced after the transform.
func (p *Pods) SetTransform(adapt cache.TransformFunc) error {
	p.adapt = adapt
	return p.SharedIndexInformer.SetTransform(p.transform)
}

// transform drops fields that nothing reads.
func (p *Pods) transform(object any) (any, error) {
	object, err := p.adapt(object)
	pod, ok := object.(*corev1.Pod)
	if err != nil || !ok {
		return object, err
	}
	pod.ManagedFields = nil
	switch {
	case !HasEnded(pod):
		return pod, nil
	case p.isMember(pod):
		return reduced(pod), nil
	default:
		return nameOf(pod), nil
	}
}

// nameOf returns an ended Pod with only its identity.
func nameOf(pod *corev1.Pod) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, ResourceVersion: pod.ResourceVersion, DeletionTimestamp: pod.DeletionTimestamp},
		Spec:       corev1.PodSpec{NodeName: pod.Spec.NodeName},
		Status:     corev1.PodStatus{Phase: pod.Status.Phase},
	}
}

// reduced returns an ended member without the fields that matter only before a Pod has ended. It keeps what the member
// requested, because the gang may have to reserve as much for members to come.
func reduced(pod *corev1.Pod) *corev1.Pod {
	kept := *pod
	kept.Spec.Volumes, kept.Spec.Affinity, kept.Spec.Tolerations, kept.Spec.TopologySpreadConstraints = nil, nil, nil, nil
	kept.Spec.Containers, kept.Spec.InitContainers = requestsOf(pod.Spec.Containers), requestsOf(pod.Spec.InitContainers)
	return &kept
}

func requestsOf(containers []corev1.Container) []corev1.Container {
	kept := make([]corev1.Container, len(containers))
	for i := range containers {
		kept[i] = corev1.Container{Name: containers[i].Name, Resources: containers[i].Resources, RestartPolicy: containers[i].RestartPolicy}
	}
	return kept
}

// HasEnded reports whether a Pod has succeeded or failed.
func HasEnded(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// isEnded reports whether an object of the informer, or the last known state of a deleted one, is a Pod that has ended.
func isEnded(object any) bool {
	if gone, missed := object.(cache.DeletedFinalStateUnknown); missed {
		object = gone.Obj
	}
	pod, ok := object.(*corev1.Pod)
	return ok && HasEnded(pod)
}

// GetStore implements cache.SharedInformer.
func (p *Pods) GetStore() cache.Store {
	return p.GetIndexer()
}

// GetIndexer implements cache.SharedIndexInformer.
func (p *Pods) GetIndexer() cache.Indexer {
	return livingStore{p.SharedIndexInformer.GetIndexer()}
}

// AddIndexers implements cache.SharedIndexInformer.
func (p *Pods) AddIndexers(indexers cache.Indexers) error {
	return p.SharedIndexInformer.AddIndexers(ofLiving(indexers))
}

// AddEventHandler implements cache.SharedInformer.
func (p *Pods) AddEventHandler(handler cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	return p.SharedIndexInformer.AddEventHandler(livingEvents{handler})
}

// AddEventHandlerWithResyncPeriod implements cache.SharedInformer.
func (p *Pods) AddEventHandlerWithResyncPeriod(handler cache.ResourceEventHandler, resync time.Duration) (cache.ResourceEventHandlerRegistration, error) {
	return p.SharedIndexInformer.AddEventHandlerWithResyncPeriod(livingEvents{handler}, resync)
}

// AddEventHandlerWithOptions implements cache.SharedInformer.
func (p *Pods) AddEventHandlerWithOptions(handler cache.ResourceEventHandler, options cache.HandlerOptions) (cache.ResourceEventHandlerRegistration, error) {
	return p.SharedIndexInformer.AddEventHandlerWithOptions(livingEvents{handler}, options)
}

// livingEvents hides from a handler the Pods that have ended.
type livingEvents struct {
	cache.ResourceEventHandler
}

// OnAdd implements cache.ResourceEventHandler.
func (l livingEvents) OnAdd(object any, isInInitialList bool) {
	if !isEnded(object) {
		l.ResourceEventHandler.OnAdd(object, isInInitialList)
	}
}

// OnUpdate implements cache.ResourceEventHandler.
func (l livingEvents) OnUpdate(before, after any) {
	switch had, has := isEnded(before), isEnded(after); {
	case !had && !has:
		l.ResourceEventHandler.OnUpdate(before, after)
	case had && !has: // another Pod has the name, or etcd was restored
		l.ResourceEventHandler.OnAdd(after, false)
	case !had && has:
		l.ResourceEventHandler.OnDelete(asDeleted(before, after))
	}
}

// OnDelete implements cache.ResourceEventHandler.
func (l livingEvents) OnDelete(object any) {
	if !isEnded(object) {
		l.ResourceEventHandler.OnDelete(object)
	}
}

// asDeleted returns the object with which the end of a Pod is reported as a deletion: the Pod's last state before its
// end. If the watch was broken and states in between may be missing, asDeleted wraps that state as
// DeletedFinalStateUnknown. kube-scheduler then looks for the Pod wherever it may be.
func asDeleted(before, after any) any {
	was, ok1 := before.(*corev1.Pod)
	is, ok2 := after.(*corev1.Pod)
	if ok1 && ok2 && (was.UID != is.UID || was.Spec.NodeName != is.Spec.NodeName) {
		return cache.DeletedFinalStateUnknown{Key: was.Namespace + "/" + was.Name, Obj: was}
	}
	return before
}

// livingStore is a store without the ended Pods of another store. Indexes that are added through livingStore leave
// these out, too.
type livingStore struct {
	cache.Indexer
}

// List implements cache.Store.
func (s livingStore) List() []any {
	return slices.DeleteFunc(s.Indexer.List(), isEnded)
}

// ListKeys implements cache.Store.
func (s livingStore) ListKeys() []string {
	var keys []string
	for _, object := range s.List() {
		if key, err := cache.MetaNamespaceKeyFunc(object); err == nil {
			keys = append(keys, key)
		}
	}
	return keys
}

// Get implements cache.Store.
func (s livingStore) Get(object any) (any, bool, error) {
	return ifLiving(s.Indexer.Get(object))
}

// GetByKey implements cache.Store.
func (s livingStore) GetByKey(key string) (any, bool, error) {
	return ifLiving(s.Indexer.GetByKey(key))
}

func ifLiving(object any, exists bool, err error) (any, bool, error) {
	if isEnded(object) {
		return nil, false, err
	}
	return object, exists, err
}

// AddIndexers implements cache.Indexer.
func (s livingStore) AddIndexers(indexers cache.Indexers) error {
	return s.Indexer.AddIndexers(ofLiving(indexers))
}

// ofLiving returns indexers that do not index Pods that have ended.
func ofLiving(indexers cache.Indexers) cache.Indexers {
	living := make(cache.Indexers, len(indexers))
	for name, index := range indexers {
		living[name] = func(object any) ([]string, error) {
			if isEnded(object) {
				return nil, nil
			}
			return index(object)
		}
	}
	return living
}
