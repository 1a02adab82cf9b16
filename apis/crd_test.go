// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package apis_test

import (
	"os"
	"path/filepath"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	crdvalidation "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	"sigs.k8s.io/yaml"
)

// TestCRDsAreAccepted holds the generated CRDs against the checks that the API
// server makes before it takes them, among them the cost limits of CEL rules.
func TestCRDsAreAccepted(t *testing.T) {
	files, err := filepath.Glob("../manifests/crds/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if len(files) != 2 {
		t.Fatalf("CRD files: got %v, want those of Framework and PodGroup", files)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			if errs := crdvalidation.ValidateCustomResourceDefinition(t.Context(), readCRD(t, file)); len(errs) > 0 {
				t.Errorf("the API server would refuse it: %v", errs.ToAggregate())
			}
		})
	}
}

func readCRD(t *testing.T, file string) *apiextensions.CustomResourceDefinition {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	v1 := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict(data, v1); err != nil {
		t.Fatalf("decoding %s: %v", file, err)
	}
	apiextensionsv1.SetObjectDefaults_CustomResourceDefinition(v1)
	internal := &apiextensions.CustomResourceDefinition{}
	if err := apiextensionsv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(v1, internal, nil); err != nil {
		t.Fatalf("converting %s: %v", file, err)
	}
	// The API server adds the first served version itself.
	internal.Status.StoredVersions = []string{v1.Spec.Versions[0].Name}
	return internal
}
