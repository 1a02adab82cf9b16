// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package pages makes what pages of the documents show of gangs, and looks that it is so. A block that begins with
// "yaml runs" has objects as a tool makes them, in its order, and all Pods of them are placed. Where its documents are
// separated by "--- # once …", what follows is made once the Pods before it have a node. Pods of a block that begins
// with "yaml waits" have no place, and the block after it is what is told of that.
package pages

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/lockstep-k8s/lockstep/e2e/testbed"
	"github.com/lockstep-k8s/lockstep/internal/localenv"
)

// placedWord says of a group, by its kind, whether it says that its gang is placed, and what it
// says. Another API is one more row.
var placedWord = map[string]func(group *unstructured.Unstructured) (placed bool, says string){
	"scheduling.x-k8s.io":   runs,
	"scheduling.volcano.sh": runs,
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

func runs(group *unstructured.Unstructured) (bool, string) {
	phase, _, _ := unstructured.NestedString(group.Object, "status", "phase")
	return phase == "Running", phase
}

// Example is one of a page: objects as somebody makes them.
type Example struct {
	Page, Manifest string
	// Waits is the message by which the gang is told why it waits, empty if it runs.
	Waits string
}

var (
	// block finds the examples of a page, and the message after one that waits.
	block = regexp.MustCompile("(?s)\n```yaml (runs|waits)\n(.*?)\n```(?:\n+```text\n(.*?)\n```)?")
	// once separates what is made once the Pods before it have a node.
	once = regexp.MustCompile(`(?m)^--- # once .*$`)
)

// Of are the examples of a page, by name. There is one at least.
func Of(t testing.TB, path string) map[string]Example {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	page := strings.TrimSuffix(filepath.Base(path), ".md")
	examples := make(map[string]Example)
	runs := false
	for i, found := range block.FindAllStringSubmatch(string(text), -1) {
		waits := strings.Join(strings.Fields(found[3]), " ")
		if (found[1] == "waits") != (waits != "") {
			t.Errorf("%s: an example that waits is followed by its message, and no other is:\n%s", page, found[2])
		}
		runs = runs || waits == ""
		examples[fmt.Sprintf("%s/%d-%s", page, i, found[1])] = Example{Page: page, Manifest: found[2], Waits: waits}
	}
	if !runs {
		t.Errorf("%s: no example shows what runs", page)
	}
	return examples
}

// Check makes the objects of the example in a namespace that has nothing else, and checks that what the page says of them
// is so.
func (e *Example) Check(t *testing.T, cluster *testbed.Cluster, namespace string) {
	t.Helper()
	groups := e.make(t, cluster, namespace)
	if e.Waits != "" {
		e.ExpectWaiting(t, cluster, namespace)
		return
	}
	for _, group := range groups {
		group.expectPlaced(t, cluster)
	}
}

// Make makes the objects of an example that waits in a namespace that has nothing else. ExpectWaiting is for later, as the
// scheduler may take a minute to report the likely cause.
func (e *Example) Make(t *testing.T, cluster *testbed.Cluster, namespace string) {
	t.Helper()
	e.make(t, cluster, namespace)
}

// make makes the objects, waits between their stages, and returns the groups among them.
func (e *Example) make(t *testing.T, cluster *testbed.Cluster, namespace string) []created {
	t.Helper()
	client, err := dynamic.NewForConfig(cluster.Config)
	if err != nil {
		t.Fatal(err)
	}
	m := &maker{t: t, cluster: cluster, client: client, namespace: namespace, page: e.Page}
	for _, stage := range once.Split(e.Manifest, -1) {
		m.make(stage)
		if e.Waits == "" {
			cluster.WaitPlaced(t, namespace, m.pods)
		}
	}
	return m.groups
}

// maker makes the objects of an example.
type maker struct {
	t               *testing.T
	cluster         *testbed.Cluster
	client          dynamic.Interface
	namespace, page string
	// groups are those that it has made, and pods is how many Pods there are to be.
	groups []created
	pods   int
	// uids are those of objects: as on the page, as it is, and so on.
	uids []string
}

// created is a group that was created by an example.
type created struct {
	client dynamic.ResourceInterface
	object *unstructured.Unstructured
}

// make creates objects one after the other. A UID that an object has on the page stands for the one that it gets.
func (m *maker) make(manifest string) {
	m.t.Helper()
	_, err := localenv.EditManifest([]byte(manifest), func(object *unstructured.Unstructured) error {
		onPage := string(object.GetUID())
		text, err := object.MarshalJSON()
		if err != nil {
			return err
		}
		if err := object.UnmarshalJSON([]byte(strings.NewReplacer(m.uids...).Replace(string(text)))); err != nil {
			return err
		}
		to := m.client.Resource(object.GroupVersionKind().GroupVersion().WithResource(strings.ToLower(object.GetKind()) + "s")).Namespace(m.namespace)
		made, err := to.Create(m.t.Context(), object, metav1.CreateOptions{FieldManager: m.page})
		if err != nil {
			return err
		}
		if onPage != "" {
			m.uids = append(m.uids, onPage, string(made.GetUID()))
		}
		switch object.GetKind() {
		case "Pod":
			m.pods++
		case "PodGroup":
			m.groups = append(m.groups, created{client: to, object: made})
		case "Job": // whose Pods Kubernetes makes
			parallelism, _, err := unstructured.NestedInt64(object.Object, "spec", "parallelism")
			m.pods += int(parallelism)
			return err
		}
		return nil
	})
	if err != nil {
		m.t.Fatal(err)
	}
}

// expectPlaced waits until a group says that its gang is placed, and looks that nothing else of
// it was written, and not often.
func (c created) expectPlaced(t *testing.T, cluster *testbed.Cluster) {
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

// toldOf is the kind of the object that is told why the gang waits: a Pod if there is no group. The controller makes
// groups for Jobs and JobSets.
func (e *Example) toldOf() string {
	for _, kind := range []string{"PodGroup", "Job", "JobSet"} {
		if strings.Contains(e.Manifest, "kind: "+kind+"\n") {
			return "PodGroup"
		}
	}
	return "Pod"
}

// ExpectWaiting waits until an event on a group has the message of the example, and checks that no Pod is placed.
func (e *Example) ExpectWaiting(t *testing.T, cluster *testbed.Cluster, namespace string) {
	t.Helper()
	cluster.WaitMessage(t, namespace, "involvedObject.kind="+e.toldOf(), e.Waits)
	if names, err := cluster.Placed(t.Context(), namespace); err != nil || len(names) > 0 {
		t.Errorf("%v are placed of a gang that is told to wait (%v)", names, err)
	}
}
