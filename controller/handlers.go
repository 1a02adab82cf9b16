// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	"github.com/lockstep-k8s/lockstep/controller/pacing"
	"github.com/lockstep-k8s/lockstep/internal/tombstone"
)

// addHandlers maps events to keys.
func (c *Controller) addHandlers() error {
	if _, err := c.frameworks.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(object any) { c.enqueue(object, 0) },
		UpdateFunc: func(old, new any) {
			if replaced(old, new) {
				c.logFrameworkDeletion(old)
			}
			entry := new.(*frameworkEntry)
			mended := c.metrics.undecodable.version(cache.MetaObjectToName(entry)) != "" // Its status, perhaps.
			if mended || frameworkChanged(old.(*frameworkEntry), entry) {
				c.enqueue(new, 0)
			}
		},
		DeleteFunc: func(object any) {
			c.logFrameworkDeletion(object)
			c.enqueue(object, 0)
		},
	}); err != nil {
		return fmt.Errorf("watching Frameworks: %w", err)
	}
	if err := c.addOwnedHandler(c.configMaps, 0); err != nil {
		return fmt.Errorf("watching ConfigMaps: %w", err)
	}
	if err := c.addOwnedHandler(c.podGroups, pacing.EventDelay); err != nil {
		return fmt.Errorf("watching PodGroups: %w", err)
	}
	if err := c.addOwnedHandler(c.pods, pacing.EventDelay); err != nil {
		return fmt.Errorf("watching Pods: %w", err)
	}
	if _, err := c.pods.AddEventHandler(cache.ResourceEventHandlerFuncs{
		UpdateFunc: func(old, new any) {
			if replaced(old, new) {
				c.logPodDeletion(old)
			}
		},
		DeleteFunc: c.logPodDeletion,
	}); err != nil {
		return fmt.Errorf("watching Pods for the history: %w", err)
	}
	return nil
}

// replaced says whether an update hides that one object was deleted and another
// of its name created.
func replaced(old, new any) bool {
	return objectMeta(old).GetUID() != objectMeta(new).GetUID()
}

// frameworkChanged says whether an update is more than the controller's own
// write of the status.
func frameworkChanged(old, new *frameworkEntry) bool {
	return old.UID != new.UID ||
		old.Generation != new.Generation ||
		(old.DeletionTimestamp == nil) != (new.DeletionTimestamp == nil) ||
		(old.decodeError == nil) != (new.decodeError == nil)
}

// addOwnedHandler maps an object of a Framework to the Framework.
func (c *Controller) addOwnedHandler(informer cache.SharedIndexInformer, delay time.Duration) error {
	enqueue := func(objects ...any) {
		for _, key := range ownersOf(objects...) {
			c.queue.AddAfter(key, delay)
		}
	}
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(object any) { enqueue(object) },
		UpdateFunc: func(old, new any) {
			if replaced(old, new) {
				c.noteDeparture(old, true)
			}
			if resourceVersion(old) != resourceVersion(new) {
				enqueue(old, new) // A label may have changed.
			}
		},
		DeleteFunc: func(object any) {
			if _, missed := object.(cache.DeletedFinalStateUnknown); !missed {
				c.noteDeparture(object, false)
			}
			enqueue(object)
		},
	})
	return err
}

// noteDeparture notes the end of an object. It is certain if another object has its
// name, or it was to be deleted: else it may only have lost its label.
func (c *Controller) noteDeparture(object any, certain bool) {
	accessor := objectMeta(object)
	if accessor == nil {
		return
	}
	departed := departure{uid: accessor.GetUID(), certain: certain || accessor.GetDeletionTimestamp() != nil}
	if pod, ok := object.(*corev1.Pod); ok {
		departed.unbound = pod.Spec.NodeName == ""
	}
	for _, key := range ownersOf(object) {
		c.known.departed(key, departed)
	}
}

// ownersOf are the Frameworks that objects belong to, by their labels, or did by an
// annotation: somebody may have changed one of both.
func ownersOf(objects ...any) []cache.ObjectName {
	var keys []cache.ObjectName
	for _, object := range objects {
		accessor := objectMeta(object)
		if accessor == nil {
			continue
		}
		for _, name := range []string{
			accessor.GetLabels()[frameworkv1.KeyFrameworkName],
			accessor.GetAnnotations()[frameworkv1.KeyFrameworkName],
		} {
			key := cache.NewObjectName(accessor.GetNamespace(), name)
			if name != "" && !slices.Contains(keys, key) {
				keys = append(keys, key)
			}
		}
	}
	return keys
}

func resourceVersion(object any) string {
	accessor, err := meta.Accessor(object)
	if err != nil {
		return ""
	}
	return accessor.GetResourceVersion()
}

func (c *Controller) enqueue(object any, delay time.Duration) {
	if accessor := objectMeta(object); accessor != nil {
		c.queue.AddAfter(cache.MetaObjectToName(accessor), delay)
	}
}

// objectMeta is the metadata of an object of an event, also of one whose deletion
// was missed.
func objectMeta(object any) metav1.Object {
	accessor, err := meta.Accessor(tombstone.Object(object))
	if err != nil {
		return nil
	}
	return accessor
}
