// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/tools/cache"

	"github.com/lockstep-k8s/lockstep/internal/podend"
	"github.com/lockstep-k8s/lockstep/internal/tombstone"
)

// addHandlers maps events to keys.
func (o *Owners[O, S]) addHandlers() error {
	if _, err := o.informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(object any) { o.enqueue(object) },
		UpdateFunc: func(old, new any) {
			if replaced(old, new) {
				o.tellDeleted(old)
			}
			before, now := old.(*entry[O]), new.(*entry[O])
			if wentBack(old, new) {
				o.known.reread(now.key())
				o.enqueue(new)
			}
			mended := o.undecodable.version(now.key()) != "" // Its status, perhaps.
			if mended || ownerChanged(before, now) || o.known.isOver(now.key()) {
				o.enqueue(new)
			}
		},
		DeleteFunc: func(object any) {
			o.tellDeleted(object)
			o.enqueue(object)
		},
	}); err != nil {
		return fmt.Errorf("watching the kind %s: %w", o.resource.Kind, err)
	}
	for _, kind := range o.kinds {
		if kind.OwnersOf == nil {
			continue
		}
		if err := o.addOwnedHandler(kind); err != nil {
			return fmt.Errorf("watching the kind %s: %w", kind.Name, err)
		}
	}
	return nil
}

// tellDeleted reports to the core that an owner is gone. tellDeleted does not report an owner that could not be
// decoded, because such an owner has never run.
func (o *Owners[O, S]) tellDeleted(object any) {
	gone, ok := tombstone.Object(object).(*entry[O])
	if !ok || gone.decodeError != nil {
		return
	}
	status, err := gone.storedStatus.json()
	if err != nil {
		utilruntime.HandleError(err) // The cache compresses, and reads nothing else: it can't be.
		return
	}
	o.core.OwnerDeleted(gone.owner, status)
}

// replaced reports whether an update hides a deletion: the old object was deleted and another object was created under
// the same name.
func replaced(old, new any) bool {
	return objectMeta(old).GetUID() != objectMeta(new).GetUID()
}

// wentBack reports whether an update shows an older version of the object than before. That happens only if etcd was
// restored from a backup, which loses everything that was done since the backup.
func wentBack(old, new any) bool {
	before, now := objectMeta(old), objectMeta(new)
	return before.GetUID() == now.GetUID() && newer(before, now)
}

// ownerChanged reports whether an update contains anything but this controller's own write of the status.
func ownerChanged[O Owner](old, new *entry[O]) bool {
	return old.owner.GetUID() != new.owner.GetUID() ||
		!asksTheSame(old.owner, new.owner) ||
		(old.owner.GetDeletionTimestamp() == nil) != (new.owner.GetDeletionTimestamp() == nil) ||
		(old.decodeError == nil) != (new.decodeError == nil) ||
		!slices.Equal(otherManagers(old.owner), otherManagers(new.owner))
}

// asksTheSame reports whether two versions of an owner have the same spec, labels and annotations. Labels and
// annotations may contain requests of the user, and changing them does not change the generation.
func asksTheSame(a, b metav1.Object) bool {
	return a.GetGeneration() == b.GetGeneration() && maps.Equal(a.GetLabels(), b.GetLabels()) && maps.Equal(a.GetAnnotations(), b.GetAnnotations())
}

// otherManagers returns the field managers of an owner except this controller's. A core may leave an owner to another
// controller that manages it.
func otherManagers(owner metav1.Object) []string {
	var others []string
	for _, entry := range owner.GetManagedFields() {
		if entry.Manager != FieldManager {
			others = append(others, entry.Manager)
		}
	}
	return others
}

// addOwnedHandler maps objects of a kind to owners.
func (o *Owners[O, S]) addOwnedHandler(kind *Kind) error {
	enqueue := func(objects ...any) {
		for _, key := range ownersOf(kind, objects...) {
			o.addAfter(key, kind.Delay)
		}
	}
	_, err := kind.Informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(object any) {
			o.noteReturn(kind, object)
			enqueue(object)
		},
		UpdateFunc: func(old, new any) {
			if replaced(old, new) {
				o.noteDeparture(kind, old, true)
			}
			if wentBack(old, new) {
				for _, key := range ownersOf(kind, new) {
					o.known.reread(key)
				}
			}
			if resourceVersion(old) != resourceVersion(new) {
				enqueue(old, new) // A label may have changed.
			}
		},
		DeleteFunc: func(object any) {
			if _, missed := object.(cache.DeletedFinalStateUnknown); !missed {
				o.noteDeparture(kind, object, false)
			}
			enqueue(object)
		},
	})
	return err
}

// noteDeparture records that an object has left the cache. `certain` means that the object is gone, because a deletion
// was requested or another object has the name. Otherwise the object may only have lost the label by which the cache
// selects.
func (o *Owners[O, S]) noteDeparture(kind *Kind, object any, certain bool) {
	accessor := objectMeta(object)
	if accessor == nil {
		return
	}
	departed := departure{uid: accessor.GetUID(), certain: certain || accessor.GetDeletionTimestamp() != nil}
	if pod, ok := object.(*corev1.Pod); ok {
		departed.unbound = pod.Spec.NodeName == ""
		if podend.Of(pod).ByCluster() {
			departed.last, departed.kind = pod, kind.Name
		}
	}
	for _, key := range ownersOf(kind, object) {
		o.known.departed(key, departed)
	}
}

// noteReturn records that an object has appeared in the cache. An object that was gone can return if etcd was
// restored.
func (o *Owners[O, S]) noteReturn(kind *Kind, object any) {
	if accessor := objectMeta(object); accessor != nil {
		for _, key := range ownersOf(kind, object) {
			o.known.departed(key, departure{uid: accessor.GetUID(), back: true})
		}
	}
}

// ownersOf returns the owners of objects, each once.
func ownersOf(kind *Kind, objects ...any) []cache.ObjectName {
	var keys []cache.ObjectName
	for _, object := range objects {
		accessor := objectMeta(object)
		if accessor == nil {
			continue
		}
		for _, name := range kind.OwnersOf(accessor) {
			key := cache.NewObjectName(accessor.GetNamespace(), name)
			if name != "" && !slices.Contains(keys, key) {
				keys = append(keys, key)
			}
		}
	}
	return keys
}

func resourceVersion(object any) string {
	if accessor := objectMeta(object); accessor != nil {
		return accessor.GetResourceVersion()
	}
	return ""
}

func (o *Owners[O, S]) enqueue(object any) {
	if accessor := objectMeta(object); accessor != nil {
		o.add(cache.MetaObjectToName(accessor))
	}
}

// objectMeta returns the metadata of the object that an informer's event is about, even if the informer has missed its
// deletion.
func objectMeta(object any) metav1.Object {
	accessor, err := meta.Accessor(tombstone.Object(object))
	if err != nil {
		return nil
	}
	return accessor
}
