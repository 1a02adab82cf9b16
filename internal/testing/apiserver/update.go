// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"bytes"
	"encoding/json"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
)

// errModified is why a write fails that is based on an old state.
var errModified = errors.New("the object has been modified; please apply your changes to the latest version and try again")

func (s *Server) update(c *call) (*revision, error) {
	if c.object.err != nil {
		return nil, c.object.err
	}
	s.lockFor(c)
	defer s.unlock()
	current, err := s.current(c)
	if err != nil {
		return nil, err
	}
	object := c.object.revision.change()
	metadata := metaOf(object)
	if metadata.Name != c.Name {
		return nil, apierrors.NewBadRequest("the name of the object (" + metadata.Name + ") does not match the name on the URL (" + c.Name + ")")
	}
	if metadata.UID != "" && metadata.UID != current.meta.UID {
		return nil, apierrors.NewConflict(c.table.GroupResource(), c.Name, preconditionFailed("UID", metadata.UID, current.meta.UID))
	}
	if metadata.ResourceVersion == "" {
		if c.table.custom || c.Resource == "leases" {
			return nil, apierrors.NewInvalid(c.table.kind.GroupKind(), c.Name, field.ErrorList{
				field.Invalid(field.NewPath("metadata", "resourceVersion"), 0, "must be specified for an update")})
		}
		metadata.ResourceVersion = current.meta.ResourceVersion
	}
	return s.replace(c, current, object)
}

// replace updates an object to what the client sent, or only the part of it that this request may change.
func (s *Server) replace(c *call, current *revision, object runtime.Object) (*revision, error) {
	t := c.table
	metadata, old := metaOf(object), current.meta
	if err := c.placeInNamespace(object); err != nil {
		return nil, err
	}
	if metadata.ResourceVersion != old.ResourceVersion {
		return nil, apierrors.NewConflict(t.GroupResource(), c.Name, errModified)
	}
	switch {
	case c.Subresource == "status":
		object = t.onlyStatus(current, object)
		metadata = metaOf(object)
	case !t.NoStatus:
		setField(object, current.object, t.fieldName("status"))
	}
	metadata.CreationTimestamp = old.CreationTimestamp
	metadata.Generation = old.Generation
	if metadata.UID == "" {
		metadata.UID = old.UID
	}
	// An update can't take a deletion back.
	metadata.DeletionTimestamp = old.DeletionTimestamp
	metadata.DeletionGracePeriodSeconds = old.DeletionGracePeriodSeconds
	errs := t.validate(object)
	errs = append(errs, validation.ValidateObjectMetaUpdate(metadata, old, field.NewPath("metadata"))...)
	if len(errs) > 0 {
		return nil, apierrors.NewInvalid(t.kind.GroupKind(), c.Name, errs)
	}
	return s.store(t, current, object)
}

// store stores the new state of an object. store writes nothing if the state has not changed, and removes an object
// that is being deleted and has no finalizer left.
func (s *Server) store(t *table, current *revision, object runtime.Object) (*revision, error) {
	if err := t.prune(object); err != nil {
		return nil, err
	}
	metadata, old := metaOf(object), current.meta
	metadata.ResourceVersion = old.ResourceVersion
	if t.generation && !t.sameDesire(object, current.object) {
		metadata.Generation++
	}
	same, err := unchanged(t, current, object)
	switch {
	case err != nil:
		return nil, err
	case same:
		return current, nil
	case old.DeletionTimestamp != nil && len(metadata.Finalizers) == 0 && ptr.Deref(old.DeletionGracePeriodSeconds, 0) == 0:
		s.remove(t, current)
		return newRevision(object), nil
	}
	return s.put(t, object), nil
}

// unchanged reports whether a new state is the current one.
func unchanged(t *table, current *revision, object runtime.Object) (bool, error) {
	f := asProtobuf
	if t.custom {
		f = asJSON
	}
	before, err := current.encode(f)
	if err != nil {
		return false, err
	}
	after, err := encode(object, f)
	if err != nil {
		return false, err
	}
	return bytes.Equal(before, after), nil
}

// onlyStatus returns the current object with the status that the client sends, and for Kubernetes' own resources with
// the client's metadata, too.
func (t *table) onlyStatus(current *revision, object runtime.Object) runtime.Object {
	changed := current.change()
	setField(changed, object, t.fieldName("status"))
	metadata := metaOf(changed)
	if t.custom {
		metadata.ManagedFields = metaOf(object).ManagedFields
	} else {
		*metadata = *metaOf(object)
		metadata.OwnerReferences = current.meta.OwnerReferences
	}
	return changed
}

// fieldName returns the name of a field in the form in which objects are stored.
func (r *resource) fieldName(name string) string {
	if r.custom {
		return name
	}
	return map[string]string{"status": "Status", "spec": "Spec"}[name]
}

// jsonOf returns the current state as JSON, for patches.
func jsonOf(r *revision) (json.RawMessage, error) {
	return r.encode(asJSON)
}
