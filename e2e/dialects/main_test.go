//go:build e2e

// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package dialects tests the PodGroups of other projects, with objects as the tools write them
// that make these.
package dialects

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/lockstep-k8s/lockstep/e2e/testbed"
	"github.com/lockstep-k8s/lockstep/internal/localenv"
	"github.com/lockstep-k8s/lockstep/internal/localenv/upstream"
	"github.com/lockstep-k8s/lockstep/internal/testing/documents"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
)

// cluster and groups are what the tests share: a cluster whose scheduler started before it had
// PodGroups of scheduler-plugins, and a client for these. TestMain sets them once,
// before any test.
var (
	cluster *testbed.Cluster
	groups  dynamic.NamespaceableResourceInterface
	// objects is for all kinds, and scheduler is the program.
	objects   dynamic.Interface
	scheduler *localenv.Process
)

// rightsOfSchedulerPlugins is what lets the scheduler read the groups of scheduler-plugins.
const rightsOfSchedulerPlugins = "dialects/scheduler-plugins.yaml"

// early is a namespace with a Pod in it that names a group, and was there before its kind.
const early = "early"

// constant is the scheduler that KubeRay names in its Pods.
const constant = "scheduler-plugins-scheduler"

// ofVolcano is the scheduler that most tools name in the Pods of Volcano's groups.
const ofVolcano = "volcano"

func TestMain(m *testing.M) {
	os.Exit(testbed.Main(m, localenv.Options{
		SimulatedNodes: 3, NodeCPU: "8", NodePods: 100, With: "none", Audit: true,
	}, func(ctx context.Context, c *testbed.Cluster) error {
		cluster = c
		client, err := dynamic.NewForConfig(c.Config)
		if err != nil {
			return err
		}
		objects = client
		groups = client.Resource(schema.GroupVersionResource{Group: "scheduling.x-k8s.io", Version: "v1alpha1", Resource: "podgroups"})
		if err := c.ApplyManifests(ctx, rightsOfSchedulerPlugins, "dialects/volcano.yaml", "dialects/rules.yaml"); err != nil {
			return err
		}
		if err := installKind(ctx, upstream.Volcano, dialect.Volcano.CRD()); err != nil {
			return err
		}
		also, err := alsoServed(ctx)
		if err != nil {
			return err
		}
		scheduler, err = c.StartScheduler(ctx, rules, also, ofVolcano)
		if err != nil {
			return err
		}
		if err := scheduler.WaitLog(ctx, isOn(dialect.Volcano)); err != nil {
			return err
		}
		if err := scheduler.WaitLog(ctx, "its CustomResourceDefinition is not installed"); err != nil {
			return err
		}
		if err := comeEarly(ctx); err != nil {
			return err
		}
		if err := installKind(ctx, upstream.SchedulerPlugins, dialect.SchedulerPlugins.CRD()); err != nil {
			return err
		}
		// The dialect is on from now: it is looked for every ten seconds.
		return scheduler.WaitLog(ctx, isOn(dialect.SchedulerPlugins))
	}))
}

// isOn is what the scheduler says of a dialect that is on and served.
func isOn(d dialect.Dialect) string { return isOnThough(d, "served") }

// isOnThough is what the scheduler says of a dialect that is on, for a reason or in spite of one.
func isOnThough(d dialect.Dialect, reason string) string {
	return `"Dialect of PodGroups" group="` + d.Kind().Group + `" on=true mode="Auto" reason="` + reason + `"`
}

// installKind installs a CustomResourceDefinition, and waits until the API server serves its kind.
func installKind(ctx context.Context, definition, name string) error {
	if out, err := cluster.KubectlApply(ctx, "default", definition); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	if out, err := cluster.Kubectl(ctx, "wait", "--for=condition=Established", "crd/"+name); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}

