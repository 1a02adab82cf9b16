// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package volcanojobs

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	batchv1alpha1 "github.com/lockstep-k8s/lockstep/apis/batch/v1alpha1"
	"github.com/lockstep-k8s/lockstep/controller/adapter"
	"github.com/lockstep-k8s/lockstep/controller/engine"
	"github.com/lockstep-k8s/lockstep/controller/volcano"
	"github.com/lockstep-k8s/lockstep/internal/informing"
)

// newInformers makes the informers, but for that of Jobs. The one of PodGroups is shared, and
// others start it.
func (c *Core) newInformers(namespaces informing.Namespaces) error {
	labelled := adapter.Labelled(batchv1alpha1.KeyJobName)
	owned := engine.OwnerIndex("")
	c.pods = namespaces.Informer(&corev1.Pod{}, func(namespace string) cache.ListerWatcher {
		return informing.ListWatch(c.clients.Kube, c.clients.Kube.CoreV1().Pods(namespace), labelled)
	})
	c.configMaps = namespaces.Informer(&corev1.ConfigMap{}, func(namespace string) cache.ListerWatcher {
		return informing.ListWatch(c.clients.Kube, c.clients.Kube.CoreV1().ConfigMaps(namespace), labelled)
	})
	for _, informer := range []cache.SharedIndexInformer{c.pods, c.configMaps} {
		c.start = append(c.start, func(ctx context.Context) { go informer.RunWithContext(ctx) })
	}
	c.metadataOf = map[string]cache.SharedIndexInformer{}
	var err error
	for kind, resource := range map[string]schema.GroupVersionResource{
		volcano.KindService:       corev1.SchemeGroupVersion.WithResource("services"),
		volcano.KindNetworkPolicy: networkingv1.SchemeGroupVersion.WithResource("networkpolicies"),
	} {
		if c.metadataOf[kind], err = c.newMetadataInformer(resource, namespaces, labelled); err != nil {
			return err
		}
	}
	// Users name claims of their own, which have no label.
	if c.metadataOf[volcano.KindClaim], err = c.newMetadataInformer(corev1.SchemeGroupVersion.WithResource("persistentvolumeclaims"), namespaces, informing.WantCurrent); err != nil {
		return err
	}
	volcanoGroups, err := c.newMetadataInformer(volcanoGroupResource, namespaces, informing.WantCurrent)
	if err != nil {
		return err
	}
	if c.volcanoGroups, err = newServedOrNot(volcanoGroups); err != nil {
		return fmt.Errorf("watching PodGroups of Volcano: %w", err)
	}
	if c.commands, err = newCommandInformer(c.clients.Dynamic, namespaces); err != nil {
		return fmt.Errorf("watching Commands: %w", err)
	}
	if err := informing.Quietly(c.commands, c.commands.HasSynced); err != nil {
		return fmt.Errorf("watching Commands: %w", err)
	}
	c.start = append(c.start, func(ctx context.Context) { go c.commands.RunWithContext(ctx) })
	for informer, keep := range map[cache.SharedIndexInformer]cache.TransformFunc{c.pods: keepOfPod, c.configMaps: keepOfConfigMap} {
		if err := informer.SetTransform(keep); err != nil {
			return err
		}
	}
	for _, informer := range []cache.SharedIndexInformer{c.pods, c.configMaps} {
		if err := informer.AddIndexers(owned); err != nil {
			return err
		}
	}
	return nil
}

// volcanoGroupResource are Volcano's own PodGroups: a Job that controls one is run by
// Volcano.
var volcanoGroupResource = schema.GroupVersionResource{Group: "scheduling.volcano.sh", Version: "v1beta1", Resource: "podgroups"}

// newMetadataInformer caches the metadata of objects, and starts with the others.
func (c *Core) newMetadataInformer(resource schema.GroupVersionResource, namespaces informing.Namespaces, which func(*metav1.ListOptions)) (cache.SharedIndexInformer, error) {
	informer, err := adapter.MetadataInformer(c.clients.Metadata, resource, namespaces, which, batchv1alpha1.KeyJobName)
	if err != nil {
		return nil, err
	}
	c.start = append(c.start, func(ctx context.Context) { go informer.RunWithContext(ctx) })
	return informer, nil
}

// What decisions read of objects, for their informers, and for objects that come otherwise.
var (
	keepOfPod, reducePod             = informing.Keep(volcano.KeepOfPod)
	keepOfConfigMap, reduceConfigMap = informing.Keep(volcano.KeepOfConfigMap)
	_, reduceCommand                 = informing.Keep(volcano.KeepOfCommand)
	reduceToMetadata                 = adapter.ReduceToMetadata(batchv1alpha1.KeyJobName)
)
