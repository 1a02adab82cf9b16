// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package adapter

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/cache"

	"github.com/lockstep-k8s/lockstep/controller/engine"
	"github.com/lockstep-k8s/lockstep/controller/jobpods"
	"github.com/lockstep-k8s/lockstep/internal/informing"
)

// Informers makes the informers of a core, and starts them.
type Informers struct {
	Namespaces informing.Namespaces
	all        []cache.SharedIndexInformer
}

// Objects caches of the objects of a kind what keep leaves of them.
func (i *Informers) Objects(example runtime.Object, keep cache.TransformFunc, indexers cache.Indexers, in func(namespace string) cache.ListerWatcher) (cache.SharedIndexInformer, error) {
	informer := i.Namespaces.Informer(example, in)
	if err := informer.AddIndexers(indexers); err != nil {
		return nil, fmt.Errorf("watching %Ts: %w", example, err)
	}
	i.Adopt(informer)
	return informer, informer.SetTransform(keep)
}

// Metadata returns an informer that caches only the metadata of objects, indexed by controller; the content of a
// Secret, for instance, is never read. keys are the labels and annotations to keep.
func (i *Informers) Metadata(client metadata.Interface, resource schema.GroupVersionResource, which func(*metav1.ListOptions), keys ...string) (cache.SharedIndexInformer, error) {
	keep, _ := informing.Keep(func(object *metav1.PartialObjectMetadata) *metav1.PartialObjectMetadata {
		return &metav1.PartialObjectMetadata{TypeMeta: object.TypeMeta, ObjectMeta: jobpods.KeepMetadata(object, keys...)}
	})
	return i.Objects(&metav1.PartialObjectMetadata{}, keep, engine.OwnerIndex(""), func(namespace string) cache.ListerWatcher {
		return informing.ListWatch(client, client.Resource(resource).Namespace(namespace), which)
	})
}

// Adopt adds an informer that is started with the others.
func (i *Informers) Adopt(informer cache.SharedIndexInformer) { i.all = append(i.all, informer) }

// Start starts them.
func (i *Informers) Start(ctx context.Context) {
	for _, informer := range i.all {
		go informer.RunWithContext(ctx)
	}
}

// ReduceToMetadata keeps of an object what the cache of Informers.Metadata would hold.
func ReduceToMetadata(keys ...string) func(metav1.Object) metav1.Object {
	return func(object metav1.Object) metav1.Object {
		return &metav1.PartialObjectMetadata{ObjectMeta: jobpods.KeepMetadata(object, keys...)}
	}
}

// Labelled makes an informer list only objects with the label `key`, and asks the API server for a list that is up to
// date.
func Labelled(key string) func(*metav1.ListOptions) {
	return func(options *metav1.ListOptions) {
		options.LabelSelector = key
		informing.WantCurrent(options)
	}
}
