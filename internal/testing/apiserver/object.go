// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// customObject is an object of a custom resource: nothing but its metadata is
// decoded.
type customObject struct {
	metav1.TypeMeta
	metav1.ObjectMeta
	// fields are all others, by name. The values are never changed in place.
	fields map[string]json.RawMessage
}

// DeepCopyObject makes it a runtime.Object.
func (o *customObject) DeepCopyObject() runtime.Object {
	copied := &customObject{TypeMeta: o.TypeMeta, fields: maps.Clone(o.fields)}
	o.ObjectMeta.DeepCopyInto(&copied.ObjectMeta)
	return copied
}

// MarshalJSON implements json.Marshaler.
func (o *customObject) MarshalJSON() ([]byte, error) {
	metadata, err := json.Marshal(&o.ObjectMeta)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, `{"apiVersion":%s,"kind":%s,"metadata":%s`, strconv.Quote(o.APIVersion), strconv.Quote(o.Kind), metadata)
	for _, name := range slices.Sorted(maps.Keys(o.fields)) {
		fmt.Fprintf(&b, `,%s:%s`, strconv.Quote(name), o.fields[name])
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// UnmarshalJSON implements json.Unmarshaler.
func (o *customObject) UnmarshalJSON(data []byte) error {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(data, &fields); err != nil {
		return err
	}
	for name, into := range map[string]any{"apiVersion": &o.APIVersion, "kind": &o.Kind, "metadata": &o.ObjectMeta} {
		value, ok := fields[name]
		if !ok {
			continue
		}
		if err := utiljson.Unmarshal(value, into); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		delete(fields, name)
	}
	for name, value := range fields {
		if string(value) == "null" {
			delete(fields, name)
		}
	}
	o.fields = fields
	return nil
}

// setField gives a field the value that it has in another object.
func setField(object, from runtime.Object, name string) {
	if custom, ok := object.(*customObject); ok {
		if value, ok := from.(*customObject).fields[name]; ok {
			if custom.fields == nil {
				custom.fields = map[string]json.RawMessage{}
			}
			custom.fields[name] = value
		} else {
			delete(custom.fields, name)
		}
		return
	}
	to, value := reflect.ValueOf(object).Elem().FieldByName(name), reflect.ValueOf(from).Elem().FieldByName(name)
	if to.IsValid() {
		to.Set(value)
	}
}

// sameDesire reports whether two objects are equal apart from metadata and, if the resource has the subresource status,
// apart from status.
func (r *resource) sameDesire(a, b runtime.Object) bool {
	custom, ok := a.(*customObject)
	if !ok {
		return bytes.Equal(marshalSpec(a), marshalSpec(b))
	}
	desired := func(o *customObject) map[string]json.RawMessage {
		fields := maps.Clone(o.fields)
		if !r.NoStatus {
			delete(fields, "status")
		}
		return fields
	}
	return maps.EqualFunc(desired(custom), desired(b.(*customObject)), sameJSON)
}

// marshalSpec returns the spec of an object of Kubernetes, nil if it has none.
func marshalSpec(object runtime.Object) []byte {
	spec := reflect.ValueOf(object).Elem().FieldByName("Spec")
	if !spec.IsValid() {
		return nil
	}
	data, err := spec.Addr().Interface().(interface{ Marshal() ([]byte, error) }).Marshal()
	if err != nil {
		panic(err) // Types of Kubernetes do.
	}
	return data
}

// sameJSON reports whether two values mean the same.
func sameJSON(a, b json.RawMessage) bool {
	if bytes.Equal(a, b) {
		return true
	}
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && reflect.DeepEqual(x, y)
}

// revision is an object's state between two writes. It is immutable.
type revision struct {
	object runtime.Object
	meta   *metav1.ObjectMeta
	// encoded has what was already sent, by format.
	encoded [formats]atomic.Pointer[[]byte]
	// typed is the object in the Go type for which a test asked last; see the function typed.
	typed atomic.Pointer[runtime.Object]
}

func newRevision(object runtime.Object) *revision {
	return &revision{object: object, meta: metaOf(object)}
}

// change returns a copy of the object, to be changed.
func (r *revision) change() runtime.Object {
	return r.object.DeepCopyObject()
}

// at returns a copy of the revision with another resource version. A deletion event carries an object's last state in
// this way.
func (r *revision) at(version uint64) *revision {
	object := r.change()
	metaOf(object).ResourceVersion = formatVersion(version)
	return newRevision(object)
}

func formatVersion(version uint64) string {
	return strconv.FormatUint(version, 10)
}
