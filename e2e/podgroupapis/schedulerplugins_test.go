//go:build e2e

// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package podgroupapis

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/lockstep-k8s/lockstep/e2e/testbed"
	"github.com/lockstep-k8s/lockstep/internal/localenv/jobs"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
)

// label is the label by which Pods name a group of scheduler-plugins.
const label = "scheduling.x-k8s.io/pod-group"

// groupsOfPlugins returns a client for groups of scheduler-plugins in a namespace.
func (c *testCluster) groupsOfPlugins(namespace string) dynamic.ResourceInterface {
	return c.objects.Resource(dialect.SchedulerPlugins.Resource()).Namespace(namespace)
}

// createGroupOfPlugins creates a PodGroup of scheduler-plugins with a spec, for an owner.
func (c *testCluster) createGroupOfPlugins(t *testing.T, namespace, name, owner string, spec map[string]any) {
	t.Helper()
	group := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	group.SetGroupVersionKind(dialect.SchedulerPlugins.Kind())
	group.SetName(name)
	if owner != "" {
		group.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "example.com/v1", Kind: owner, Name: name, UID: "11111111-2222-3333-4444-555555555555", Controller: new(true)}})
	}
	if _, err := c.groupsOfPlugins(namespace).Create(t.Context(), group, metav1.CreateOptions{FieldManager: "tool"}); err != nil {
		t.Fatal(err)
	}
}

// waitPhase waits until a group of scheduler-plugins has a phase, and returns the group.
func waitPhase(t *testing.T, namespace, name, phase string) *unstructured.Unstructured {
	t.Helper()
	var group *unstructured.Unstructured
	testbed.Eventually(t, "PodGroup "+name+" to be "+phase, func(ctx context.Context) (bool, string, error) {
		var err error
		group, err = cluster.groupsOfPlugins(namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return false, "", err
		}
		got, _, err := unstructured.NestedString(group.Object, "status", "phase")
		return got == phase, fmt.Sprint(group.Object["status"]), err
	})
	return group
}

// named has a Pod name a group by a label.
func named(label, group string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { pod.Labels = map[string]string{label: group} }
}

// ofScheduler has a Pod name a scheduler.
func ofScheduler(name string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { pod.Spec.SchedulerName = name }
}

// runsFor has a Pod end with success after a number of seconds.
func runsFor(seconds int) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.Annotations = map[string]string{jobs.AnnotationRunSeconds: fmt.Sprint(seconds), jobs.AnnotationExitCode: "0"}
	}
}

// TestTheGangsOfOtherToolsRun: of tools that write PodGroups of scheduler-plugins. Each group is
// placed when its last member comes, says how far it is, and nothing else of it is changed.
func TestTheGangsOfOtherToolsRun(t *testing.T) {
	t.Parallel()
	tools := map[string]struct {
		label, owner, scheduler string
		spec                    map[string]any
	}{
		"training-operator, told to use another gang scheduler than Volcano": {label, "TFJob", testbed.GangScheduler,
			map[string]any{"minMember": int64(3), "minResources": map[string]any{"cpu": "3"}}},
		"mpi-operator, which always writes a time-out": {label, "MPIJob", testbed.GangScheduler,
			map[string]any{"minMember": int64(3), "minResources": map[string]any{"cpu": "3"}, "scheduleTimeoutSeconds": int64(0)}},
		"Trainer": {label, "TrainJob", testbed.GangScheduler,
			map[string]any{"minMember": int64(3), "minResources": map[string]any{"cpu": "3"}, "scheduleTimeoutSeconds": int64(60)}},
		"KubeRay, whose Pods name a scheduler of its own choice": {label, "", ofKubeRay,
			map[string]any{"minMember": int64(3), "minResources": map[string]any{"cpu": "3"}}},
		"RBG, which has an old label": {"pod-group.scheduling.sigs.k8s.io/name", "RoleBasedGroup", testbed.GangScheduler,
			map[string]any{"minMember": int64(3), "scheduleTimeoutSeconds": int64(60)}},
	}
	for name, tool := range tools {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			namespace := cluster.Namespace(t)
			member := func(i int) {
				cluster.CreatePod(t, namespace, testbed.MakePod(fmt.Sprintf("job-%d", i), named(tool.label, "job"), ofScheduler(tool.scheduler), runsFor(3)))
			}
			cluster.createGroupOfPlugins(t, namespace, "job", tool.owner, tool.spec)
			member(0)
			member(1)
			waitPhase(t, namespace, "job", "Pending")
			cluster.WaitMessage(t, namespace, "involvedObject.kind=PodGroup,reason=NotEnoughTasks", "2 of at least 3 members exist")
			if names, err := cluster.Placed(t.Context(), namespace); err != nil || len(names) > 0 {
				t.Errorf("%v are placed, and one of the gang is missing (%v)", names, err)
			}
			member(2)
			cluster.WaitPlaced(t, namespace, 3)
			group := waitPhase(t, namespace, "job", "Finished")
			if generation := group.GetGeneration(); generation != 1 {
				t.Errorf("the generation of the group is %d: its spec was changed", generation)
			}
			for _, fields := range group.GetManagedFields() {
				if fields.Manager != "tool" && (fields.Manager != "lockstep-scheduler" || fields.Subresource != "status") {
					t.Errorf("%s has written the group, by subresource %q", fields.Manager, fields.Subresource)
				}
			}
			if status := fmt.Sprint(group.Object["status"]); !strings.Contains(status, "succeeded:3") {
				t.Errorf("the status says %s, want 3 that have succeeded", status)
			}
		})
	}
}

