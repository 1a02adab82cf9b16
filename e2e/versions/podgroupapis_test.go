//go:build e2e

// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package versions

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/lockstep-k8s/lockstep/e2e/testbed"
	"github.com/lockstep-k8s/lockstep/internal/localenv"
	"github.com/lockstep-k8s/lockstep/internal/localenv/upstream"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
)

// ofVolcano is the scheduler that Pods of Volcano's groups name.
const ofVolcano = "volcano"

// otherGroup is a PodGroup of another project, and the Pods that name it.
type otherGroup struct {
	resource schema.GroupVersionResource
	name     string
	spec     map[string]any
	names    func(pod *corev1.Pod)
	// isPlaced says whether a status says that the gang is placed.
	isPlaced func(status map[string]any) bool
}

// runs says whether a status has the phase of gangs that are placed.
func runs(status map[string]any) bool { return status["phase"] == dialect.PhaseRunning }

func ofSchedulerPlugins() otherGroup {
	return otherGroup{resource: dialect.SchedulerPlugins.Resource(), name: "of-scheduler-plugins", spec: map[string]any{"minMember": int64(2)},
		names: func(pod *corev1.Pod) {
			pod.Labels = map[string]string{"scheduling.x-k8s.io/pod-group": "of-scheduler-plugins"}
		}, isPlaced: runs}
}

func ofVolcanos() otherGroup {
	return otherGroup{resource: dialect.Volcano.Resource(), name: "of-volcano", spec: map[string]any{"minMember": int64(2), "queue": "default"},
		names: func(pod *corev1.Pod) {
			pod.Annotations = map[string]string{"scheduling.k8s.io/group-name": "of-volcano"}
			pod.Spec.SchedulerName = ofVolcano
		}, isPlaced: runs}
}

// kubernetesGroups are the versions of Kubernetes' own PodGroups that its minor versions have, and the
// condition that says that a gang is placed. Older ones have none.
var kubernetesGroups = map[string]struct{ version, condition string }{
	"":     {"v1beta1", "PodGroupInitiallyScheduled"},
	"1.37": {"v1beta1", "PodGroupInitiallyScheduled"},
	"1.36": {"v1alpha2", "PodGroupScheduled"},
}

func ofKubernetes(version, condition string) otherGroup {
	name := "of-kubernetes"
	return otherGroup{resource: schema.GroupVersionResource{Group: "scheduling.k8s.io", Version: version, Resource: "podgroups"}, name: name,
		spec:  map[string]any{"schedulingPolicy": map[string]any{"gang": map[string]any{"minCount": int64(2)}}},
		names: func(pod *corev1.Pod) { pod.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: &name} },
		isPlaced: func(status map[string]any) bool {
			conditions, _ := status["conditions"].([]any)
			for _, c := range conditions {
				if c, _ := c.(map[string]any); c["type"] == condition {
					return c["status"] == "True"
				}
			}
			return false
		}}
}

// grant gives the scheduler the rights of a manifest of manifests/podgroup-apis.
func (w *world) grant(name string) {
	w.t.Helper()
	if err := w.ApplyManifests(w.t.Context(), "podgroup-apis/"+name+".yaml"); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) apply(manifest string) {
	w.t.Helper()
	if out, err := w.KubectlApply(w.t.Context(), namespace, manifest); err != nil {
		w.t.Fatalf("%v: %s", err, out)
	}
}

// install installs the kinds of groups that other projects bring, with the scheduler's rights to them.
func (w *world) install() {
	w.t.Helper()
	for _, kind := range []struct {
		of               dialect.Dialect
		rights, manifest string
	}{{dialect.SchedulerPlugins, "scheduler-plugins", upstream.SchedulerPlugins}, {dialect.Volcano, "volcano", upstream.Volcano}} {
		w.grant(kind.rights)
		w.apply(kind.manifest)
		if out, err := w.Kubectl(w.t.Context(), "wait", "--for=condition=Established", "crd/"+kind.of.CRD()); err != nil {
			w.t.Fatalf("%v: %s", err, out)
		}
	}
}

