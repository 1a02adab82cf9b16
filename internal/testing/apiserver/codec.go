// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"mime"
	"net/http"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/scheme"
)

// format is how objects are sent.
type format int

const (
	asJSON format = iota
	asProtobuf
	// The last two are of metadata only.
	asMetadataJSON
	asMetadataProtobuf
	formats
)

func (f format) metadata() bool { return f == asMetadataJSON || f == asMetadataProtobuf }
func (f format) binary() bool   { return f == asProtobuf || f == asMetadataProtobuf }

func (f format) contentType() string {
	if f.binary() {
		return runtime.ContentTypeProtobuf
	}
	return runtime.ContentTypeJSON
}

// negotiate chooses the first format that a client accepts.
func negotiate(accept string, r *resource) (format, error) {
	for clause := range strings.SplitSeq(accept, ",") {
		mediaType, params, err := mime.ParseMediaType(strings.TrimSpace(clause))
		if err != nil {
			continue
		}
		var f format
		switch mediaType {
		case runtime.ContentTypeJSON, "*/*", "application/*":
			f = asJSON
		case runtime.ContentTypeProtobuf:
			f = asProtobuf
		default:
			continue
		}
		switch params["as"] {
		case "":
			if f == asProtobuf && r.custom {
				continue // Custom resources have JSON only.
			}
			return f, nil
		case "PartialObjectMetadata", "PartialObjectMetadataList":
			return f + asMetadataJSON, nil
		}
	}
	if accept == "" {
		return asJSON, nil
	}
	return 0, apierrors.NewGenericServerResponse(http.StatusNotAcceptable, "", schema.GroupResource{}, "",
		fmt.Sprintf("only the following media types are accepted: %s, %s", runtime.ContentTypeJSON, runtime.ContentTypeProtobuf), 0, false)
}

var (
	protobufSerializer = protobuf.NewSerializer(scheme.Scheme, scheme.Scheme)
	partialKind        = metav1.SchemeGroupVersion.WithKind("PartialObjectMetadata")
	partialListKind    = metav1.SchemeGroupVersion.WithKind("PartialObjectMetadataList")
)

// encode returns the object as it is sent.
func (r *revision) encode(f format) ([]byte, error) {
	if data := r.encoded[f].Load(); data != nil {
		return *data, nil
	}
	object := r.object
	if f.metadata() {
		object = partial(r.meta)
	}
	data, err := encode(object, f)
	if err != nil {
		return nil, err
	}
	r.encoded[f].Store(&data)
	return data, nil
}

func encode(object runtime.Object, f format) ([]byte, error) {
	if custom, ok := object.(*customObject); ok && !f.binary() {
		return custom.MarshalJSON() // json.Marshal would check all of it once more
	}
	if !f.binary() {
		return json.Marshal(object)
	}
	var b bytes.Buffer
	err := protobufSerializer.Encode(object, &b)
	return b.Bytes(), err
}

func partial(metadata *metav1.ObjectMeta) *metav1.PartialObjectMetadata {
	object := &metav1.PartialObjectMetadata{ObjectMeta: *metadata}
	object.SetGroupVersionKind(partialKind)
	return object
}

// encodeList returns the answer to a list.
func encodeList(r *resource, version uint64, items []*revision, f format) ([]byte, error) {
	listMeta := metav1.ListMeta{ResourceVersion: formatVersion(version)}
	if f == asProtobuf {
		list, err := scheme.Scheme.New(r.GroupVersion().WithKind(r.Kind + "List"))
		if err != nil {
			return nil, err
		}
		list.GetObjectKind().SetGroupVersionKind(r.GroupVersion().WithKind(r.Kind + "List"))
		objects := make([]runtime.Object, len(items))
		for i, item := range items {
			objects[i] = item.object
		}
		if err := meta.SetList(list, objects); err != nil {
			return nil, err
		}
		accessor, err := meta.ListAccessor(list)
		if err != nil {
			return nil, err
		}
		accessor.SetResourceVersion(listMeta.ResourceVersion)
		return encode(list, f)
	}
	if f == asMetadataProtobuf {
		list := &metav1.PartialObjectMetadataList{ListMeta: listMeta}
		list.SetGroupVersionKind(partialListKind)
		for _, item := range items {
			list.Items = append(list.Items, *partial(item.meta))
		}
		return encode(list, f)
	}
	kind := r.GroupVersion().WithKind(r.Kind + "List")
	if f.metadata() {
		kind = partialListKind
	}
	list := struct {
		metav1.TypeMeta `json:",inline"`
		metav1.ListMeta `json:"metadata"`
		Items           []json.RawMessage `json:"items"`
	}{ListMeta: listMeta, Items: make([]json.RawMessage, len(items))}
	list.APIVersion, list.Kind = kind.ToAPIVersionAndKind()
	for i, item := range items {
		data, err := item.encode(f)
		if err != nil {
			return nil, err
		}
		list.Items[i] = data
	}
	return json.Marshal(list)
}

