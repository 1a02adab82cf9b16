//go:build e2e

// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package jobs

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/lockstep-k8s/lockstep/internal/localenv"
)

// runs finds the manifests of a page that say they run.
var runs = regexp.MustCompile("(?s)\n```yaml runs\n(.*?)\n```")

// TestTheManifestsOfTheTaskPagesRun applies each manifest of docs/tasks that is marked so, and waits until all of its Pods
// are placed.
func TestTheManifestsOfTheTaskPagesRun(t *testing.T) {
	t.Parallel()
	pages, err := filepath.Glob("../../docs/tasks/*.md")
	if err != nil {
		t.Fatal(err)
	}
	manifests := 0
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range runs.FindAllStringSubmatch(string(text), -1) {
			manifests++
			t.Run(filepath.Base(page), func(t *testing.T) {
				t.Parallel()
				pods := 0
				manifest, err := localenv.EditManifest([]byte(found[1]), func(object *unstructured.Unstructured) error {
					pods += podsOf(object.Object)
					return nil
				})
				if err != nil {
					t.Fatal(err)
				}
				namespace := cluster.Namespace(t)
				if out, err := cluster.KubectlApply(t.Context(), namespace, manifest); err != nil {
					t.Fatalf("%v: %s", err, out)
				}
				cluster.WaitPlaced(t, namespace, pods)
			})
		}
	}
	if manifests < 6 {
		t.Errorf("%d manifests were found in %v", manifests, pages)
	}
}

// podsOf returns how many Pods a job has, whatever its kind: the sum of all numbers of tasks and replicas in it.
func podsOf(value any) int {
	pods := 0
	switch value := value.(type) {
	case map[string]any:
		for key, child := range value {
			if key == "taskNumber" || key == "replicas" {
				switch number := child.(type) {
				case int64:
					pods += int(number)
				case float64:
					pods += int(number)
				}
			}
			pods += podsOf(child)
		}
	case []any:
		for _, child := range value {
			pods += podsOf(child)
		}
	}
	return pods
}
