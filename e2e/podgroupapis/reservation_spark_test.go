//go:build e2e

// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package podgroupapis

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/lockstep-k8s/lockstep/e2e/testbed"
	"github.com/lockstep-k8s/lockstep/internal/localenv"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
)

// reserving is the cluster whose scheduler keeps room for members to come, and lets groups of Volcano's in when there is
// room. It has 8 cores, and the rooms of the tests.
var reserving = startedBeside(localenv.Options{SimulatedNodes: 2, NodeCPU: "4", NodePods: 100, With: "none"}, func(ctx context.Context, c *testCluster) error {
	if err := c.installKinds(ctx); err != nil {
		return err
	}
	if err := c.ApplyManifests(ctx, rightsOfSchedulerPlugins, rightsOfVolcano); err != nil {
		return err
	}
	if err := c.runScheduler(ctx, localenv.SchedulerOptions{Args: reservations, AlsoServes: []string{ofVolcano}}); err != nil {
		return err
	}
	for _, d := range []dialect.Dialect{dialect.SchedulerPlugins, dialect.Volcano} {
		if err := c.scheduler.WaitLog(ctx, isOn(d)); err != nil {
			return err
		}
	}
	return nil
})

const reservations = `reservations:
  maxPercent: 100
  membersToCome: {namespaces: ["*"], namespaceMaxPercent: 100}
`

// coresOfApplication is what an application takes of the 8 that there are: one for each of its Pods.
const coresOfApplication = 5

// sparkWay is a way to run Spark.
type sparkWay struct {
	dialect   dialect.Dialect
	scheduler string
	// group is what the group of an application is named, and owner what owns it; empty for the driver.
	group func(app string) string
	owner string
	// names has a Pod name its group.
	names func(pod *corev1.Pod, group string)
	// phase is the phase that the maker of the group writes, empty for none.
	phase string
	// client has the driver run somewhere else, so that all Pods are executors.
	client bool
}

// executors is how many executors an application has.
func (w sparkWay) executors() int {
	if w.client {
		return coresOfApplication
	}
	return coresOfApplication - 1
}

var sparkWays = map[string]sparkWay{
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
	"Spark operator with Volcano in client mode": {
		dialect: dialect.Volcano, scheduler: "volcano", group: func(app string) string { return "spark-" + app + "-pg" }, owner: "SparkApplication", phase: "Pending", client: true,
		names: func(pod *corev1.Pod, group string) {
			pod.Annotations = map[string]string{"scheduling.k8s.io/group-name": group}
		},
	},
	"Spark operator with scheduler-plugins": {
		dialect: dialect.SchedulerPlugins, scheduler: testbed.GangScheduler, group: func(app string) string { return app + "-pg" }, owner: "SparkApplication",
		names: func(pod *corev1.Pod, group string) { pod.Labels["scheduling.x-k8s.io/pod-group"] = group },
	},
}

// waits returns what an event of the group says while there is no room for the application. In client mode the number of
// executors that the scheduler has seen by then varies, so the text ends before the numbers.
func (w sparkWay) waits() string {
	if w.client {
		return "there is room for "
	}
	return "4 of the members are still to come, for 4 cpu that the group announces"
}

// sparkApplication is an application of Spark, with a namespace of its own. It runs in a room of 8 cores.
type sparkApplication struct {
	t         *testing.T
	cluster   *testCluster
	room      *testbed.Room
	way       sparkWay
	namespace string
	name      string
	driver    *corev1.Pod
	executes  bool
}

// newSparkApplications returns applications that share a room for one and a half of them.
func newSparkApplications(t *testing.T, cluster *testCluster, way sparkWay, names ...string) []*sparkApplication {
	t.Helper()
	room := cluster.Room(t, 4, 4)
	var apps []*sparkApplication
	for _, name := range names {
		apps = append(apps, &sparkApplication{t: t, cluster: cluster, room: room, way: way, namespace: cluster.Namespace(t), name: name})
	}
	return apps
}

func (a *sparkApplication) groups() dynamic.ResourceInterface {
	return a.cluster.objects.Resource(a.way.dialect.Resource()).Namespace(a.namespace)
}

// group is the group of the application as it is made.
func (a *sparkApplication) group() *unstructured.Unstructured {
	group := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"minMember": int64(1), "minResources": map[string]any{"cpu": fmt.Sprint(coresOfApplication), "memory": "0"}}}}
	group.SetGroupVersionKind(a.way.dialect.Kind())
	group.SetName(a.way.group(a.name))
	if a.way.phase != "" {
		group.Object["status"] = map[string]any{"phase": a.way.phase}
	}
	if a.way.owner != "" {
		group.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "sparkoperator.k8s.io/v1beta2", Kind: a.way.owner, Name: a.name, UID: "11111111-2222-3333-4444-555555555555", Controller: new(true)}})
	}
	return group
}

