// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	"github.com/lockstep-k8s/lockstep/controller/pacing"
)

// addHandlers maps events to keys.
func (c *Controller) addHandlers() error {
	if _, err := c.frameworks.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(object any) { c.enqueue(object, 0) },
		UpdateFunc: func(old, new any) {
			if replaced(old, new) {
				c.logFrameworkDeletion(old)
			}
			if frameworkChanged(old.(*frameworkEntry), new.(*frameworkEntry)) {
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

// addOwnedHandler maps an object of a Framework to the Framework, by the label
// that all of them have.
func (c *Controller) addOwnedHandler(informer cache.SharedIndexInformer, delay time.Duration) error {
	enqueue := func(object any) { c.enqueueOwner(object, delay) }
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: enqueue,
		UpdateFunc: func(old, new any) {
			if resourceVersion(old) != resourceVersion(new) {
				enqueue(new)
			}
		},
		DeleteFunc: enqueue,
	})
	return err
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

func (c *Controller) enqueueOwner(object any, delay time.Duration) {
	accessor := objectMeta(object)
	if accessor == nil {
		return
	}
	if framework := accessor.GetLabels()[frameworkv1.KeyFrameworkName]; framework != "" {
		c.queue.AddAfter(cache.NewObjectName(accessor.GetNamespace(), framework), delay)
	}
}

// objectMeta is the metadata of an object of an event, also of one whose deletion
// was missed.
func objectMeta(object any) metav1.Object {
	accessor, err := meta.Accessor(lastState(object))
	if err != nil {
		return nil
	}
	return accessor
}

// lastState is the object of an event, or the last that was seen of one whose
// deletion was missed.
func lastState(object any) any {
	if missed, ok := object.(cache.DeletedFinalStateUnknown); ok {
		return missed.Obj
	}
	return object
}
