// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"github.com/lockstep-k8s/lockstep/internal/testing/crd"
)

const crdOfFrameworks = "../manifests/crds/frameworkcontroller.microsoft.com_frameworks.yaml"

// TestTheCompleteExampleHasEveryField that the CRD has in the spec, and the API server takes it.
func TestTheCompleteExampleHasEveryField(t *testing.T) {
	var example map[string]any
	text, err := yaml.YAMLToJSONStrict([]byte(read(t, "../examples/gang/every-field.yaml")))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &example); err != nil { // whole numbers stay whole
		t.Fatal(err)
	}
	version, err := apiextensions.GetSchemaForVersion(crd.Read(t, crdOfFrameworks), "v1")
	if err != nil {
		t.Fatal(err)
	}
	fields := 0
	var look func(path string, schema *apiextensions.JSONSchemaProps, values []any)
	look = func(path string, schema *apiextensions.JSONSchemaProps, values []any) {
		fields++
		if len(values) == 0 {
			t.Errorf("the example lacks %s", path)
			return
		}
		if schema.Items != nil {
			var elements []any
			for _, value := range values {
				list, _ := value.([]any)
				elements = append(elements, list...)
			}
			look(path+"[]", schema.Items.Schema, elements)
		}
		for name := range schema.Properties {
			var under []any
			for _, value := range values {
				if object, ok := value.(map[string]any); ok && object[name] != nil {
					under = append(under, object[name])
				}
			}
			property := schema.Properties[name]
			look(path+"."+name, &property, under)
		}
	}
	spec := version.OpenAPIV3Schema.Properties["spec"]
	look("spec", &spec, []any{example["spec"]})
	if fields < 25 {
		t.Errorf("only %d fields were found in the CRD", fields)
	}
	if problems := crd.Of(t, crdOfFrameworks).Create(t, example); len(problems) > 0 {
		t.Errorf("the API server refuses it: %v", problems)
	}
}