// submit makes the group and then the driver. Without an operator the driver owns its group, so Spark writes
// that once more.
func (a *sparkApplication) submit() {
	a.t.Helper()
	group := a.group()
	if a.way.owner != "" {
		if _, err := a.groups().Create(a.t.Context(), group, metav1.CreateOptions{}); err != nil {
			a.t.Fatal(err)
		}
	} else {
		a.apply(group)
	}
	if a.way.client {
		return
	}
	a.driver = a.pod(a.name+"-driver", "driver", nil)
	if a.way.owner == "" {
		group.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: a.driver.Name, UID: a.driver.UID, Controller: new(true)}})
		a.apply(group)
	}
}

// submitAgain writes the group that is there once more, and then makes another driver.
func (a *sparkApplication) submitAgain() {
	a.t.Helper()
	group := a.group()
	if _, err := a.groups().Update(a.t.Context(), group, metav1.UpdateOptions{}); !apierrors.IsInvalid(err) {
		a.t.Errorf("the group was written without its resourceVersion: %v", err)
	}
	testbed.Eventually(a.t, "the group to be written again", func(ctx context.Context) (bool, string, error) {
		current, err := a.groups().Get(ctx, group.GetName(), metav1.GetOptions{})
		if err != nil {
			return false, "", err
		}
		group.SetResourceVersion(current.GetResourceVersion())
		_, err = a.groups().Update(ctx, group, metav1.UpdateOptions{})
		return err == nil, "", err
	})
	a.driver, a.executes = a.pod(a.name+"-driver", "driver", nil), false
}

func (a *sparkApplication) apply(group *unstructured.Unstructured) {
	a.t.Helper()
	body, err := json.Marshal(group)
	if err != nil {
		a.t.Fatal(err)
	}
	if _, err := a.groups().Patch(a.t.Context(), group.GetName(), types.ApplyPatchType, body, metav1.PatchOptions{FieldManager: "fabric8", Force: new(true)}); err != nil {
		a.t.Fatal(err)
	}
}

func (a *sparkApplication) pod(name, role string, owner *corev1.Pod) *corev1.Pod {
	a.t.Helper()
	pod := testbed.MakePod(name, func(pod *corev1.Pod) {
		pod.Labels = map[string]string{"spark-role": role, "spark-app-selector": "spark-" + a.name}
		pod.Spec.SchedulerName = a.way.scheduler
		a.way.names(pod, a.way.group(a.name))
		a.room.Confine(pod)
		if owner != nil {
			pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: owner.Name, UID: owner.UID, Controller: new(true)}}
		}
	})
	made, err := a.cluster.Kube.CoreV1().Pods(a.namespace).Create(a.t.Context(), pod, metav1.CreateOptions{})
	if err != nil {
		a.t.Fatal(err)
	}
	return made
}

// step does what the driver does if it runs: it makes its executors. It returns how many Pods have a node.
func (a *sparkApplication) step(ctx context.Context) (placed int, err error) {
	names, err := a.cluster.Placed(ctx, a.namespace)
	if err != nil {
		return 0, err
	}
	if !a.executes && (a.way.client || slices.Contains(names, a.driver.Name)) {
		a.executes = true
		for i := range a.way.executors() {
			a.pod(fmt.Sprintf("%s-exec-%d", a.name, i+1), "executor", a.driver)
		}
	}
	return len(names), nil
}

// waitWhole has the driver make its executors, until all Pods have a node.
func (a *sparkApplication) waitWhole() {
	a.t.Helper()
	testbed.Eventually(a.t, a.name+" to run whole", func(ctx context.Context) (bool, string, error) {
		placed, err := a.step(ctx)
		return placed == coresOfApplication, fmt.Sprint(placed), err
	})
}

// lose has all Pods of the application be gone. Its group stays.
func (a *sparkApplication) lose() {
	a.t.Helper()
	if err := a.cluster.Kube.CoreV1().Pods(a.namespace).DeleteCollection(a.t.Context(), metav1.DeleteOptions{GracePeriodSeconds: new(int64)}, metav1.ListOptions{}); err != nil {
		a.t.Fatal(err)
	}
}