// othersGangIsPlaced has a gang of another project's wait for its second member, and be placed with it.
func othersGangIsPlaced(g otherGroup) func(w *world) {
	return func(w *world) {
		client, err := dynamic.NewForConfig(w.Config)
		if err != nil {
			w.t.Fatal(err)
		}
		groups := client.Resource(g.resource).Namespace(namespace)
		group := &unstructured.Unstructured{Object: map[string]any{"spec": g.spec}}
		group.SetGroupVersionKind(g.resource.GroupVersion().WithKind("PodGroup"))
		group.SetName(g.name)
		if _, err := groups.Create(w.t.Context(), group, metav1.CreateOptions{}); err != nil {
			w.t.Fatal(err)
		}
		w.pod(g.name+"-0", g.names)
		testbed.Eventually(w.t, "an event to say that a member of "+g.name+" is missing", func(ctx context.Context) (bool, string, error) {
			out, err := w.Kubectl(ctx, "get", "events", "-n", namespace, "--field-selector=involvedObject.kind=PodGroup,involvedObject.name="+g.name, "-o", "jsonpath={.items[*].message}")
			return strings.Contains(out, "1 of at least 2 members exist"), out, err
		})
		if names, err := w.Placed(w.t.Context(), namespace); err != nil || slices.Contains(names, g.name+"-0") {
			w.t.Errorf("%v are placed, and one of the gang is missing (%v)", names, err)
		}
		w.pod(g.name+"-1", g.names)
		w.waitPlaced(testbed.Patience, g.name+"-0", g.name+"-1")
		testbed.Eventually(w.t, "PodGroup "+g.name+" to say that its gang is placed", func(ctx context.Context) (bool, string, error) {
			group, err := groups.Get(ctx, g.name, metav1.GetOptions{})
			if err != nil {
				return false, "", err
			}
			status, _, err := unstructured.NestedMap(group.Object, "status")
			return g.isPlaced(status), fmt.Sprint(status), err
		})
		w.delete(g.name+"-0", g.name+"-1")
		if err := groups.Delete(w.t.Context(), g.name, metav1.DeleteOptions{}); err != nil {
			w.t.Fatal(err)
		}
	}
}

// TestPodGroupsOfKubernetesOnAKubernetesVersion: where they can be switched on they are a gang. An older API
// server drops the name of the group from new Pods, which are ordinary ones then.
func TestPodGroupsOfKubernetesOnAKubernetesVersion(t *testing.T) {
	o := localenv.Options{KubernetesVersion: testbed.KubernetesVersion()}
	has, served := kubernetesGroups[o.KubernetesVersion]
	if served {
		o.RuntimeConfig, o.FeatureGates = "scheduling.k8s.io/"+has.version+"=true", "GenericWorkload=true"
	}
	w := up(t, o)
	w.grant("native")
	scheduler := w.startScheduler()
	ctx, cancel := context.WithTimeout(t.Context(), testbed.Patience)
	defer cancel()
	if err := scheduler.WaitLog(ctx, `"PodGroup API" group="scheduling.k8s.io" on=true`); err != nil {
		t.Fatal(err)
	}
	g := ofKubernetes(has.version, has.condition)
	if served {
		othersGangIsPlaced(g)(w)
		return
	}
	w.pod(g.name+"-0", g.names)
	w.waitPlaced(testbed.Patience, g.name+"-0")
	pod, err := w.Kube.CoreV1().Pods(namespace).Get(t.Context(), g.name+"-0", metav1.GetOptions{})
	if err != nil || pod.Spec.SchedulingGroup != nil {
		t.Errorf("the Pod names the group %v (%v), and this API server is not to know of that", pod.Spec.SchedulingGroup, err)
	}
}

