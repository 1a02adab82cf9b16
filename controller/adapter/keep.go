// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package adapter

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/cache"

	"github.com/lockstep-k8s/lockstep/controller/engine"
	"github.com/lockstep-k8s/lockstep/controller/jobpods"
	"github.com/lockstep-k8s/lockstep/internal/informing"
)

// MetadataInformer caches the metadata of objects of all namespaces, by their controllers, and
// nothing else of them: what a Secret holds, say, is never read. Of labels and annotations it has
// those of some keys. Whoever made it starts it.
func MetadataInformer(client metadata.Interface, resource schema.GroupVersionResource, namespaces informing.Namespaces,
	which func(*metav1.ListOptions), keys ...string) (cache.SharedIndexInformer, error) {
	informer := namespaces.Informer(&metav1.PartialObjectMetadata{}, func(namespace string) cache.ListerWatcher {
		return informing.ListWatch(client, client.Resource(resource).Namespace(namespace), which)
	})
	if err := informer.AddIndexers(engine.OwnerIndex("")); err != nil {
		return nil, err
	}
	keep, _ := informing.Keep(func(object *metav1.PartialObjectMetadata) *metav1.PartialObjectMetadata {
		return &metav1.PartialObjectMetadata{TypeMeta: object.TypeMeta, ObjectMeta: jobpods.KeepMetadata(object, keys...)}
	})
	return informer, informer.SetTransform(keep)
}

// ReduceToMetadata keeps of an object what the cache of a MetadataInformer would hold.
func ReduceToMetadata(keys ...string) func(metav1.Object) metav1.Object {
	return func(object metav1.Object) metav1.Object {
		return &metav1.PartialObjectMetadata{ObjectMeta: jobpods.KeepMetadata(object, keys...)}
	}
}

// Labelled selects the objects that have a label, and has a list of them be current.
func Labelled(key string) func(*metav1.ListOptions) {
	return func(options *metav1.ListOptions) {
		options.LabelSelector = key
		informing.WantCurrent(options)
	}
}
