//go:build e2e

// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package dialects tests the PodGroups of other projects, with objects as the tools write them
// that make these.
package dialects

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
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
	"github.com/lockstep-k8s/lockstep/manifests"
)

// cluster and groups are what the tests share: a cluster whose scheduler started before it had
// any PodGroups of others, and a client for those of scheduler-plugins. TestMain sets them once,
// before any test.
var (
	cluster *testbed.Cluster
	groups  dynamic.NamespaceableResourceInterface
	// objects is for all kinds, and scheduler is the program.
	objects   dynamic.Interface
	scheduler *localenv.Process
)

// early is a namespace with a Pod in it that names a group, and was there before its kind.
const early = "early"

// constant is the scheduler that KubeRay names in its Pods.
const constant = "scheduler-plugins-scheduler"

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
		rights, err := manifests.FS.ReadFile("dialects/scheduler-plugins.yaml")
		if err != nil {
			return err
		}
		if out, err := c.KubectlApply(ctx, "default", string(rights)); err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		rights, err = manifests.FS.ReadFile("dialects/rules.yaml")
		if err != nil {
			return err
		}
		if out, err := c.KubectlApply(ctx, "default", string(rights)); err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		also, err := alsoServed(ctx)
		if err != nil {
			return err
		}
		scheduler, err = c.StartScheduler(ctx, rules, also)
		if err != nil {
			return err
		}
		if err := scheduler.WaitLog(ctx, "its CustomResourceDefinition is not installed"); err != nil {
			return err
		}
		if err := comeEarly(ctx); err != nil {
			return err
		}
		if out, err := c.KubectlApply(ctx, "default", upstream.SchedulerPlugins); err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		if out, err := c.Kubectl(ctx, "wait", "--for=condition=Established", "crd/podgroups.scheduling.x-k8s.io"); err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		// The dialect is on from now: it is looked for every ten seconds.
		return scheduler.WaitLog(ctx, `on=true mode="Auto" reason="served"`)
	}))
}

// setEnv is the line of the documents that has more scheduler names served.
var setEnv = regexp.MustCompile(`(?m)^ *\$ kubectl (-n lockstep-system set env deployment/\S+ ALSO_SERVE=\S+)$`)

// alsoServed are the scheduler names that the Deployment of the manifests serves besides its own
// once somebody has done to it what the documents say. No node runs its Pods here.
func alsoServed(ctx context.Context) (string, error) {
	text, err := os.ReadFile("../../docs/other-podgroups.md")
	if err != nil {
		return "", err
	}
	line := setEnv.FindStringSubmatch(string(text))
	if line == nil {
		return "", errors.New("the documents don't say how to serve more scheduler names")
	}
	if out, err := cluster.Kubectl(ctx, "apply", "-f", "../../manifests/scheduler/deployment.yaml"); err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	if out, err := cluster.Kubectl(ctx, strings.Fields(line[1])...); err != nil {
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
