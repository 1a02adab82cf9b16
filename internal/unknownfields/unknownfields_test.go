// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package unknownfields_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/lockstep-k8s/lockstep/internal/testing/apiserver"
	"github.com/lockstep-k8s/lockstep/internal/unknownfields"
)

func TestTheAPIServerNamesTheFieldsOfATemplateThatItDoesNotKnow(t *testing.T) {
	server := apiserver.New(t)
	kube, err := kubernetes.NewForConfig(server.Config())
	if err != nil {
		t.Fatal(err)
	}
	for template, want := range map[string][]string{
		`{"spec":{"containers":[{"name":"a","image":"b"}]}}`:                                                      nil,
		`{"metadata":null,"spec":{"containers":[{"name":"a"}]}}`:                                                  nil,
		`{"metadata":{"namespace":"ns","labels":{"a":"b"}},"spec":{}}`:                                            nil,
		`{"spec":{"containers":[{"name":"a","resurces":{}}]}}`:                                                    {"spec.containers[0].resurces"},
		`{"metadata":{"lables":{}},"specs":{},"spec":{"initContainers":[{"name":"a"},{"name":"b","Image":"c"}]}}`: {"metadata.lables", "spec.initContainers[1].Image", "specs"},
		`{"spec":{"the namespace of the provided object does not match":1}}`:                                      {"spec.the namespace of the provided object does not match"},
		`{"spec":{"a \", unknown field \"b":1}}`:                                                                  {`spec.a ", unknown field "b`},
	} {
		got, err := unknownfields.Of(t.Context(), kube.CoreV1().RESTClient(), "ns", []byte(template))
		if err != nil {
			t.Errorf("%s: %v", template, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: unexpected fields (-want +got):\n%s", template, diff)
		}
	}
	if pods := apiserver.All[corev1.Pod](server, "ns"); len(pods) > 0 {
		t.Errorf("there are Pods: %v", pods)
	}
}

func TestWhatTheAPIServerCanNotTellIsAnError(t *testing.T) {
	server := apiserver.New(t)
	kube, err := kubernetes.NewForConfig(server.Config())
	if err != nil {
		t.Fatal(err)
	}
	for name, template := range map[string]string{
		"a placeholder in place of a number": `{"spec":{"priority":"{{PRIORITY}}","resurces":1}}`,
		"a quantity that is read for hours":  `{"spec":{"containers":[{"resources":{"limits":{"cpu":"1e-2000000000"}}}]}}`,
		"no object":                          `["spec"]`,
		"metadata that are no object":        `{"metadata":3}`,
		"nothing":                            ``,
	} {
		if got, err := unknownfields.Of(t.Context(), kube.CoreV1().RESTClient(), "ns", []byte(template)); err == nil {
			t.Errorf("%s: got %q, want an error", name, got)
		}
	}
	server.SetHook(func(*apiserver.Request) apiserver.Fault {
		return apiserver.Fault{Refusal: errors.New("the connection breaks")}
	})
	if got, err := unknownfields.Of(t.Context(), kube.CoreV1().RESTClient(), "ns", []byte(`{"spec":{"a":1}}`)); err == nil {
		t.Errorf("without an answer: got %q, want an error", got)
	}
}

func TestAMessageNamesAFewFieldsAndCountsTheOthers(t *testing.T) {
	paths := strings.Split("abcdefgh", "")
	for n, want := range map[int]string{
		0: "", 1: "a: unknown field", 2: "a: unknown field; b: unknown field",
		6: "a: unknown field; b: unknown field; c: unknown field; d: unknown field; and 2 more",
	} {
		if got := unknownfields.Message(paths[:n]); got != want {
			t.Errorf("of %d fields: got %q, want %q", n, got, want)
		}
	}
}