// encodeEvent returns an event of a watch, as a frame of its stream.
func encodeEvent(kind watch.EventType, object []byte, f format) ([]byte, error) {
	if !f.binary() {
		frame := make([]byte, 0, len(object)+40)
		frame = append(frame, `{"type":"`...)
		frame = append(frame, kind...)
		frame = append(frame, `","object":`...)
		frame = append(frame, object...)
		return append(frame, "}\n"...), nil
	}
	event := metav1.WatchEvent{Type: string(kind), Object: runtime.RawExtension{Raw: object}}
	data, err := event.Marshal()
	if err != nil {
		return nil, err
	}
	return append(binary.BigEndian.AppendUint32(make([]byte, 0, len(data)+4), uint32(len(data))), data...), nil
}

// decode reads an object that a client sent.
func (r *resource) decode(contentType string, data []byte) (runtime.Object, error) {
	object := r.newObject()
	var err error
	if mediaType(contentType) == runtime.ContentTypeProtobuf {
		if r.custom {
			return nil, apierrors.NewGenericServerResponse(http.StatusUnsupportedMediaType, "", r.GroupResource(), "",
				"the body of the request was in an unknown format - accepted media types include: application/json", 0, false)
		}
		_, _, err = protobufSerializer.Decode(data, &r.kind, object)
	} else {
		err = utiljson.Unmarshal(data, object)
	}
	if err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("the object provided does not decode as a %s: %v", r.Kind, err))
	}
	if kind := object.GetObjectKind().GroupVersionKind(); !kind.Empty() && kind != r.kind {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("the kind of the object (%s) does not match the expected one (%s)", kind, r.kind))
	}
	r.stamp(object)
	return object, nil
}

// decodeBinding reads the body of a binding.
func decodeBinding(contentType string, data []byte) (*corev1.Binding, error) {
	binding := &corev1.Binding{}
	var err error
	if mediaType(contentType) == runtime.ContentTypeProtobuf {
		_, _, err = protobufSerializer.Decode(data, nil, binding)
	} else {
		err = utiljson.Unmarshal(data, binding)
	}
	if err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("the object provided does not decode as a Binding: %v", err))
	}
	return binding, nil
}

// protobufPrefix begins every message that is not part of another.
var protobufPrefix = []byte("k8s\x00")

// decodeDeleteOptions reads the body of a deletion, which may be empty.
func decodeDeleteOptions(contentType string, data []byte) (*metav1.DeleteOptions, error) {
	options := &metav1.DeleteOptions{}
	if len(data) == 0 {
		return options, nil
	}
	var err error
	if mediaType(contentType) == runtime.ContentTypeProtobuf {
		var unknown runtime.Unknown
		if err = unknown.Unmarshal(bytes.TrimPrefix(data, protobufPrefix)); err == nil {
			err = options.Unmarshal(unknown.Raw)
		}
	} else {
		err = utiljson.Unmarshal(data, options)
	}
	if err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("the options of a deletion do not decode: %v", err))
	}
	return options, nil
}

func mediaType(contentType string) string {
	mediaType, _, _ := strings.Cut(contentType, ";")
	return strings.TrimSpace(mediaType)
}
