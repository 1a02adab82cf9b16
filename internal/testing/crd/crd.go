// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package crd validates objects against a CRD with the API server's own code, in tests.
package crd

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/common"
	"sigs.k8s.io/yaml"
)

// Read returns the CRD in a file, as the API server sees it.
func Read(t *testing.T, file string) *apiextensions.CustomResourceDefinition {
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

// Validator finds what an API server with a CRD finds wrong with objects.
type Validator struct {
	structural *schema.Structural
	schema     validation.SchemaValidator
	rules      *cel.Validator
}

// Of returns the Validator of the first version of the CRD in a file.
func Of(t *testing.T, file string) *Validator {
	t.Helper()
	return OfVersion(t, file, Read(t, file).Spec.Versions[0].Name)
}

// OfVersion returns the Validator of a version of the CRD in a file.
func OfVersion(t *testing.T, file, name string) *Validator {
	t.Helper()
	crd := Read(t, file)
	version, err := apiextensions.GetSchemaForVersion(crd, name)
	if err != nil {
		t.Fatal(err)
	}
	v := &Validator{}
	if v.structural, err = schema.NewStructural(version.OpenAPIV3Schema); err != nil {
		t.Fatal(err)
	}
	if v.schema, _, err = validation.NewSchemaValidator(version.OpenAPIV3Schema); err != nil {
		t.Fatal(err)
	}
	v.rules = cel.NewValidator(v.structural, true, celconfig.PerCallLimit)
	return v
}

// Create returns all problems of an object that is to be created, and fills in the object's defaults. If an object
// without problems has a field that would be dropped, the test fails.
func (v *Validator) Create(t *testing.T, object map[string]any) field.ErrorList {
	t.Helper()
	dropped := v.admit(object)
	errs := validation.ValidateCustomResource(nil, object, v.schema)
	fromRules, _ := v.rules.Validate(t.Context(), nil, v.structural, object, nil, celconfig.RuntimeCELCostBudget)
	return problems(t, append(errs, fromRules...), dropped)
}

// Update returns all problems of an object that is to replace `old`, and fills in the object's defaults. `old` must
// have its defaults already.
func (v *Validator) Update(t *testing.T, object, old map[string]any) field.ErrorList {
	t.Helper()
	dropped := v.admit(object)
	correlated := common.NewCorrelatedObject(object, old, &model.Structural{Structural: v.structural})
	errs := validation.ValidateCustomResourceUpdate(nil, object, old, v.schema, validation.WithRatcheting(correlated))
	fromRules, _ := v.rules.Validate(t.Context(), nil, v.structural, object, old, celconfig.RuntimeCELCostBudget, cel.WithRatcheting(correlated))
	return problems(t, append(errs, fromRules...), dropped)
}

// admit fills in an object's defaults and removes unknown fields, as an API server does before validation. admit
// returns the removed fields.
func (v *Validator) admit(object map[string]any) (dropped string) {
	given := runtime.DeepCopyJSON(object)
	pruning.Prune(object, v.structural, true)
	dropped = cmp.Diff(given, object)
	defaulting.Default(object, v.structural)
	return dropped
}

// problems are errors. Fields that were dropped without one fail the test.
func problems(t *testing.T, errs field.ErrorList, dropped string) field.ErrorList {
	t.Helper()
	if len(errs) == 0 && dropped != "" {
		t.Errorf("fields are dropped (-given,+kept):\n%s", dropped)
	}
	return errs
}

// Texts returns the texts of problems as a user reads them, sorted; nil if there are none.
func Texts(problems field.ErrorList) []string {
	var texts []string
	for _, problem := range problems {
		texts = append(texts, problem.Error())
	}
	slices.Sort(texts)
	return texts
}

// Compare fails the test if the problems are not the expected ones. An expectation is "field: detail", or "field" if
// the detail does not matter.
func Compare(t *testing.T, who string, want []string, problems field.ErrorList) {
	t.Helper()
	withDetail := map[string]bool{}
	for _, w := range want {
		path, detail, _ := strings.Cut(w, ": ")
		withDetail[path] = detail != ""
	}
	var got []string
	for _, problem := range problems {
		path := problem.Field
		if path == "<nil>" || path == "" {
			path = "metadata.name" // Rules of the whole object are about its name.
		}
		if detailed, expected := withDetail[path]; detailed || !expected {
			path += ": " + problem.Detail
		}
		if !slices.Contains(got, path) {
			got = append(got, path)
		}
	}
	slices.Sort(got)
	want = slices.Sorted(slices.Values(want))
	if diff := cmp.Diff(want, got); diff != "" && len(want)+len(got) > 0 {
		t.Errorf("what %s finds (-want,+got):\n%s", who, diff)
	}
}