// TestAGangOfAnotherToolWaitsForRoomOfAll: none of it is bound while there is room for a part.
func TestAGangOfAnotherToolWaitsForRoomOfAll(t *testing.T) {
	t.Parallel()
	room := cluster.Room(t, 8, 8, 8)
	namespace := cluster.Namespace(t)
	cluster.createGroupOfPlugins(t, namespace, "large", "TFJob", map[string]any{"minMember": int64(4)})
	for i := range 4 {
		cluster.CreatePod(t, namespace, testbed.MakePod(fmt.Sprintf("large-%d", i), testbed.WithCores(7), named(label, "large"), room.Confine))
	}
	cluster.WaitMessage(t, namespace, "involvedObject.kind=PodGroup,reason=NotEnoughResources", "there is room for 3 of the 4 members that are needed")
	waitPhase(t, namespace, "large", "Scheduling")
	if names, err := cluster.Placed(t.Context(), namespace); err != nil || len(names) > 0 {
		t.Errorf("%v are placed of a gang that does not fit (%v)", names, err)
	}
}

// TestTheGroupsOfOtherSchedulersAreLeftAlone, and so are their Pods.
func TestTheGroupsOfOtherSchedulersAreLeftAlone(t *testing.T) {
	t.Parallel()
	namespace := cluster.Namespace(t)
	cluster.createGroupOfPlugins(t, namespace, "theirs", "TFJob", map[string]any{"minMember": int64(1)})
	cluster.CreatePod(t, namespace, testbed.MakePod("theirs-0", named(label, "theirs"), ofScheduler("another")))
	testbed.Consistently(t, "nobody to write the group", 5*time.Second, func(ctx context.Context) (bool, string, error) {
		group, err := cluster.groupsOfPlugins(namespace).Get(ctx, "theirs", metav1.GetOptions{})
		if err != nil {
			return false, "", err
		}
		return group.Object["status"] == nil, fmt.Sprint(group.Object["status"]), nil
	})
	pod, err := cluster.Kube.CoreV1().Pods(namespace).Get(t.Context(), "theirs-0", metav1.GetOptions{})
	if err != nil || pod.Spec.NodeName != "" || len(pod.Status.Conditions) > 0 {
		t.Errorf("the Pod is on the node %q and is told %v (%v), and this scheduler is not to touch it", pod.Spec.NodeName, pod.Status.Conditions, err)
	}
}

// TestAPhaseIsLeftToWhoeverWritesIt: the controller of scheduler-plugins does. The gang is placed all the same.
func TestAPhaseIsLeftToWhoeverWritesIt(t *testing.T) {
	t.Parallel()
	namespace := cluster.Namespace(t)
	cluster.createGroupOfPlugins(t, namespace, "job", "TFJob", map[string]any{"minMember": int64(2)})
	if _, err := cluster.groupsOfPlugins(namespace).Patch(t.Context(), "job", types.MergePatchType, []byte(`{"status":{"phase":"Pending"}}`), metav1.PatchOptions{FieldManager: "another"}, "status"); err != nil {
		t.Fatal(err)
	}
	for i := range 2 {
		cluster.CreatePod(t, namespace, testbed.MakePod(fmt.Sprintf("job-%d", i), named(label, "job")))
	}
	cluster.WaitPlaced(t, namespace, 2)
	testbed.Consistently(t, "nobody else to write the group", 3*time.Second, func(ctx context.Context) (bool, string, error) {
		group, err := cluster.groupsOfPlugins(namespace).Get(ctx, "job", metav1.GetOptions{})
		if err != nil {
			return false, "", err
		}
		for _, fields := range group.GetManagedFields() {
			if fields.Manager == "lockstep-scheduler" {
				return false, fmt.Sprint(group.Object["status"]), nil
			}
		}
		return true, "", nil
	})
}
