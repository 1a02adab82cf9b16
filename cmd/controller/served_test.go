// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/controller/openapi/builder"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"

	"github.com/lockstep-k8s/lockstep/internal/testing/apiserver"
)

func TestServedCRDsAreChecked(t *testing.T) {
	const repair = ": apply manifests/crds of this version, or start with --install-crds"
	tests := map[string]struct {
		serve func(frameworks, podGroups *apiextensionsv1.CustomResourceDefinition)
		want  string // Empty if the CRDs will do.
	}{
		"those of this version": {
			serve: func(_, _ *apiextensionsv1.CustomResourceDefinition) {},
		},
		"Frameworks are not served": {
			serve: func(frameworks, _ *apiextensionsv1.CustomResourceDefinition) {
				frameworks.Spec.Versions[0].Served = false
			},
			want: "the API server does not serve frameworks of frameworkcontroller.microsoft.com/v1" + repair,
		},
		"PodGroups are not served": {
			serve: func(_, podGroups *apiextensionsv1.CustomResourceDefinition) {
				podGroups.Spec.Versions[0].Served = false
			},
			want: "the API server does not serve podgroups of scheduling.lockstep.dev/v1alpha1" + repair,
		},
		"FrameworkController's, without the status subresource": {
			serve: func(frameworks, _ *apiextensionsv1.CustomResourceDefinition) {
				frameworks.Spec.Versions[0].Subresources = nil
				frameworks.Spec.Versions[0].Schema.OpenAPIV3Schema = preserving()
			},
			want: "the CRD frameworks.frameworkcontroller.microsoft.com has no status subresource, as that of another product, so that no status could be written" + repair,
		},
		"one that keeps all fields, known or not": {
			serve: func(frameworks, _ *apiextensionsv1.CustomResourceDefinition) {
				frameworks.Spec.Versions[0].Schema.OpenAPIV3Schema = preserving()
			},
		},
		"an older one of Frameworks": {
			serve: func(frameworks, _ *apiextensionsv1.CustomResourceDefinition) {
				drop(frameworks, "status", "attemptStatus", "gang")
			},
			want: "the CRD frameworks.frameworkcontroller.microsoft.com is older than this program: it has no field status.attemptStatus.gang" + repair,
		},
		"an older one of PodGroups, without fields in lists and beside them": {
			serve: func(_, podGroups *apiextensionsv1.CustomResourceDefinition) {
				drop(podGroups, "status", "conditions", "transitionID")
				drop(podGroups, "spec", "topology")
			},
			want: "the CRD podgroups.scheduling.lockstep.dev is older than this program: it has no field spec.topology and 1 more" + repair,
		},
		"an older one of PodGroups, without a field in a list": {
			serve: func(_, podGroups *apiextensionsv1.CustomResourceDefinition) {
				drop(podGroups, "status", "conditions", "transitionID")
			},
			want: "the CRD podgroups.scheduling.lockstep.dev is older than this program: it has no field status.conditions[].transitionID" + repair,
		},
		"a newer one": {
			serve: func(frameworks, _ *apiextensionsv1.CustomResourceDefinition) {
				spec := frameworks.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]
				spec.Properties["novelty"] = apiextensionsv1.JSONSchemaProps{Type: "string"}
			},
		},
	}
	own, err := readCRDs(ownCRDs)
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			served := make([]*apiextensionsv1.CustomResourceDefinition, len(own))
			for i, crd := range own {
				served[i] = &apiextensionsv1.CustomResourceDefinition{}
				if err := runtime.DefaultUnstructuredConverter.FromUnstructured(crd.object.DeepCopy().Object, served[i]); err != nil {
					t.Fatal(err)
				}
			}
			tc.serve(served[0], served[1])
			server := httptest.NewServer(serving(t, served))
			defer server.Close()
			client, err := discovery.NewDiscoveryClientForConfig(&rest.Config{Host: server.URL})
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			if err := checkServed(t.Context(), own, client); err != nil {
				got = err.Error()
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("unexpected problem (-want,+got):\n%s", diff)
			}
			if strings.Contains(got, "\n") {
				t.Errorf("the problem takes more than one line:\n%s", got)
			}
		})
	}
}

