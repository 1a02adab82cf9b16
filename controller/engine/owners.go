// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/lockstep-k8s/lockstep/internal/informing"
)

// entry is an owner in the cache. If the owner can't be decoded, the entry has only its metadata and the error, so that
// this owner does not prevent others from being listed and watched.
type entry[O Owner] struct {
	// owner is without status.
	owner O
	// storedStatus is the status as the API server has sent it. The status is decoded only when the controller sees the
	// owner for the first time, or again after the controller has forgotten the owner. After that, the memory has a
	// newer status.
	storedStatus storedStatus
	// decodeError is why there is no spec: the owner can't be decoded, or is invalid.
	decodeError error
}

// GetObjectMeta has informers find the metadata.
func (e *entry[O]) GetObjectMeta() metav1.Object { return e.owner }

// GetObjectKind returns the owner's.
func (e *entry[O]) GetObjectKind() schema.ObjectKind { return e.owner.GetObjectKind() }

// DeepCopyObject makes the entry an object that informers can hold.
func (e *entry[O]) DeepCopyObject() runtime.Object {
	copied := *e
	copied.owner = e.owner.DeepCopyObject().(O)
	return &copied
}

// key returns the name of the owner.
func (e *entry[O]) key() cache.ObjectName { return cache.MetaObjectToName(e.owner) }

// entryList is what the list of owners is decoded to.
type entryList struct {
	metav1.TypeMeta
	metav1.ListMeta
	Items []runtime.Object
}

// DeepCopyObject makes the list an object.
func (l *entryList) DeepCopyObject() runtime.Object {
	copied := *l
	copied.Items = make([]runtime.Object, len(l.Items))
	for i, item := range l.Items {
		copied.Items[i] = item.DeepCopyObject()
	}
	return &copied
}

// decoder decodes owners, each by itself.
type decoder[O Owner] struct {
	kind string
	// owner is the core's.
	owner func(kind metav1.TypeMeta, metadata metav1.ObjectMeta, spec []byte) (O, error)
}

// newListWatch returns a ListerWatcher for the owners in a namespace, or in all namespaces if namespace is empty.
func newListWatch[O Owner](resource Resource, decoder decoder[O], namespace string) cache.ListerWatcher {
	request := func(options metav1.ListOptions) *rest.Request {
		return resource.API.Get().Namespace(namespace).Resource(resource.Plural).
			SetHeader("Accept", runtime.ContentTypeJSON).
			VersionedParams(&options, metav1.ParameterCodec)
	}
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			informing.WantCurrent(&options)
			stream, err := request(options).Stream(ctx)
			if err != nil {
				return nil, err
			}
			defer stream.Close()
			return decoder.list(stream)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.Watch = true
			stream, err := request(options).Stream(ctx)
			if err != nil {
				return nil, err
			}
			return watch.NewStreamWatcherWithLogger(klog.FromContext(ctx), decoder.watch(stream),
				apierrors.NewClientErrorReporter(http.StatusInternalServerError, http.MethodGet, "ClientWatchDecoding")), nil
		},
	}
}

// list decodes a list while the list arrives, and reduces each owner at once, so that a whole page of large owners is
// never in memory.
func (d decoder[O]) list(stream io.Reader) (*entryList, error) {
	list := &entryList{}
	object := json.NewDecoder(stream)
	if err := eachField(object, func(name string) error {
		switch name {
		case "kind":
			return object.Decode(&list.Kind)
		case "apiVersion":
			return object.Decode(&list.APIVersion)
		case "metadata":
			return object.Decode(&list.ListMeta)
		case "items":
			return d.items(object, list)
		default:
			return object.Decode(new(json.RawMessage))
		}
	}); err != nil {
		return nil, fmt.Errorf("decoding a list of the kind %s: %w", d.kind, err)
	}
	return list, nil
}

// items decodes the items of a list. There may be null in place of the items.
func (d decoder[O]) items(object *json.Decoder, list *entryList) error {
	if begin, err := object.Token(); err != nil || begin == nil {
		return err
	} else if begin != json.Delim('[') {
		return fmt.Errorf("the items are %v", begin)
	}
	for object.More() {
		var item json.RawMessage
		if err := object.Decode(&item); err != nil {
			return err
		}
		entry, err := d.decode(item)
		if err != nil {
			return err
		}
		entry.storedStatus = entry.storedStatus.packed()
		list.Items = append(list.Items, entry)
	}
	_, err := object.Token()
	return err
}

// eachField calls `read` for each field of the JSON object that comes next in the decoder. `read` has to decode the
// field's value.
func eachField(object *json.Decoder, read func(name string) error) error {
	if begin, err := object.Token(); err != nil {
		return err
	} else if begin != json.Delim('{') {
		return fmt.Errorf("there is %v in place of an object", begin)
	}
	for object.More() {
		name, err := object.Token()
		if err != nil {
			return err
		}
		if err := read(name.(string)); err != nil {
			return err
		}
	}
	_, err := object.Token()
	return err
}

// decode decodes one owner. decode returns an error only if not even the metadata can be decoded, which no API server
// sends.
func (d decoder[O]) decode(data []byte) (*entry[O], error) {
	var raw struct {
		metav1.TypeMeta   `json:",inline"`
		metav1.ObjectMeta `json:"metadata"`
		Spec              json.RawMessage `json:"spec"`
		Status            json.RawMessage `json:"status"`
	}
	if err := utiljson.Unmarshal(data, &raw); err != nil {
		return nil, fmt.Errorf("decoding the metadata of a %s: %w", d.kind, err)
	}
	owner, err := d.owner(raw.TypeMeta, raw.ObjectMeta, raw.Spec)
	return &entry[O]{owner: owner, storedStatus: storedStatus{data: raw.Status}, decodeError: err}, nil
}

func (d decoder[O]) watch(stream io.ReadCloser) watch.Decoder {
	return &watchDecoder[O]{decoder: d, stream: stream, json: json.NewDecoder(stream)}
}

// watchDecoder decodes the events of a watch.
type watchDecoder[O Owner] struct {
	decoder[O]
	stream io.ReadCloser
	json   *json.Decoder
}

// Decode returns the next event.
func (d *watchDecoder[O]) Decode() (watch.EventType, runtime.Object, error) {
	var event struct {
		Type   watch.EventType `json:"type"`
		Object json.RawMessage `json:"object"`
	}
	if err := d.json.Decode(&event); err != nil {
		return "", nil, err
	}
	if event.Type == watch.Error {
		status := &metav1.Status{}
		if err := utiljson.Unmarshal(event.Object, status); err != nil {
			return "", nil, fmt.Errorf("decoding the error of a watch: %w", err)
		}
		return event.Type, status, nil
	}
	entry, err := d.decode(event.Object)
	if err != nil {
		return "", nil, err
	}
	entry.storedStatus = entry.storedStatus.packed()
	return event.Type, entry, nil
}

// Close ends the watch.
func (d *watchDecoder[O]) Close() {
	_ = d.stream.Close() // Nothing is lost: it was read only.
}