// TestAKindOfPodGroupsIsTakenAwayAndComesBack while the scheduler runs, by its CustomResourceDefinition, and then the
// scheduler is killed. Pods that name a group wait all the time, also with the scheduler that takes over, and no member is
// placed by itself. When the kind is back, the scheduler ends, to be started again.
func TestAKindOfPodGroupsIsTakenAwayAndComesBack(t *testing.T) {
	w := up(t, localenv.Options{})
	w.install()
	address, err := testbed.FreeAddress()
	if err != nil {
		t.Fatal(err)
	}
	options := localenv.SchedulerOptions{Address: address}
	scheduler := w.startSchedulerWith(options)
	measured := w.podGroupAPIsOf(address, w.ReaderOfMetrics(t, namespace))
	g := ofSchedulerPlugins()
	othersGangIsPlaced(g)(w)
	measured(`reason="served"} 1`)
	if out, err := w.Kubectl(t.Context(), "delete", "crd", dialect.SchedulerPlugins.CRD()); err != nil {
		t.Fatal(err, out)
	}
	w.pod("early", g.names)
	w.waitTold("early", servesNoneOfSchedulerPlugins)
	measured(`reason="its CustomResourceDefinition is not installed"} 0`)
	w.pod("ordinary")
	w.waitPlaced(testbed.Patience, "ordinary")

	scheduler.Kill()
	scheduler = w.startSchedulerWith(options)
	w.pod("late", g.names)
	w.waitTold("late", servesNoneOfSchedulerPlugins)
	w.pod("another")
	w.waitPlaced(testbed.Patience, "another")
	if names, err := w.Placed(t.Context(), namespace); err != nil || slices.Contains(names, "early") || slices.Contains(names, "late") {
		t.Errorf("%v are placed (%v), want no Pod that names a group", names, err)
	}
	w.delete("early", "late", "ordinary", "another")
	w.install()
	w.awaitEnd(scheduler)
	w.startSchedulerWith(options)
	othersGangIsPlaced(g)(w)
	measured(`reason="served"} 1`)
}

// awaitEnd waits until a scheduler has ended in good order because a kind has come.
func (w *world) awaitEnd(scheduler *localenv.Process) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), testbed.Patience)
	defer cancel()
	if err := scheduler.WaitLog(ctx, "the program ends, to be started again"); err != nil {
		w.t.Fatal(err)
	}
	select {
	case <-scheduler.Done():
	case <-ctx.Done():
		w.t.Fatal("the scheduler does not end")
	}
}

// podGroupAPIsOf returns a function that checks what the metric of a scheduler says of the groups of scheduler-plugins.
func (w *world) podGroupAPIsOf(address, token string) func(want string) {
	return func(want string) {
		w.t.Helper()
		_, text := testbed.MustAsk(w.t, "https://"+address+"/metrics", token)
		var got []string
		for line := range strings.Lines(text) {
			if rest, found := strings.CutPrefix(strings.TrimSpace(line), `lockstep_scheduler_podgroup_apis{group="scheduling.x-k8s.io",mode="Auto",`); found {
				got = append(got, rest)
			}
		}
		if !slices.Equal(got, []string{want}) {
			w.t.Errorf("the metric says %q, want %q", got, want)
		}
	}
}

// servesNoneOfSchedulerPlugins is what Pods are told that name a group of that kind when there can be none.
const servesNoneOfSchedulerPlugins = "the API server serves no PodGroups of scheduling.x-k8s.io: the CustomResourceDefinition podgroups.scheduling.x-k8s.io is missing"

// TestAKindThatIsNotThereKeepsTheSchedulerReady: its mode is On, so the Pods that name such a group wait, and
// nobody else does. They are placed when the kind is there.
func TestAKindThatIsNotThereKeepsTheSchedulerReady(t *testing.T) {
	w := up(t, localenv.Options{})
	w.grant("scheduler-plugins")
	address, err := testbed.FreeAddress()
	if err != nil {
		t.Fatal(err)
	}
	options := localenv.SchedulerOptions{Args: `podGroupAPIs: {schedulerPlugins: {mode: "On"}}`, Address: address}
	scheduler := w.startSchedulerWith(options)
	g := ofSchedulerPlugins()
	w.pod("early", g.names)
	w.pod("ordinary")
	w.waitPlaced(testbed.Patience, "ordinary")
	w.waitTold("early", servesNoneOfSchedulerPlugins)
	if status, said, err := testbed.Ask(t.Context(), "https://"+address+"/readyz", ""); err != nil || status != http.StatusOK {
		t.Errorf("the scheduler says whether it is ready by %d (%v), want %d: %s", status, err, http.StatusOK, said)
	}
	w.delete("early", "ordinary")
	w.install()
	w.awaitEnd(scheduler)
	w.startSchedulerWith(options)
	othersGangIsPlaced(g)(w)
}
