//go:build e2e

// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package kept

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/lockstep-k8s/lockstep/e2e/testbed"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
)

// executors is how many an application has. It takes 5 of the 8 cores.
const executors = 4

// way is how somebody runs Spark.
type way struct {
	dialect   dialect.Dialect
	scheduler string
	// group is what the group of an application is named, and owner what owns it; empty for the driver.
	group func(app string) string
	owner string
	// names has a Pod name its group.
	names func(pod *corev1.Pod, group string)
	// phase is what whoever makes the group says in its status, empty for nothing.
	phase string
}

var ways = map[string]way{
	"spark-submit with Volcano's feature step": {
		dialect: dialect.Volcano, scheduler: "volcano", group: func(app string) string { return "spark-" + app + "-podgroup" },
		names: func(pod *corev1.Pod, group string) {
			pod.Annotations = map[string]string{"scheduling.k8s.io/group-name": group}
		},
	},
	"Spark operator with Volcano": {
		dialect: dialect.Volcano, scheduler: "volcano", group: func(app string) string { return "spark-" + app + "-pg" }, owner: "SparkApplication", phase: "Pending",
		names: func(pod *corev1.Pod, group string) {
			pod.Annotations = map[string]string{"scheduling.k8s.io/group-name": group}
		},
	},
	"Spark operator with scheduler-plugins": {
		dialect: dialect.SchedulerPlugins, scheduler: testbed.GangScheduler, group: func(app string) string { return app + "-pg" }, owner: "SparkApplication",
		names: func(pod *corev1.Pod, group string) { pod.Labels["scheduling.x-k8s.io/pod-group"] = group },
	},
}

// application is one of Spark's, with a namespace of its own.
type application struct {
	t         *testing.T
	way       way
	namespace string
	name      string
	driver    *corev1.Pod
	executes  bool
}

func (a *application) groups() dynamic.ResourceInterface {
	return objects.Resource(a.way.dialect.Resource()).Namespace(a.namespace)
}

// submit makes the group and then the driver. Without an operator the driver owns its group, so Spark writes
// that once more.
func (a *application) submit() {
	a.t.Helper()
	group := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"minMember": int64(1), "minResources": map[string]any{"cpu": fmt.Sprint(1 + executors), "memory": "0"}}}}
	group.SetGroupVersionKind(a.way.dialect.Kind())
	group.SetName(a.way.group(a.name))
	if a.way.phase != "" {
		group.Object["status"] = map[string]any{"phase": a.way.phase}
	}
	if a.way.owner != "" {
		group.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "sparkoperator.k8s.io/v1beta2", Kind: a.way.owner, Name: a.name, UID: "11111111-2222-3333-4444-555555555555", Controller: new(true)}})
		if _, err := a.groups().Create(a.t.Context(), group, metav1.CreateOptions{}); err != nil {
			a.t.Fatal(err)
		}
	} else {
		a.apply(group)
	}
	a.driver = a.pod(a.name+"-driver", "driver", nil)
	if a.way.owner == "" {
		group.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: a.driver.Name, UID: a.driver.UID, Controller: new(true)}})
		a.apply(group)
	}
}

func (a *application) apply(group *unstructured.Unstructured) {
	a.t.Helper()
	body, err := json.Marshal(group)
	if err != nil {
		a.t.Fatal(err)
	}
	if _, err := a.groups().Patch(a.t.Context(), group.GetName(), types.ApplyPatchType, body, metav1.PatchOptions{FieldManager: "fabric8", Force: new(true)}); err != nil {
		a.t.Fatal(err)
	}
}

func (a *application) pod(name, role string, owner *corev1.Pod) *corev1.Pod {
	a.t.Helper()
	pod := testbed.MakePod(name, func(pod *corev1.Pod) {
		pod.Labels = map[string]string{"spark-role": role, "spark-app-selector": "spark-" + a.name}
		pod.Spec.SchedulerName = a.way.scheduler
		a.way.names(pod, a.way.group(a.name))
		if owner != nil {
			pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: owner.Name, UID: owner.UID, Controller: new(true)}}
		}
	})
	made, err := cluster.Kube.CoreV1().Pods(a.namespace).Create(a.t.Context(), pod, metav1.CreateOptions{})
	if err != nil {
		a.t.Fatal(err)
	}
	return made
}

