//go:build e2e

// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package podgroupapis

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"

	"github.com/lockstep-k8s/lockstep/e2e/testbed"
	"github.com/lockstep-k8s/lockstep/internal/localenv/jobs"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
)

// maxWrites is how often the scheduler may write a group in its life. Each write wakes the controller that has made the
// group.
const maxWrites = 10

// volcanoGroups returns a client for groups of Volcano in a namespace.
func (c *testCluster) volcanoGroups(namespace string) dynamic.ResourceInterface {
	return c.objects.Resource(dialect.Volcano.Resource()).Namespace(namespace)
}

// volcanoTool is a small fake of a program that makes a group and its Pods, and of what it does when the
// group changes.
type volcanoTool struct {
	t               *testing.T
	namespace, name string
	// scheduler is what the Pods name.
	scheduler string
	// spec is what the tool has written last, for the check that no other program has changed the spec.
	spec map[string]any
}

// newVolcanoTool returns a tool that has a namespace of its own.
func newVolcanoTool(t *testing.T, name, scheduler string) *volcanoTool {
	return &volcanoTool{t: t, namespace: cluster.Namespace(t), name: name, scheduler: scheduler}
}

// makeGroup makes the group with a spec, and a status if the tool writes one.
func (j *volcanoTool) makeGroup(owner string, spec, status map[string]any) {
	j.t.Helper()
	group := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	if status != nil {
		group.Object["status"] = status
	}
	group.SetGroupVersionKind(dialect.Volcano.Kind())
	group.SetName(j.name)
	if owner != "" {
		group.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "example.com/v1", Kind: owner, Name: j.name, UID: "11111111-2222-3333-4444-555555555555", Controller: new(true)}})
	}
	if _, err := cluster.volcanoGroups(j.namespace).Create(j.t.Context(), group, metav1.CreateOptions{FieldManager: "tool"}); err != nil {
		j.t.Fatal(err)
	}
	j.spec = spec
}

// put replaces the whole group, as the tools do, with another spec.
func (j *volcanoTool) put(spec map[string]any) {
	j.t.Helper()
	testbed.Eventually(j.t, "the group to be replaced", func(ctx context.Context) (bool, string, error) {
		group := j.group()
		group.Object["spec"] = spec
		_, err := cluster.volcanoGroups(j.namespace).Update(ctx, group, metav1.UpdateOptions{FieldManager: "tool"})
		return err == nil, "", err
	})
	j.spec = spec
}

func (j *volcanoTool) group() *unstructured.Unstructured {
	j.t.Helper()
	group, err := cluster.volcanoGroups(j.namespace).Get(j.t.Context(), j.name, metav1.GetOptions{})
	if err != nil {
		j.t.Fatal(err)
	}
	return group
}

// pod makes a Pod that names the group, and has a role if that is not empty.
func (j *volcanoTool) pod(name, role string, change ...func(*corev1.Pod)) {
	j.t.Helper()
	pod := testbed.MakePod(name, func(pod *corev1.Pod) {
		pod.Annotations = map[string]string{"scheduling.k8s.io/group-name": j.name}
		if role != "" {
			pod.Annotations["volcano.sh/task-spec"] = role
		}
		pod.Spec.SchedulerName = j.scheduler
	})
	for _, c := range change {
		c(pod)
	}
	cluster.CreatePod(j.t, j.namespace, pod)
}

// endsAfter has a Pod end after a number of seconds with an exit code.
func endsAfter(seconds, exitCode int) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.Annotations[jobs.AnnotationRunSeconds], pod.Annotations[jobs.AnnotationExitCode] = fmt.Sprint(seconds), fmt.Sprint(exitCode)
	}
}

// fitsNowhere has a Pod ask for a node that there is not.
func fitsNowhere(pod *corev1.Pod) {
	pod.Spec.NodeSelector = map[string]string{"no-node": "has-it"}
}

func (j *volcanoTool) deletePod(name string) {
	j.t.Helper()
	now := int64(0)
	if err := cluster.Kube.CoreV1().Pods(j.namespace).Delete(j.t.Context(), name, metav1.DeleteOptions{GracePeriodSeconds: &now}); err != nil {
		j.t.Fatal(err)
	}
}

func (j *volcanoTool) deleteGroup() {
	j.t.Helper()
	if err := cluster.volcanoGroups(j.namespace).Delete(j.t.Context(), j.name, metav1.DeleteOptions{}); err != nil {
		j.t.Fatal(err)
	}
}

// phase is the phase of the group.
func phase(group *unstructured.Unstructured) string {
	phase, _, _ := unstructured.NestedString(group.Object, "status", "phase")
	return phase
}

// waitPhase waits until the group has a phase, and returns the group.
func (j *volcanoTool) waitPhase(want string) *unstructured.Unstructured {
	j.t.Helper()
	var group *unstructured.Unstructured
	testbed.Eventually(j.t, "PodGroup "+j.name+" to be "+want, func(context.Context) (bool, string, error) {
		group = j.group()
		return phase(group) == want, fmt.Sprint(group.Object["status"]), nil
	})
	return group
}

