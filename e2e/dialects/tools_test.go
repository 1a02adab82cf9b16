//go:build e2e

// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package dialects

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/lockstep-k8s/lockstep/e2e/testbed"
	"github.com/lockstep-k8s/lockstep/internal/localenv"
)

// placedWord says of a group, by its kind, whether it says that its gang is placed, and what it
// says. Another dialect is one more row.
var placedWord = map[string]func(group *unstructured.Unstructured) (placed bool, says string){
	"scheduling.x-k8s.io": func(group *unstructured.Unstructured) (bool, string) {
		phase, _, _ := unstructured.NestedString(group.Object, "status", "phase")
		return phase == "Running", phase
	},
	"scheduling.volcano.sh": func(group *unstructured.Unstructured) (bool, string) {
		phase, _, _ := unstructured.NestedString(group.Object, "status", "phase")
		return phase == "Running", phase
	},
	"scheduling.k8s.io": func(group *unstructured.Unstructured) (bool, string) {
		conditions, _, _ := unstructured.NestedSlice(group.Object, "status", "conditions")
		for _, condition := range conditions {
			if c, _ := condition.(map[string]any); c["type"] == "PodGroupInitiallyScheduled" {
				return c["status"] == "True", fmt.Sprint(c)
			}
		}
		return false, "nothing"
	},
}

// example is one of a page for users of a tool: objects as the tool makes them, in its order.
type example struct {
	page, manifest string
	// waits is the message by which the group says why its Pods wait, empty if they run.
	waits string
}

// blockOfExample finds the examples of a page, and the message after one that waits.
var blockOfExample = regexp.MustCompile("(?s)\n```yaml (runs|waits)\n(.*?)\n```(?:\n+```text\n(.*?)\n```)?")

// examplesOf are the examples of all pages for users of tools.
func examplesOf(t *testing.T) map[string]example {
	t.Helper()
	pages, err := filepath.Glob("../../docs/tools/*.md")
	if err != nil {
		t.Fatal(err)
	}
	examples := map[string]example{}
	for _, path := range pages {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		page := strings.TrimSuffix(filepath.Base(path), ".md")
		runs := false
		for i, found := range blockOfExample.FindAllStringSubmatch(string(text), -1) {
			waits := strings.Join(strings.Fields(found[3]), " ")
			if (found[1] == "waits") != (waits != "") {
				t.Errorf("%s: an example that waits is followed by its message, and no other is:\n%s", page, found[2])
			}
			runs = runs || waits == ""
			examples[fmt.Sprintf("%s/%d-%s", page, i, found[1])] = example{page: page, manifest: found[2], waits: waits}
		}
		if !runs && page != "README" {
			t.Errorf("%s: no example shows what runs", page)
		}
	}
	return examples
}

// TestWhatThePagesOfToolsShowIsSo makes the objects of all examples of docs/tools. It takes
// more than a minute, as that is how long a group waits before it is told the likely cause.
func TestWhatThePagesOfToolsShowIsSo(t *testing.T) {
	examples := examplesOf(t)
	installJobSets(t)
	installLeaderWorkerSets(t)
	for name, example := range examples {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			namespace := allowed(t)
			groups, pods := example.create(t, namespace)
			if example.waits != "" {
				example.expectWaiting(t, namespace)
				return
			}
			cluster.WaitPlaced(t, namespace, pods)
			for _, group := range groups {
				group.expectPlaced(t)
			}
		})
	}
}

// created is a group that was created by an example.
type created struct {
	client dynamic.ResourceInterface
	object *unstructured.Unstructured
}

// create creates all objects of the example one after the other. It returns the groups, and how
// many Pods there are. A UID that an object has on the page stands for the one that it gets.
func (e *example) create(t *testing.T, namespace string) (groups []created, pods int) {
	t.Helper()
	var uids []string // as on the page, as it is, and so on
	_, err := localenv.EditManifest([]byte(e.manifest), func(object *unstructured.Unstructured) error {
		onPage := string(object.GetUID())
		text, err := object.MarshalJSON()
		if err != nil {
			return err
		}
		if err := object.UnmarshalJSON([]byte(strings.NewReplacer(uids...).Replace(string(text)))); err != nil {
			return err
		}
		to := objects.Resource(object.GroupVersionKind().GroupVersion().WithResource(strings.ToLower(object.GetKind()) + "s")).Namespace(namespace)
		made, err := to.Create(t.Context(), object, metav1.CreateOptions{FieldManager: e.page})
		if err != nil {
			return err
		}
		if onPage != "" {
			uids = append(uids, onPage, string(made.GetUID()))
		}
		switch object.GetKind() {
		case "Pod":
			pods++
		case "PodGroup":
			groups = append(groups, created{client: to, object: made})
		case "Job": // whose Pods Kubernetes makes
			parallelism, _, err := unstructured.NestedInt64(object.Object, "spec", "parallelism")
			pods += int(parallelism)
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return groups, pods
}

// expectPlaced waits until a group says that its gang is placed, and looks that nothing else of
// it was written, and not often.
func (c created) expectPlaced(t *testing.T) {
	t.Helper()
	before := c.object
	word, known := placedWord[before.GroupVersionKind().Group]
	if !known {
		t.Fatalf("nobody has said how %s say that they are placed", before.GroupVersionKind())
	}
	var after *unstructured.Unstructured
	testbed.Eventually(t, "the group to say that it is placed", func(ctx context.Context) (placed bool, says string, err error) {
		if after, err = c.client.Get(ctx, before.GetName(), metav1.GetOptions{}); err != nil {
			return false, "", err
		}
		placed, says = word(after)
		return placed, says, nil
	})
	for _, field := range [][]string{{"spec"}, {"metadata", "labels"}, {"metadata", "annotations"}, {"metadata", "ownerReferences"}, {"metadata", "finalizers"}} {
		was, _, _ := unstructured.NestedFieldNoCopy(before.Object, field...)
		is, _, _ := unstructured.NestedFieldNoCopy(after.Object, field...)
		if diff := cmp.Diff(was, is); diff != "" {
			t.Errorf("%s of the group has changed (-was, +is):\n%s", strings.Join(field, "."), diff)
		}
	}
	const most = 10
	writes := 0
	for _, request := range cluster.Audited(t) {
		ofGroup := strings.HasPrefix(request.Resource, "podgroups") && request.Namespace == before.GetNamespace() && request.Name == before.GetName()
		if ofGroup && strings.HasSuffix(request.User, ":lockstep-scheduler") {
			writes++
		}
	}
	if writes == 0 || writes > most {
		t.Errorf("lockstep-scheduler has written the group %d times, want 1 to %d", writes, most)
	}
}

// toldOf is the kind of the object that is told why the gang waits: a Pod if there is no group.
func (e *example) toldOf() string {
	if strings.Contains(e.manifest, "kind: PodGroup") {
		return "PodGroup"
	}
	return "Pod"
}

// expectWaiting waits until an event on a group has the message of the example, and looks that
// no Pod is placed.
func (e *example) expectWaiting(t *testing.T, namespace string) {
	t.Helper()
	testbed.EventuallyWithin(t, 2*time.Minute, "an event to say why the gang waits", func(ctx context.Context) (bool, string, error) {
		out, err := cluster.Kubectl(ctx, "get", "events", "-n", namespace, "--field-selector=involvedObject.kind="+e.toldOf(), "-o", "jsonpath={.items[*].message}")
		return strings.Contains(out, e.waits), out, err
	})
	if names, err := cluster.Placed(t.Context(), namespace); err != nil || len(names) > 0 {
		t.Errorf("%v are placed of a gang that is told to wait (%v)", names, err)
	}
}