// alsoServed are the scheduler names that the Deployment of the manifests serves besides its own
// once somebody has done to it what the documents say. No node runs its Pods here.
func alsoServed(ctx context.Context) (string, error) {
	patch, err := documents.YAML("../../docs/other-podgroups.md", "ALSO_SERVE")
	if err != nil {
		return "", err
	}
	repository, err := filepath.Abs("../..")
	if err != nil {
		return "", err
	}
	if err := os.Symlink(repository, filepath.Join(cluster.Dir, "lockstep")); err != nil {
		return "", err
	}
	own := filepath.Join(cluster.Dir, "own")
	if err := os.Mkdir(own, 0o700); err != nil {
		return "", err
	}
	if err := os.WriteFile(filepath.Join(own, "kustomization.yaml"), []byte("resources: [../lockstep/manifests/scheduler]\n"+patch), 0o600); err != nil {
		return "", err
	}
	if out, err := cluster.Kubectl(ctx, "apply", "--server-side", "--force-conflicts", "-k", own); err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	deployment, err := cluster.Kube.AppsV1().Deployments("lockstep-system").Get(ctx, "lockstep-scheduler", metav1.GetOptions{})
	if err != nil {
		return "", err
	}
	container := deployment.Spec.Template.Spec.Containers[0]
	for _, arg := range container.Args {
		for _, env := range container.Env {
			arg = strings.ReplaceAll(arg, "$("+env.Name+")", env.Value)
		}
		if also, found := strings.CutPrefix(arg, "--also-serve="); found {
			return also, nil
		}
	}
	return "", fmt.Errorf("the scheduler has no flag for it: %v", container.Args)
}

// comeEarly creates Pods that name a group before there is such a kind. They are ordinary Pods,
// for which there is no room.
func comeEarly(ctx context.Context) error {
	if _, err := cluster.Kube.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: early}}, metav1.CreateOptions{}); err != nil {
		return err
	}
	if err := localenv.Await(ctx, "the service account of Pods", func(ctx context.Context) (bool, string, error) {
		_, err := cluster.Kube.CoreV1().ServiceAccounts(early).Get(ctx, "default", metav1.GetOptions{})
		return err == nil, "", err
	}); err != nil {
		return err
	}
	pod := testbed.MakePod("early-0", testbed.WithCores(9), named("scheduling.x-k8s.io/pod-group", "early"))
	if _, err := cluster.Kube.CoreV1().Pods(early).Create(ctx, pod, metav1.CreateOptions{}); err != nil {
		return err
	}
	return localenv.Await(ctx, "the Pod to find no room", func(ctx context.Context) (bool, string, error) {
		pod, err := cluster.Kube.CoreV1().Pods(early).Get(ctx, "early-0", metav1.GetOptions{})
		if err != nil {
			return false, "", err
		}
		for _, c := range pod.Status.Conditions {
			if c.Type == corev1.PodScheduled && c.Reason == corev1.PodReasonUnschedulable {
				return true, "", nil
			}
		}
		return false, fmt.Sprint(pod.Status.Conditions), nil
	})
}

// named has a Pod name a group by a label.
func named(label, group string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { pod.Labels = map[string]string{label: group} }
}

// create creates a PodGroup of scheduler-plugins with a spec, for an owner.
func create(t *testing.T, namespace, name, owner string, spec map[string]any) {
	t.Helper()
	group := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "PodGroup", "spec": spec}}
	group.SetName(name)
	if owner != "" {
		controls := true
		group.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "example.com/v1", Kind: owner, Name: name, UID: "11111111-2222-3333-4444-555555555555", Controller: &controls}})
	}
	if _, err := groups.Namespace(namespace).Create(t.Context(), group, metav1.CreateOptions{FieldManager: "tool"}); err != nil {
		t.Fatal(err)
	}
}

// waitPhase waits for a phase of a group, and returns the group.
func waitPhase(t *testing.T, namespace, name, phase string) *unstructured.Unstructured {
	t.Helper()
	var group *unstructured.Unstructured
	testbed.EventuallyWithin(t, time.Minute, "PodGroup "+name+" to be "+phase, func(ctx context.Context) (bool, string, error) {
		var err error
		group, err = groups.Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return false, "", err
		}
		got, _, err := unstructured.NestedString(group.Object, "status", "phase")
		return got == phase, fmt.Sprint(group.Object["status"]), err
	})
	return group
}
