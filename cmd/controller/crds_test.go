// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/lockstep-k8s/lockstep/internal/testing/apiserver"
	"github.com/lockstep-k8s/lockstep/manifests"
)

// TestCRDsOfVolcanoAreCreatedWhereTheyAreAbsent, and one that is there stays what it is: it
// may be Volcano's own.
func TestCRDsOfVolcanoAreCreatedWhereTheyAreAbsent(t *testing.T) {
	server := apiserver.New(t)
	crds, err := readCRDs(manifests.FS, volcanoCRDs)
	if err != nil {
		t.Fatal(err)
	}
	if len(crds) != 2 {
		t.Fatalf("there are %d CRDs of Volcano, want those of Jobs and Commands", len(crds))
	}
	client, err := crdClient(server.Config())
	if err != nil {
		t.Fatal(err)
	}
	theirs := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"group": "batch.volcano.sh"}}}
	theirs.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"})
	theirs.SetName("jobs.batch.volcano.sh")
	before, err := client.Create(t.Context(), theirs, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // Once more when the program starts again.
		if err := installAbsentCRDs(t.Context(), crds, server.Config()); err != nil {
			t.Fatal(err)
		}
	}
	after, err := client.Get(t.Context(), theirs.GetName(), metav1.GetOptions{})
	if err != nil || after.GetResourceVersion() != before.GetResourceVersion() {
		t.Errorf("the CRD of Jobs was %v and is %v (%v)", before, after, err)
	}
	if _, err := client.Get(t.Context(), "commands.bus.volcano.sh", metav1.GetOptions{}); err != nil {
		t.Errorf("the CRD of Commands is not there: %v", err)
	}
}
