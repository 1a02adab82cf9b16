// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package adapter

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/tools/cache"

	"github.com/lockstep-k8s/lockstep/controller/engine"
	"github.com/lockstep-k8s/lockstep/internal/informing"
)

// MetadataInformer caches the metadata of objects of all namespaces, by their controllers, and
// nothing else of them: what a Secret holds, say, is never read. Whoever made it starts it.
func MetadataInformer(client metadata.Interface, resource schema.GroupVersionResource, which func(*metav1.ListOptions)) (cache.SharedIndexInformer, error) {
	informer := metadatainformer.NewFilteredMetadataInformer(client, resource, metav1.NamespaceAll, 0, engine.OwnerIndex(""), which).Informer()
	return informer, informer.SetTransform(informing.DropManagedFields)
}

// ReduceToMetadata keeps of an object what the cache of a MetadataInformer would hold.
func ReduceToMetadata(object metav1.Object) metav1.Object {
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Name:              object.GetName(),
		Namespace:         object.GetNamespace(),
		UID:               object.GetUID(),
		ResourceVersion:   object.GetResourceVersion(),
		Labels:            object.GetLabels(),
		Annotations:       object.GetAnnotations(),
		OwnerReferences:   object.GetOwnerReferences(),
		CreationTimestamp: object.GetCreationTimestamp(),
		DeletionTimestamp: object.GetDeletionTimestamp(),
	}}
}

// Labelled selects the objects that have a label, and has a list of them be current.
func Labelled(key string) func(*metav1.ListOptions) {
	return func(options *metav1.ListOptions) {
		options.LabelSelector = key
		informing.WantCurrent(options)
	}
}