// waitStatus waits until the status of the group has a text in it.
func (j *volcanoTool) waitStatus(want string) {
	j.t.Helper()
	testbed.Eventually(j.t, "the status of PodGroup "+j.name+" to say "+want, func(context.Context) (bool, string, error) {
		status := fmt.Sprint(j.group().Object["status"])
		return strings.Contains(status, want), status, nil
	})
}

// watch shows each version of the group from now on to whoever is to see it, until the test ends.
func (j *volcanoTool) watch(see func(group *unstructured.Unstructured)) {
	j.t.Helper()
	mine := cluster.volcanoGroups(j.namespace)
	list, err := mine.List(j.t.Context(), metav1.ListOptions{})
	if err != nil {
		j.t.Fatal(err)
	}
	watched := testbed.Watch(j.t, list, mine.Watch)
	var done sync.WaitGroup
	done.Go(func() {
		for event := range watched.ResultChan() {
			if group, ok := event.Object.(*unstructured.Unstructured); ok && event.Type != watch.Deleted {
				see(group)
			}
		}
	})
	j.t.Cleanup(done.Wait)
}

// watchPhases notes the phases that the group has from now on. What it returns are those that were seen so far.
func (j *volcanoTool) watchPhases() func() []string {
	j.t.Helper()
	var mu sync.Mutex
	var phases []string
	j.watch(func(group *unstructured.Unstructured) {
		mu.Lock()
		defer mu.Unlock()
		phases = append(phases, phase(group))
	})
	return func() []string {
		mu.Lock()
		defer mu.Unlock()
		return slices.Compact(slices.Clone(phases))
	}
}

// fight has another program write back the phase Pending whenever the group has another one. The others of
// its status are left as they are.
func (j *volcanoTool) fight(program string) {
	j.t.Helper()
	j.watch(func(group *unstructured.Unstructured) {
		if phase(group) == "" || phase(group) == dialect.PhasePending {
			return
		}
		if err := unstructured.SetNestedField(group.Object, dialect.PhasePending, "status", "phase"); err != nil {
			j.t.Error(err)
		}
		// One that has changed since is told of again.
		_, err := cluster.volcanoGroups(j.namespace).Update(j.t.Context(), group, metav1.UpdateOptions{FieldManager: program})
		if err != nil && !apierrors.IsConflict(err) && j.t.Context().Err() == nil {
			j.t.Errorf("%s can't write the group: %v", program, err)
		}
	})
}

// waitPlaced waits until just these Pods have a node.
func (j *volcanoTool) waitPlaced(want ...string) {
	j.t.Helper()
	slices.Sort(want)
	testbed.Eventually(j.t, fmt.Sprintf("%v to be placed", want), func(ctx context.Context) (bool, string, error) {
		names, err := cluster.Placed(ctx, j.namespace)
		return slices.Equal(names, want), fmt.Sprint(names), err
	})
}

// waitEvent waits for an event on an object of a kind, with a message that has a text in it.
func (j *volcanoTool) waitEvent(kind, reason, text string) {
	j.t.Helper()
	cluster.WaitMessage(j.t, j.namespace, "involvedObject.kind="+kind+",reason="+reason, text)
}

// nobodyIsPlaced checks that no Pod has a node yet.
func (j *volcanoTool) nobodyIsPlaced() {
	j.t.Helper()
	if names, err := cluster.Placed(j.t.Context(), j.namespace); err != nil || len(names) > 0 {
		j.t.Errorf("%v are placed of a gang that is not whole (%v)", names, err)
	}
}

// check holds the group against what the scheduler may do with it: write its status, now and
// then.
func (j *volcanoTool) check() {
	j.t.Helper()
	group := j.group()
	if got, want := fmt.Sprint(group.Object["spec"]), fmt.Sprint(j.spec); got != want {
		j.t.Errorf("the spec is %s, the tool wrote %s", got, want)
	}
	for _, fields := range group.GetManagedFields() {
		if fields.Manager == "lockstep-scheduler" && (fields.Operation != metav1.ManagedFieldsOperationUpdate || !strings.HasPrefix(string(fields.FieldsV1.GetRawBytes()), `{"f:status":`)) {
			j.t.Errorf("the scheduler has written %s, by %s", fields.FieldsV1.GetRawBytes(), fields.Operation)
		}
	}
	writes := 0
	for _, request := range cluster.Audited(j.t) {
		if request.Namespace == j.namespace && strings.HasPrefix(request.Resource, "podgroups") && strings.Contains(request.User, "scheduler") {
			writes++
		}
	}
	j.t.Logf("the scheduler has written the group %d times", writes)
	if writes == 0 || writes > maxWrites {
		j.t.Errorf("the scheduler has written the group %d times, want 1 to %d", writes, maxWrites)
	}
}