// TestWithoutTheSchemaTheResourcesHaveToDo is for clusters whose administrator has
// taken the right to read OpenAPI documents away.
func TestWithoutTheSchemaTheResourcesHaveToDo(t *testing.T) {
	own, err := readCRDs(ownCRDs)
	if err != nil {
		t.Fatal(err)
	}
	served := make([]*apiextensionsv1.CustomResourceDefinition, len(own))
	for i, crd := range own {
		served[i] = &apiextensionsv1.CustomResourceDefinition{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(crd.object.Object, served[i]); err != nil {
			t.Fatal(err)
		}
	}
	mux := serving(t, served)
	server := httptest.NewServer(http.HandlerFunc(func(response http.ResponseWriter, request *http.Request) {
		if strings.HasPrefix(request.URL.Path, "/openapi/") {
			response.WriteHeader(http.StatusForbidden)
			return
		}
		mux.ServeHTTP(response, request)
	}))
	defer server.Close()
	client, err := discovery.NewDiscoveryClientForConfig(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	if err := checkServed(t.Context(), own, client); err != nil {
		t.Errorf("unexpected problem: %v", err)
	}
}

// preserving is a schema that knows no field and keeps all.
func preserving() *apiextensionsv1.JSONSchemaProps {
	all := true
	return &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: &all}
}

// drop takes a field out of the schema of a CRD.
func drop(crd *apiextensionsv1.CustomResourceDefinition, path ...string) {
	properties := crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties
	last := len(path) - 1
	for _, name := range path[:last] {
		if items := properties[name].Items; items != nil {
			properties = items.Schema.Properties
		} else {
			properties = properties[name].Properties
		}
	}
	delete(properties, path[last])
}

// serving serves discovery and OpenAPI documents as an API server with these CRDs
// does.
func serving(t *testing.T, crds []*apiextensionsv1.CustomResourceDefinition) http.Handler {
	t.Helper()
	mux := http.NewServeMux()
	answer := func(path string, document any) {
		data, err := json.Marshal(document)
		if err != nil {
			t.Fatal(err)
		}
		mux.HandleFunc(path, func(response http.ResponseWriter, _ *http.Request) {
			response.Header().Set("Content-Type", "application/json")
			_, _ = response.Write(data)
		})
	}
	paths := map[string]any{}
	for _, crd := range crds {
		version := crd.Spec.Versions[0]
		if !version.Served {
			continue
		}
		group := crd.Spec.Group + "/" + version.Name
		resources := metav1.APIResourceList{GroupVersion: group, APIResources: []metav1.APIResource{{Name: crd.Spec.Names.Plural}}}
		if version.Subresources != nil && version.Subresources.Status != nil {
			resources.APIResources = append(resources.APIResources, metav1.APIResource{Name: crd.Spec.Names.Plural + "/status"})
		}
		answer("/apis/"+group, resources)
		document, err := builder.BuildOpenAPIV3(crd, version.Name, builder.Options{})
		if err != nil {
			t.Fatal(err)
		}
		answer("/openapi/v3/apis/"+group, document)
		paths["apis/"+group] = map[string]string{"serverRelativeURL": "/openapi/v3/apis/" + group + "?hash=1"}
	}
	answer("/openapi/v3", map[string]any{"paths": paths})
	return mux
}

// TestAnAPIServerThatHangsIsAskedAgain what it serves, so that a controller that has begun beside it goes on.
func TestAnAPIServerThatHangsIsAskedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, err := newDiscovery(&rest.Config{Host: "http://silent", Transport: apiserver.Silent{}})
		if err != nil {
			t.Fatal(err)
		}
		crds, err := readCRDs(ownCRDs)
		if err != nil {
			t.Fatal(err)
		}
		begun := time.Now()
		if err := checkServed(t.Context(), crds, client); err == nil {
			t.Error("it is said to serve all")
		}
		if took := time.Since(begun); took > time.Minute {
			t.Errorf("it was given up after %v", took)
		}
	})
}
