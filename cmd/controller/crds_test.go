// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"net/http/httptest"
	"slices"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	kubeflowv1 "github.com/lockstep-k8s/lockstep/apis/kubeflow/v1"
	"github.com/lockstep-k8s/lockstep/internal/testing/apiserver"
)

// TestCRDsOfVolcanoAreCreatedWhereTheyAreAbsent, and one that is there stays what it is: it
// may be Volcano's own.
func TestCRDsOfVolcanoAreCreatedWhereTheyAreAbsent(t *testing.T) {
	server := apiserver.New(t)
	crds, err := readCRDs(volcanoCRDs)
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
		if err := installCRDs(t.Context(), crds, server.Config(), discoveryOf(t, server.Config())); err != nil {
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

// TestCRDsOfKubeflowAreBroughtUpToDateIfTheyAreLockstepsOwn, and stay what they are if another
// product has put its own in their place.
func TestCRDsOfKubeflowAreBroughtUpToDateIfTheyAreLockstepsOwn(t *testing.T) {
	crds, err := readCRDs(kubeflowCRDs)
	if err != nil {
		t.Fatal(err)
	}
	if want := len(kubeflowv1.Plurals()) + 1; len(crds) != want {
		t.Fatalf("there are %d CRDs, want one of each of %v, and of MPIJobs", len(crds), kubeflowv1.Plurals())
	}
	for i := range crds {
		want := "v1"
		if crds[i].object.GetName() == "mpijobs.kubeflow.org" {
			want = "v2beta1"
		}
		if crds[i].resource.Version != want {
			t.Fatalf("the CRD %v is not stored as %s", crds[i], want)
		}
	}
	older := make([]crd, len(crds))
	for i := range crds {
		older[i] = crds[i]
		older[i].object = crds[i].object.DeepCopy()
		setSingular(older[i].object, "old")
	}
	tests := map[string]struct {
		change func(t *testing.T, client dynamic.ResourceInterface, there *unstructured.Unstructured) error
		want   string
	}{
		"as this program has made it": {want: "tfjob"},
		"with another's names": {want: "theirs", change: func(t *testing.T, client dynamic.ResourceInterface, there *unstructured.Unstructured) error {
			theirs := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"names": map[string]any{"singular": "theirs"}}}}
			theirs.SetGroupVersionKind(there.GroupVersionKind())
			_, err := client.Apply(t.Context(), there.GetName(), theirs, metav1.ApplyOptions{FieldManager: "helm", Force: true})
			return err
		}},
		"without the label of Lockstep": {want: "old", change: func(t *testing.T, client dynamic.ResourceInterface, there *unstructured.Unstructured) error {
			there.SetLabels(nil)
			_, err := client.Update(t.Context(), there, metav1.UpdateOptions{FieldManager: "helm"})
			return err
		}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			server := apiserver.New(t)
			client, err := crdClient(server.Config())
			if err != nil {
				t.Fatal(err)
			}
			if err := installCRDs(t.Context(), older, server.Config(), discoveryOf(t, server.Config())); err != nil {
				t.Fatal(err)
			}
			if tc.change != nil {
				there, err := client.Get(t.Context(), "tfjobs.kubeflow.org", metav1.GetOptions{})
				if err != nil {
					t.Fatal(err)
				}
				if err := tc.change(t, client, there); err != nil {
					t.Fatal(err)
				}
			}
			if err := installCRDs(t.Context(), crds, server.Config(), discoveryOf(t, server.Config())); err != nil {
				t.Fatal(err)
			}
			after, err := client.Get(t.Context(), "tfjobs.kubeflow.org", metav1.GetOptions{})
			if err != nil || singularOf(after) != tc.want {
				t.Errorf("the singular is %q (%v), want %q", singularOf(after), err, tc.want)
			}
		})
	}
}

func setSingular(object *unstructured.Unstructured, name string) {
	object.Object["spec"].(map[string]any)["names"].(map[string]any)["singular"] = name
}

func singularOf(object *unstructured.Unstructured) string {
	name, _, _ := unstructured.NestedString(object.Object, "spec", "names", "singular")
	return name
}

