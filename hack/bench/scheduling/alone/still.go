// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/hack/bench/scheduling/objects"
)

// still is an API server on which nothing ever changes: it has the objects of a scene,
// accepts what is written, and forgets it. It is a transport, so that no socket and no
// other process takes a part in what is measured.
type still struct {
	scene objects.Scene
	// nodes and pods are the lists of them, encoded.
	nodes, pods []byte
	// kinds are those of Kubernetes' own resources, by their path.
	kinds map[string]schema.GroupVersionKind

	tell sync.Once
	// told is sent when a PodGroup was first told that there is no room for it.
	told chan time.Time
}

func newStill(scene objects.Scene) (*still, error) {
	s := &still{scene: scene, kinds: map[string]schema.GroupVersionKind{}, told: make(chan time.Time, 1)}
	for kind := range scheme.Scheme.AllKnownTypes() {
		resource, _ := meta.UnsafeGuessKindToResource(kind)
		s.kinds[pathOf(resource)] = kind
	}
	nodes, pods := &corev1.NodeList{}, &corev1.PodList{}
	for i := range scene.Nodes {
		nodes.Items = append(nodes.Items, *stored(scene.Node(i), i))
	}
	for i := range scene.Work.Total() {
		pod := stored(scene.Work.Pod(i), i)
		pod.Status.Phase = corev1.PodPending
		if i < scene.Running {
			pod.Spec.NodeName, pod.Status.Phase = objects.NodeName(i%scene.Nodes), corev1.PodRunning
		}
		pods.Items = append(pods.Items, *pod)
	}
	var err error
	if s.nodes, err = encoded("NodeList", nodes); err != nil {
		return nil, err
	}
	s.pods, err = encoded("PodList", pods)
	return s, err
}

func pathOf(r schema.GroupVersionResource) string {
	if r.Group == "" {
		return "/api/" + r.Version + "/" + r.Resource
	}
	return "/apis/" + r.Group + "/" + r.Version + "/" + r.Resource
}

var (
	groupVersion = schedulingv1alpha1.SchemeGroupVersion
	podGroups    = pathOf(groupVersion.WithResource(schedulingv1alpha1.PodGroupPlural))
)

// RoundTrip implements http.RoundTripper.
func (s *still) RoundTrip(r *http.Request) (*http.Response, error) {
	query := r.URL.Query()
	switch {
	case r.Method != http.MethodGet:
		return s.write(r)
	case query.Get("sendInitialEvents") == "true":
		return answer(r, http.StatusUnprocessableEntity, &metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
			Status: metav1.StatusFailure, Reason: metav1.StatusReasonInvalid, Code: http.StatusUnprocessableEntity})
	case query.Get("watch") != "":
		return response(r, http.StatusOK, runtime.ContentTypeJSON, silence{r}), nil
	case r.URL.Path == "/apis/"+groupVersion.String():
		return answer(r, http.StatusOK, &metav1.APIResourceList{GroupVersion: groupVersion.String(),
			APIResources: []metav1.APIResource{{Name: schedulingv1alpha1.PodGroupPlural}}})
	case r.URL.Path == podGroups:
		list := &schedulingv1alpha1.PodGroupList{TypeMeta: metav1.TypeMeta{Kind: "PodGroupList", APIVersion: groupVersion.String()}}
		for size := range s.scene.Work.Sizes() {
			i := len(list.Items)
			list.Items = append(list.Items, *stored(s.scene.Work.Group(i, size), i))
		}
		list.ResourceVersion = "1"
		return answer(r, http.StatusOK, list)
	case r.URL.Path == "/api/v1/nodes":
		return response(r, http.StatusOK, runtime.ContentTypeProtobuf, io.NopCloser(bytes.NewReader(s.nodes))), nil
	case r.URL.Path == "/api/v1/pods":
		return response(r, http.StatusOK, runtime.ContentTypeProtobuf, io.NopCloser(bytes.NewReader(s.pods))), nil
	}
	if kind, ok := s.kinds[r.URL.Path]; ok {
		list := &metav1.List{TypeMeta: metav1.TypeMeta{Kind: kind.Kind + "List", APIVersion: kind.GroupVersion().String()}}
		list.ResourceVersion = "1"
		return answer(r, http.StatusOK, list)
	}
	return answer(r, http.StatusNotFound, &metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status: metav1.StatusFailure, Reason: metav1.StatusReasonNotFound, Code: http.StatusNotFound})
}

// stored is an object as an API server has it.
func stored[T metav1.Object](object T, i int) T {
	object.SetUID(types.UID(fmt.Sprintf("00000000-0000-4000-8000-%012x", i)))
	object.SetResourceVersion("1")
	object.SetGeneration(1)
	object.SetCreationTimestamp(metav1.Unix(1_700_000_000, 0))
	return object
}

// encoded is a list in the form in which an API server sends it to schedulers.
func encoded(kind string, list runtime.Object) ([]byte, error) {
	list.GetObjectKind().SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(kind))
	accessor, err := meta.ListAccessor(list)
	if err != nil {
		return nil, err
	}
	accessor.SetResourceVersion("1")
	var b bytes.Buffer
	if err := protobuf.NewSerializer(scheme.Scheme, scheme.Scheme).Encode(list, &b); err != nil {
		return nil, fmt.Errorf("encoding a %s: %w", kind, err)
	}
	return b.Bytes(), nil
}

// write accepts what is written of conditions.
func (s *still) write(r *http.Request) (*http.Response, error) {
	if !strings.HasSuffix(r.URL.Path, "/status") {
		return nil, fmt.Errorf("nobody was to write to %s", r.URL)
	}
	data, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	if group := (&schedulingv1alpha1.PodGroup{}); strings.HasPrefix(r.URL.Path, "/apis/"+groupVersion.String()+"/") {
		if err := json.Unmarshal(data, group); err != nil {
			return nil, fmt.Errorf("decoding a status: %w", err)
		}
		for _, c := range group.Status.Conditions {
			if c.Reason == schedulingv1alpha1.ReasonNotEnoughResources {
				s.tell.Do(func() { s.told <- time.Now() })
			}
		}
		return answer(r, http.StatusOK, group)
	}
	return answer(r, http.StatusOK, &corev1.Pod{TypeMeta: metav1.TypeMeta{Kind: "Pod", APIVersion: "v1"}})
}

func answer(r *http.Request, code int, body any) (*http.Response, error) {
	data, err := json.Marshal(body)
	if err != nil {
		return nil, fmt.Errorf("encoding an answer: %w", err)
	}
	return response(r, code, runtime.ContentTypeJSON, io.NopCloser(bytes.NewReader(data))), nil
}

func response(r *http.Request, code int, contentType string, body io.ReadCloser) *http.Response {
	return &http.Response{StatusCode: code, Status: http.StatusText(code), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {contentType}}, ContentLength: -1, Body: body, Request: r}
}

// silence is the body of the answer to a watch: nothing, as long as somebody listens.
type silence struct{ request *http.Request }

func (s silence) Read([]byte) (int, error) {
	<-s.request.Context().Done()
	return 0, s.request.Context().Err()
}

func (silence) Close() error { return nil }
