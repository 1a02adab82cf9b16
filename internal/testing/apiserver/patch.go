// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
)

// patch changes an object by one of the three kinds of patches.
func (s *Server) patch(c *call) (*revision, error) {
	s.lockFor(c)
	defer s.unlock()
	current, err := s.current(c)
	if err != nil {
		return nil, err
	}
	before, err := jsonOf(current)
	if err != nil {
		return nil, err
	}
	after, err := c.patched(before)
	if err != nil {
		return nil, err
	}
	object, err := c.table.decode(runtime.ContentTypeJSON, after)
	if err != nil {
		return nil, err
	}
	return s.replace(c, current, object)
}

// patched returns an object after the patch.
func (c *call) patched(before []byte) ([]byte, error) {
	switch kind := types.PatchType(mediaType(c.contentType)); kind {
	case types.JSONPatchType:
		patch, err := jsonpatch.DecodePatch(c.Body)
		if err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
		after, err := patch.Apply(before)
		if err != nil {
			return nil, apierrors.NewGenericServerResponse(http.StatusUnprocessableEntity, "", schema.GroupResource{}, "", err.Error(), 0, false)
		}
		return after, nil
	case types.MergePatchType:
		after, err := jsonpatch.MergePatch(before, c.Body)
		if err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
		return after, nil
	case types.StrategicMergePatchType:
		if !c.table.custom {
			after, err := strategicpatch.StrategicMergePatch(before, c.Body, c.table.newObject())
			if err != nil {
				return nil, apierrors.NewBadRequest(err.Error())
			}
			return after, nil
		}
		fallthrough
	default:
		return nil, apierrors.NewGenericServerResponse(http.StatusUnsupportedMediaType, "", c.table.GroupResource(), c.Name,
			fmt.Sprintf("the body of the request was in an unknown format: %s", kind), 0, false)
	}
}

// apply carries out a server-side apply. The field managers that applied a field own it; so do clients that wrote it
// otherwise after the object's first apply.
func (s *Server) apply(c *call) (_ *revision, created bool, err error) {
	manager, force := c.values.Get("fieldManager"), c.force()
	if manager == "" {
		return nil, false, apierrors.NewInvalid(schema.GroupKind{Group: metav1.GroupName, Kind: "PatchOptions"}, "", nil)
	}
	var fields map[string]any
	body, err := utilyaml.ToJSON(c.Body) // which is JSON already, mostly
	if err == nil {
		err = utiljson.Unmarshal(body, &fields)
	}
	if err != nil {
		return nil, false, apierrors.NewBadRequest(err.Error())
	}
	applied := &unstructured.Unstructured{Object: fields}
	fieldManager, err := c.table.newFieldManager(c.Subresource)
	if err != nil {
		return nil, false, err
	}
	s.lockFor(c)
	defer s.unlock()
	current := c.table.objects[c.key()]
	if current == nil {
		switch {
		case c.Subresource != "":
			return nil, false, apierrors.NewNotFound(c.table.GroupResource(), c.Name)
		case applied.GetUID() != "":
			return nil, false, apierrors.NewConflict(c.table.GroupResource(), c.Name,
				fmt.Errorf("uid mismatch: the provided object specified uid %s, and no existing object was found", applied.GetUID()))
		}
	}
	live := &unstructured.Unstructured{Object: map[string]any{}}
	live.SetGroupVersionKind(c.table.kind)
	if current != nil {
		data, err := jsonOf(current)
		if err != nil {
			return nil, false, err
		}
		if err := utiljson.Unmarshal(data, &live.Object); err != nil {
			return nil, false, err
		}
	}
	merged, err := fieldManager.Apply(live, applied, manager, force)
	if err != nil {
		if asStatus(err) != nil {
			return nil, false, err
		}
		return nil, false, apierrors.NewBadRequest(err.Error())
	}
	data, err := json.Marshal(merged)
	if err != nil {
		return nil, false, err
	}
	object, err := c.table.decode(runtime.ContentTypeJSON, data)
	if err != nil {
		return nil, false, err
	}
	if current == nil {
		r, err := s.createObject(c, object)
		return r, err == nil, err
	}
	r, err := s.replace(c, current, object)
	return r, false, err
}

func (c *call) force() bool {
	force, _ := strconv.ParseBool(c.values.Get("force"))
	return force
}

// newFieldManager returns the manager that merges server-side applies. The manager has no schema, so each list is
// merged as a whole.
func (t *table) newFieldManager(subresource string) (*managedfields.FieldManager, error) {
	return managedfields.NewDefaultCRDFieldManager(managedfields.NewDeducedTypeConverter(), asIs{}, asIs{}, asIs{},
		t.kind, t.GroupVersion(), subresource, nil)
}

// asIs converts objects to the only version that there is, and has no defaults.
type asIs struct{}

func (asIs) Convert(in, out, _ any) error {
	return fmt.Errorf("there is no conversion of %T to %T", in, out)
}

func (asIs) ConvertToVersion(in runtime.Object, _ runtime.GroupVersioner) (runtime.Object, error) {
	return in, nil
}

func (asIs) ConvertFieldLabel(_ schema.GroupVersionKind, label, value string) (string, string, error) {
	return label, value, nil
}

func (asIs) Default(runtime.Object) {}

func (asIs) New(kind schema.GroupVersionKind) (runtime.Object, error) {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(kind)
	return object, nil
}