// TestANewerCRDIsLeftByAnOlderController, as one that is started again during an upgrade, or after a rollback.
func TestANewerCRDIsLeftByAnOlderController(t *testing.T) {
	own, err := readCRDs(ownCRDs)
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		serve func(frameworks *apiextensionsv1.CustomResourceDefinition)
		stays bool
	}{
		"a newer one":     {serve: addField, stays: true},
		"the same fields": {serve: func(*apiextensionsv1.CustomResourceDefinition) {}},
		"an older one": {serve: func(frameworks *apiextensionsv1.CustomResourceDefinition) {
			drop(frameworks, "status", "attemptStatus", "gang")
		}},
		"one that lacks fields and has others": {serve: func(frameworks *apiextensionsv1.CustomResourceDefinition) {
			addField(frameworks)
			drop(frameworks, "status", "attemptStatus", "gang")
		}},
		"another product's, which keeps all fields": {serve: func(frameworks *apiextensionsv1.CustomResourceDefinition) {
			frameworks.Spec.Versions[0].Schema.OpenAPIV3Schema = preserving()
		}},
		"none": {serve: func(frameworks *apiextensionsv1.CustomResourceDefinition) { frameworks.Spec.Versions[0].Served = false }},
	} {
		t.Run(name, func(t *testing.T) {
			frameworks := &apiextensionsv1.CustomResourceDefinition{}
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(own[0].object.DeepCopy().Object, frameworks); err != nil {
				t.Fatal(err)
			}
			tc.serve(frameworks)
			server := httptest.NewServer(serving(t, []*apiextensionsv1.CustomResourceDefinition{frameworks}))
			defer server.Close()
			store := apiserver.New(t)
			if err := installCRDs(t.Context(), own, store.Config(), discoveryOf(t, &rest.Config{Host: server.URL})); err != nil {
				t.Fatal(err)
			}
			client, err := crdClient(store.Config())
			if err != nil {
				t.Fatal(err)
			}
			for i, crd := range own {
				_, err := client.Get(t.Context(), crd.object.GetName(), metav1.GetOptions{})
				if applied := err == nil; applied == (tc.stays && i == 0) {
					t.Errorf("%s was applied: %t (%v)", crd.object.GetName(), applied, err)
				}
			}
		})
	}
}

// TestANewerCRDOfAnotherProductsKindIsLeftByAnOlderController, though Lockstep has made it.
func TestANewerCRDOfAnotherProductsKindIsLeftByAnOlderController(t *testing.T) {
	older, err := readCRDs(kubeflowCRDs)
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		served func(newer *apiextensionsv1.CustomResourceDefinition)
		want   string
	}{
		"a newer one":     {want: "newer", served: addField},
		"the same fields": {want: "tfjob", served: func(*apiextensionsv1.CustomResourceDefinition) {}},
		"an older one": {want: "tfjob", served: func(newer *apiextensionsv1.CustomResourceDefinition) {
			drop(newer, "spec", "runPolicy", "suspend")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			i := slices.IndexFunc(older, func(c crd) bool { return c.object.GetName() == "tfjobs.kubeflow.org" })
			newer := older[i]
			newer.object = newer.object.DeepCopy()
			setSingular(newer.object, "newer")
			store := apiserver.New(t)
			if err := installCRDs(t.Context(), []crd{newer}, store.Config(), discoveryOf(t, store.Config())); err != nil {
				t.Fatal(err)
			}
			definition := &apiextensionsv1.CustomResourceDefinition{}
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(newer.object.DeepCopy().Object, definition); err != nil {
				t.Fatal(err)
			}
			tc.served(definition)
			server := httptest.NewServer(serving(t, []*apiextensionsv1.CustomResourceDefinition{definition}))
			defer server.Close()
			if err := installCRDs(t.Context(), older[i:i+1], store.Config(), discoveryOf(t, &rest.Config{Host: server.URL})); err != nil {
				t.Fatal(err)
			}
			client, err := crdClient(store.Config())
			if err != nil {
				t.Fatal(err)
			}
			there, err := client.Get(t.Context(), newer.object.GetName(), metav1.GetOptions{})
			if err != nil || singularOf(there) != tc.want {
				t.Errorf("the singular is %q (%v), want %q", singularOf(there), err, tc.want)
			}
		})
	}
}

// addField makes a CRD a newer one.
func addField(crd *apiextensionsv1.CustomResourceDefinition) {
	spec := crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]
	spec.Properties["novelty"] = apiextensionsv1.JSONSchemaProps{Type: "string"}
}

func discoveryOf(t *testing.T, config *rest.Config) discovery.DiscoveryInterface {
	t.Helper()
	client, err := newDiscovery(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// TestAControllerOfPodGroupsAloneNeedsNoOtherCRD.
func TestAControllerOfPodGroupsAloneNeedsNoOtherCRD(t *testing.T) {
	all, err := readCRDs(ownCRDs)
	if err != nil {
		t.Fatal(err)
	}
	if crds := ofPodGroups(all); len(crds) != 1 || crds[0].object.GetName() != "podgroups.scheduling.lockstep.dev" {
		t.Errorf("it needs %v, want the CRD of PodGroups", crds)
	}
}