// step does what the driver does if it runs: it makes its executors. It returns how many Pods have a node.
func (a *application) step(ctx context.Context) (placed int, err error) {
	names, err := cluster.Placed(ctx, a.namespace)
	if err != nil {
		return 0, err
	}
	if slices.Contains(names, a.driver.Name) && !a.executes {
		a.executes = true
		for i := range executors {
			a.pod(fmt.Sprintf("%s-exec-%d", a.name, i+1), "executor", a.driver)
		}
	}
	return len(names), nil
}

// end has the application be over: its driver ends, and with it goes all else.
func (a *application) end() {
	a.t.Helper()
	if err := cluster.Kube.CoreV1().Pods(a.namespace).DeleteCollection(a.t.Context(), metav1.DeleteOptions{GracePeriodSeconds: new(int64)}, metav1.ListOptions{}); err != nil {
		a.t.Fatal(err)
	}
	if err := a.groups().Delete(a.t.Context(), a.way.group(a.name), metav1.DeleteOptions{}); err != nil {
		a.t.Fatal(err)
	}
}

// TestTwoApplicationsSideBySide: there is room for one and a half. One of them runs whole, and nothing of the
// other one runs before that has ended, so that neither waits for executors for ever.
func TestTwoApplicationsSideBySide(t *testing.T) {
	for name, way := range ways {
		t.Run(name, func(t *testing.T) {
			var apps []*application
			for _, name := range []string{"etl", "report"} {
				apps = append(apps, &application{t: t, way: way, namespace: cluster.Namespace(t), name: name})
			}
			for _, app := range apps {
				app.submit()
			}
			var first, second *application
			testbed.EventuallyWithin(t, time.Minute, "one application to run whole", func(ctx context.Context) (bool, string, error) {
				counts := make([]int, len(apps))
				for i, app := range apps {
					var err error
					if counts[i], err = app.step(ctx); err != nil {
						return false, "", err
					}
				}
				if counts[0] > 0 && counts[1] > 0 {
					t.Fatalf("%v Pods of both are placed, where there is room for one", counts)
				}
				first, second = apps[0], apps[1]
				if counts[1] > 0 {
					first, second = second, first
				}
				return max(counts[0], counts[1]) == 1+executors, fmt.Sprint(counts), nil
			})
			testbed.Eventually(t, "the group of the other one to say why", func(ctx context.Context) (bool, string, error) {
				said, err := cluster.Kubectl(ctx, "get", "events", "-n", second.namespace, "--field-selector=involvedObject.kind=PodGroup", "-o", "jsonpath={.items[*].message}")
				return strings.Contains(said, "there is room for its 1 member, but not for all of 4 cpu that it asks to have kept"), said, err
			})
			if placed, err := second.step(t.Context()); err != nil || placed > 0 {
				t.Errorf("%d Pods of the other one are placed (%v)", placed, err)
			}
			first.end()
			testbed.EventuallyWithin(t, time.Minute, "the other one to run whole", func(ctx context.Context) (bool, string, error) {
				placed, err := second.step(ctx)
				return placed == 1+executors, fmt.Sprint(placed), err
			})
			second.end()
		})
	}
}

// TestAGroupWaitsForRoomBeforeItsPodsAreMade, on a real API server: admit is WhenRoom.
func TestAGroupWaitsForRoomBeforeItsPodsAreMade(t *testing.T) {
	namespace := cluster.Namespace(t)
	cluster.CreatePod(t, namespace, testbed.MakePod("in-the-way", testbed.WithCores(4)))
	cluster.WaitPlaced(t, namespace, 1)
	groups := objects.Resource(dialect.Volcano.Resource()).Namespace(namespace)
	group := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"minMember": int64(2), "minResources": map[string]any{"cpu": "6"}}}}
	group.SetGroupVersionKind(dialect.Volcano.Kind())
	group.SetName("job")
	if _, err := groups.Create(t.Context(), group, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	waitStatus := func(what string, texts ...string) {
		t.Helper()
		testbed.Eventually(t, what, func(ctx context.Context) (bool, string, error) {
			group, err := groups.Get(ctx, "job", metav1.GetOptions{})
			if err != nil {
				return false, "", err
			}
			status := fmt.Sprint(group.Object["status"])
			return !slices.ContainsFunc(texts, func(text string) bool { return !strings.Contains(status, text) }), status, nil
		})
	}
	waitStatus("the group to wait", "phase:Pending", "NotEnoughResources", "its Pods may be created when the 6 cpu")
	cluster.DeletePod(t, namespace, "in-the-way")
	waitStatus("the group to be let in", "phase:Inqueue")
}
