// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	"github.com/lockstep-k8s/lockstep/controller/lifecycle"
)

// frameworkEntry is a Framework as the cache holds it. One that does not decode
// has metadata only and says why, so that it can't keep others from being listed
// and watched.
type frameworkEntry struct {
	// Framework is without status.
	frameworkv1.Framework
	// storedStatus is the status as the API server sent it. It is decoded only
	// when the controller sees the Framework for the first time: from then on it
	// knows the status better.
	storedStatus json.RawMessage
	// decodeError is why the spec is not there: it does not decode, or makes no
	// sense.
	decodeError error
}

// DeepCopyObject makes the entry an object that informers can hold.
func (e *frameworkEntry) DeepCopyObject() runtime.Object {
	copied := *e
	e.Framework.DeepCopyInto(&copied.Framework)
	return &copied
}

// frameworkEntryList is what the list of Frameworks is decoded to.
type frameworkEntryList struct {
	metav1.TypeMeta
	metav1.ListMeta
	Items []runtime.Object
}

// DeepCopyObject makes the list an object.
func (l *frameworkEntryList) DeepCopyObject() runtime.Object {
	copied := *l
	copied.Items = make([]runtime.Object, len(l.Items))
	for i, item := range l.Items {
		copied.Items[i] = item.DeepCopyObject()
	}
	return &copied
}

// newFrameworkListWatch lists and watches the Frameworks of all namespaces,
// decoding each by itself.
func newFrameworkListWatch(client rest.Interface) cache.ListerWatcher {
	request := func(options metav1.ListOptions) *rest.Request {
		return client.Get().Resource(frameworkv1.FrameworkPlural).
			SetHeader("Accept", runtime.ContentTypeJSON).
			VersionedParams(&options, metav1.ParameterCodec)
	}
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			wantCurrent(&options)
			data, err := request(options).Do(ctx).Raw()
			if err != nil {
				return nil, err
			}
			return decodeFrameworkList(data)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.Watch = true
			stream, err := request(options).Stream(ctx)
			if err != nil {
				return nil, err
			}
			return watch.NewStreamWatcherWithLogger(klog.FromContext(ctx),
				&frameworkWatchDecoder{stream: stream, json: json.NewDecoder(stream)},
				apierrors.NewClientErrorReporter(http.StatusInternalServerError, http.MethodGet, "ClientWatchDecoding")), nil
		},
	}
}

func decodeFrameworkList(data []byte) (*frameworkEntryList, error) {
	var raw struct {
		metav1.TypeMeta `json:",inline"`
		metav1.ListMeta `json:"metadata"`
		Items           []json.RawMessage `json:"items"`
	}
	if err := utiljson.Unmarshal(data, &raw); err != nil {
		return nil, fmt.Errorf("decoding the list of Frameworks: %w", err)
	}
	list := &frameworkEntryList{TypeMeta: raw.TypeMeta, ListMeta: raw.ListMeta}
	for _, item := range raw.Items {
		entry, err := decodeFramework(item)
		if err != nil {
			return nil, err
		}
		list.Items = append(list.Items, entry)
	}
	return list, nil
}

// decodeFramework decodes one Framework. An error means that not even its
// metadata is readable, which the API server does not let happen.
func decodeFramework(data []byte) (*frameworkEntry, error) {
	var raw struct {
		metav1.TypeMeta   `json:",inline"`
		metav1.ObjectMeta `json:"metadata"`
		Spec              json.RawMessage `json:"spec"`
		Status            json.RawMessage `json:"status"`
	}
	if err := utiljson.Unmarshal(data, &raw); err != nil {
		return nil, fmt.Errorf("decoding a Framework's metadata: %w", err)
	}
	raw.ManagedFields = nil
	entry := &frameworkEntry{storedStatus: raw.Status}
	entry.TypeMeta, entry.ObjectMeta = raw.TypeMeta, raw.ObjectMeta
	if len(raw.Spec) > 0 {
		if err := utiljson.Unmarshal(raw.Spec, &entry.Spec); err != nil {
			entry.decodeError = fmt.Errorf("spec does not decode: %w", err)
		} else {
			entry.decodeError = lifecycle.CheckSpec(&entry.Spec)
		}
		if entry.decodeError != nil {
			entry.Spec = frameworkv1.FrameworkSpec{}
		}
	}
	return entry, nil
}

// frameworkWatchDecoder decodes the events of a watch.
type frameworkWatchDecoder struct {
	stream io.ReadCloser
	json   *json.Decoder
}

// Decode returns the next event.
func (d *frameworkWatchDecoder) Decode() (watch.EventType, runtime.Object, error) {
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
	entry, err := decodeFramework(event.Object)
	return event.Type, entry, err
}

// Close ends the watch.
func (d *frameworkWatchDecoder) Close() {
	_ = d.stream.Close() // Nothing is lost: it was read only.
}
