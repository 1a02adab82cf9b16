// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"path/filepath"
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"github.com/lockstep-k8s/lockstep/internal/testing/crd"
)

// crdOfKind are the CRDs of the kinds that pages for newcomers show.
var crdOfKind = map[string]string{
	"Framework":  crdOfFrameworks,
	"Job":        "../manifests/volcano/batch.volcano.sh_jobs.yaml",
	"PyTorchJob": "../manifests/kubeflow/kubeflow.org_pytorchjobs.yaml",
}

// betweenDocuments parts the objects of a manifest.
var betweenDocuments = regexp.MustCompile(`(?m)^---\n`)

// objectsOf are all objects that a page shows as YAML, in their order.
func objectsOf(t *testing.T, page string) []map[string]any {
	t.Helper()
	var objects []map[string]any
	for _, block := range blockOfYAML.FindAllStringSubmatch(read(t, page), -1) {
		for _, document := range betweenDocuments.Split(block[1], -1) {
			text, err := yaml.YAMLToJSONStrict([]byte(document))
			if err != nil {
				t.Fatalf("%s: %v in:\n%s", page, err, document)
			}
			var object map[string]any
			if err := json.Unmarshal(text, &object); err != nil { // whole numbers stay whole
				t.Fatal(err)
			}
			objects = append(objects, object)
		}
	}
	return objects
}

// TestManifestsForNewcomersAreTaken by an API server: what the pages show side by side has no unknown
// field and breaks no rule.
func TestManifestsForNewcomersAreTaken(t *testing.T) {
	pages, err := filepath.Glob("from-*.md")
	if err != nil {
		t.Fatal(err)
	}
	if len(pages) < 3 {
		t.Fatalf("only the pages %v were found", pages)
	}
	for _, page := range pages {
		jobs := 0
		for _, object := range objectsOf(t, page) {
			kind, _ := object["kind"].(string)
			if kind == "Service" {
				text, err := json.Marshal(object)
				if err != nil {
					t.Fatal(err)
				}
				if err := yaml.UnmarshalStrict(text, &corev1.Service{}); err != nil {
					t.Errorf("%s: %v", page, err)
				}
				continue
			}
			file, known := crdOfKind[kind]
			if !known {
				t.Errorf("%s: nobody has said where the kind %q is defined", page, kind)
				continue
			}
			jobs++
			if problems := crd.Of(t, file).Create(t, object); len(problems) > 0 {
				t.Errorf("%s: the API server refuses a %s: %v", page, kind, problems)
			}
		}
		if jobs < 2 {
			t.Errorf("%s shows %d jobs, want one of the old and one of the new", page, jobs)
		}
	}
}

// TestAManifestOfFrameworkControllerMeansTheSame as the shorter one beside it, but for its gang.
func TestAManifestOfFrameworkControllerMeansTheSame(t *testing.T) {
	objects := objectsOf(t, "from-frameworkcontroller.md")
	validator := crd.Of(t, crdOfFrameworks)
	var specs []map[string]any
	for _, object := range objects[:2] {
		if problems := validator.Create(t, object); len(problems) > 0 { // fills defaults in
			t.Fatal(problems)
		}
		spec, _ := object["spec"].(map[string]any)
		specs = append(specs, spec)
	}
	if specs[1]["gang"] == nil {
		t.Error("the second one is no gang")
	}
	delete(specs[1], "gang")
	if diff := cmp.Diff(specs[0], specs[1]); diff != "" {
		t.Errorf("the specs differ (-FrameworkController, +Lockstep):\n%s", diff)
	}
}