// keptItsRoom checks that no other Pod took the room that the scheduler kept for the executors.
func (a *sparkApplication) keptItsRoom() {
	a.t.Helper()
	lost, err := a.cluster.Messages(a.t.Context(), a.namespace, "reason=ReservationLost")
	if err != nil || lost != "" {
		a.t.Errorf("%s is told: %s (%v)", a.name, lost, err)
	}
}

// end has the application be over: its driver ends, and with it goes all else. A group that the driver owns
// may be collected with it.
func (a *sparkApplication) end() {
	a.t.Helper()
	a.lose()
	if err := a.groups().Delete(a.t.Context(), a.way.group(a.name), metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		a.t.Fatal(err)
	}
}

// waitsForRoom creates an ordinary Pod, and waits until the scheduler reports that there is no room for it.
func (c *testCluster) waitsForRoom(t *testing.T, room *testbed.Room, namespace, name string, cores int) {
	t.Helper()
	c.CreatePod(t, namespace, testbed.MakePod(name, testbed.WithCores(cores), room.Confine))
	testbed.Eventually(t, name+" to find no room", func(ctx context.Context) (bool, string, error) {
		pod, err := c.Kube.CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return false, "", err
		}
		if pod.Spec.NodeName != "" {
			t.Fatalf("%s is placed on %s, in room that is kept", name, pod.Spec.NodeName)
		}
		refused := slices.ContainsFunc(pod.Status.Conditions, func(condition corev1.PodCondition) bool {
			return condition.Type == corev1.PodScheduled && condition.Reason == corev1.PodReasonUnschedulable
		})
		return refused, fmt.Sprint(pod.Status.Conditions), nil
	})
}

// TestTwoApplicationsSideBySide: there is room for one and a half. One of them runs whole, and nothing of the
// other one runs before that has ended, so that neither waits for executors for ever.
func TestTwoApplicationsSideBySide(t *testing.T) {
	cluster := reserving.parallel(t)
	for name, way := range sparkWays {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			apps := newSparkApplications(t, cluster, way, "etl", "report")
			for _, app := range apps {
				app.submit()
			}
			var first, second *sparkApplication
			testbed.Eventually(t, "one application to run whole", func(ctx context.Context) (bool, string, error) {
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
				return max(counts[0], counts[1]) == coresOfApplication, fmt.Sprint(counts), nil
			})
			cluster.WaitMessage(t, second.namespace, "involvedObject.kind=PodGroup", way.waits())
			if placed, err := second.step(t.Context()); err != nil || placed > 0 {
				t.Errorf("%d Pods of the other one are placed (%v)", placed, err)
			}
			first.keptItsRoom()
			first.end()
			second.waitWhole()
			second.end()
		})
	}
}

// TestAnApplicationIsSubmittedAgain: the operator writes the group that is there once more, and makes another
// driver. Room is kept for its executors as for those of the first one.
func TestAnApplicationIsSubmittedAgain(t *testing.T) {
	cluster := reserving.parallel(t)
	app := newSparkApplications(t, cluster, sparkWays["Spark operator with scheduler-plugins"], "etl")[0]
	app.submit()
	app.waitWhole()
	app.lose()
	app.submitAgain()
	cluster.WaitPlaced(t, app.namespace, 1)
	others := cluster.Namespace(t)
	cluster.waitsForRoom(t, app.room, others, "ordinary", 4)
	app.waitWhole()
	app.end()
	cluster.WaitPlaced(t, others, 1)
}

// TestAnApplicationOfTheClustersOwnSchedulerIsLeftAlone: with the operator's default alone there is a group, and
// the Pods name no scheduler. They are placed as they come, the group is not written, and nothing is kept for it.
func TestAnApplicationOfTheClustersOwnSchedulerIsLeftAlone(t *testing.T) {
	cluster := reserving.parallel(t)
	way := sparkWays["Spark operator with scheduler-plugins"]
	way.scheduler = corev1.DefaultSchedulerName
	app := newSparkApplications(t, cluster, way, "etl")[0]
	app.submit()
	cluster.WaitPlaced(t, app.namespace, 1)
	others := cluster.Namespace(t)
	for _, name := range []string{"ordinary", "another"} {
		cluster.CreatePod(t, others, testbed.MakePod(name, testbed.WithCores(3), app.room.Confine))
	}
	cluster.WaitPlaced(t, others, 2)
	group, err := app.groups().Get(t.Context(), app.way.group(app.name), metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if status := group.Object["status"]; status != nil {
		t.Errorf("the status %v was written to a group of another scheduler", status)
	}
	app.end()
}
