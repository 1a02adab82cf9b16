// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"
)

func (s *Server) create(c *call) (*revision, error) {
	if c.object.err != nil {
		return nil, c.object.err
	}
	s.lockFor(c)
	defer s.unlock()
	return s.createObject(c, c.object.revision.change())
}

// tryCreation checks the object of a creation without looking at stored objects. tryCreation returns an error if the
// object's namespace is not the request's. If the client requests strict validation, unknown fields are also an error.
func (s *Server) tryCreation(c *call) error {
	if c.object.err != nil {
		return c.object.err
	}
	object := c.object.revision.change()
	if c.values.Get("fieldValidation") == metav1.FieldValidationStrict {
		strict, err := kjson.UnmarshalStrict(c.Body, object)
		switch {
		case err != nil:
			return apierrors.NewBadRequest(err.Error())
		case len(strict) > 0:
			return apierrors.NewBadRequest(fmt.Sprintf("%s in version %q cannot be handled as a %s: %v",
				c.table.kind.Kind, c.table.kind.Version, c.table.kind.Kind, runtime.NewStrictDecodingError(strict)))
		}
	}
	return c.placeInNamespace(object)
}

// createObject stores a new object of a client.
func (s *Server) createObject(c *call, object runtime.Object) (*revision, error) {
	t := c.table
	metadata := metaOf(object)
	if err := c.placeInNamespace(object); err != nil {
		return nil, err
	}
	if metadata.ResourceVersion != "" {
		return nil, apierrors.NewBadRequest("resourceVersion should not be set on objects to be created")
	}
	if metadata.Name == "" && metadata.GenerateName != "" {
		metadata.Name = fmt.Sprintf("%s%05x", metadata.GenerateName, s.uids)
	}
	metadata.UID = s.newUID()
	metadata.CreationTimestamp = s.time()
	metadata.DeletionTimestamp, metadata.DeletionGracePeriodSeconds = nil, nil
	metadata.Generation = 0
	if t.generation {
		metadata.Generation = 1
	}
	switch object := object.(type) {
	case *customObject:
		if !t.NoStatus {
			delete(object.fields, "status")
		}
	case *corev1.Pod:
		if err := s.prepareCreatePod(object); err != nil {
			return nil, err
		}
	}
	if errs := t.validate(object); len(errs) > 0 {
		return nil, apierrors.NewInvalid(t.kind.GroupKind(), metadata.Name, errs)
	}
	if existing := t.objects[types.NamespacedName{Namespace: metadata.Namespace, Name: metadata.Name}]; existing != nil {
		err := apierrors.NewAlreadyExists(t.GroupResource(), metadata.Name)
		if existing.meta.DeletionTimestamp != nil {
			err.ErrStatus.Message = "object is being deleted: " + err.ErrStatus.Message
		}
		return nil, err
	}
	if c.values.Get("dryRun") != "" {
		return newRevision(object), nil
	}
	return s.put(t, object), nil
}

// placeInNamespace gives an object the namespace of the request.
func (c *call) placeInNamespace(object runtime.Object) error {
	metadata := metaOf(object)
	switch metadata.Namespace {
	case c.Namespace:
	case "":
		metadata.Namespace = c.Namespace
	default:
		return apierrors.NewBadRequest("the namespace of the provided object does not match the namespace sent on the request")
	}
	return nil
}

// validate checks the metadata. Nothing else is looked at.
func (r *resource) validate(object runtime.Object) field.ErrorList {
	return validation.ValidateObjectMeta(metaOf(object), !r.Cluster, validation.NameIsDNSSubdomain, field.NewPath("metadata"))
}

// bind gives a Pod its node.
func (s *Server) bind(c *call) error {
	binding, err := decodeBinding(c.contentType, c.Body)
	if err != nil {
		return err
	}
	s.lockFor(c)
	defer s.unlock()
	current, err := s.current(c)
	if err != nil {
		return err
	}
	pod := current.change().(*corev1.Pod)
	switch {
	case binding.UID != "" && binding.UID != pod.UID:
		err = preconditionFailed("UID", binding.UID, pod.UID)
	case pod.DeletionTimestamp != nil:
		err = fmt.Errorf("pod %s is being deleted, cannot be assigned to a host", pod.Name)
	case pod.Spec.NodeName != "":
		err = fmt.Errorf("pod %s is already assigned to node %q", pod.Name, pod.Spec.NodeName)
	}
	if err != nil {
		return apierrors.NewConflict(c.table.GroupResource(), pod.Name, err)
	}
	pod.Spec.NodeName = binding.Target.Name
	setPodScheduled(pod, s.time())
	s.put(c.table, pod)
	return nil
}

// preconditionFailed returns the error for a field that does not have the value of a precondition.
func preconditionFailed(name string, want, have any) error {
	return fmt.Errorf("the %s in the precondition (%s) does not match the %s in record (%s)", name, want, name, have)
}
