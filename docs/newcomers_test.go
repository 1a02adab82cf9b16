// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"path/filepath"
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"github.com/lockstep-k8s/lockstep/internal/testing/crd"
)

// crdOfKind are the CRDs of the kinds of jobs that pages show.
var crdOfKind = map[string]string{
	"Framework":  crdOfFrameworks,
	"Job":        "../manifests/volcano/batch.volcano.sh_jobs.yaml",
	"MPIJob":     "../manifests/kubeflow/kubeflow.org_mpijobs.yaml",
	"PyTorchJob": "../manifests/kubeflow/kubeflow.org_pytorchjobs.yaml",
	"TFJob":      "../manifests/kubeflow/kubeflow.org_tfjobs.yaml",
}

// typeOfKind are the types of the other objects beside them.
var typeOfKind = map[string]func() any{
	"Kustomization":         func() any { return &map[string]any{} },
	"PriorityClass":         func() any { return &schedulingv1.PriorityClass{} },
	"ResourceClaimTemplate": func() any { return &resourcev1.ResourceClaimTemplate{} },
	"Service":               func() any { return &corev1.Service{} },
	// Kueue's. Its API is no dependency of Lockstep; e2e/kueue/real creates such objects.
	"ClusterQueue":   func() any { return &map[string]any{} },
	"LocalQueue":     func() any { return &map[string]any{} },
	"ResourceFlavor": func() any { return &map[string]any{} },
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
		if jobs := expectTaken(t, page); jobs < 2 {
			t.Errorf("%s shows %d jobs, want one of the old and one of the new", page, jobs)
		}
	}
}

// TestManifestsOfTaskPagesAreTaken by an API server.
func TestManifestsOfTaskPagesAreTaken(t *testing.T) {
	pages, err := filepath.Glob("tasks/*.md")
	if err != nil {
		t.Fatal(err)
	}
	jobs := 0
	for _, page := range pages {
		jobs += expectTaken(t, page)
	}
	if jobs < 10 {
		t.Errorf("the pages %v show %d jobs", pages, jobs)
	}
}

// expectTaken checks all objects that a page shows against their kinds, and returns how many jobs there are.
func expectTaken(t *testing.T, page string) (jobs int) {
	t.Helper()
	for _, object := range objectsOf(t, page) {
		kind, isObject := object["kind"].(string)
		if !isObject {
			continue // a part of a configuration
		}
		if typ, known := typeOfKind[kind]; known {
			text, err := json.Marshal(object)
			if err != nil {
				t.Fatal(err)
			}
			if err := yaml.UnmarshalStrict(text, typ()); err != nil {
				t.Errorf("%s: %v", page, err)
			}
			continue
		}
		file, known := crdOfKind[kind]
		if !known {
			t.Errorf("%s: no CRD is known for the kind %q", page, kind)
			continue
		}
		jobs++
		if problems := crd.Of(t, file).Create(t, object); len(problems) > 0 {
			t.Errorf("%s: the API server refuses a %s: %v", page, kind, problems)
		}
	}
	return jobs
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
