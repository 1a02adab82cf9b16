//go:build e2e

// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/ptr"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/e2e/testbed"
	"github.com/lockstep-k8s/lockstep/internal/localenv/jobs"
	"github.com/lockstep-k8s/lockstep/podgroup"
)

// wholeNodes describes a task that needs a node for itself and never ends.
func wholeNodes() *jobs.TaskBuilder {
	return jobs.RunForever().CPU(strconv.Itoa(coresOfNode))
}

// TestGangTimeoutsOutliveTheController: of two gangs one is never scheduled, the
// other loses a member for which there is no node any more. The controller is
// killed late in the time of both. They end when that is over, not when a time
// that began with the next controller would be.
func TestGangTimeoutsOutliveTheController(t *testing.T) {
	const timeout, age = 25 * time.Second, 15 * time.Second
	gang := func(name string, tasks int32) *frameworkv1.Framework {
		fw := jobs.MakeFramework(name).Gang().Role("worker", tasks, wholeNodes().Retry(false, -2)).Obj()
		fw.Spec.Gang.ScheduleTimeoutSeconds = ptr.To(int32(timeout.Seconds()))
		fw.Spec.Gang.RecoveryTimeoutSeconds = ptr.To(int32(timeout.Seconds()))
		return fw
	}
	namespace := cluster.Namespace(t)
	recording := cluster.Record(t, namespace)
	cluster.CreateFramework(t, namespace, gang("broken", nodes))
	running := cluster.WaitFramework(t, namespace, "broken", "run", func(fw *frameworkv1.Framework) bool {
		return fw.Status != nil && fw.Status.Tasks != nil && fw.Status.Tasks.Running == nodes
	})
	cluster.CreateFramework(t, namespace, gang("unplaced", nodes+1))
	cordonUnder(t, namespace, task(running, "worker", 0).AttemptStatus.PodName)

	var since time.Time
	cluster.WaitFramework(t, namespace, "broken", fmt.Sprintf("be broken for %v", age), func(fw *frameworkv1.Framework) bool {
		group := fw.Status.AttemptStatus.PodGroup
		if group == nil || group.UnknownSince == nil {
			return false
		}
		since = group.UnknownSince.Time
		return time.Since(since) > age
	})
	if err := cluster.Kill(t.Context(), "controller"); err != nil {
		t.Fatal(err)
	}
	killed := time.Now()

	for name, want := range map[string]frameworkv1.CompletionCode{
		"unplaced": frameworkv1.CodePodGroupScheduleTimeout, "broken": frameworkv1.CodePodGroupRecoveryTimeout,
	} {
		fw := cluster.WaitFrameworkState(t, namespace, name, frameworkv1.FrameworkCompleted)
		done := fw.Status.AttemptStatus.CompletionStatus
		if done.Code != want {
			t.Errorf("%s completed with %d, want %d: %s", name, done.Code, want, done.Diagnostics)
		}
		if !strings.Contains(done.Diagnostics, "NotEnoughResources") && !strings.Contains(done.Diagnostics, "PodDeleted") {
			t.Errorf("the diagnostics of %s don't say why the PodGroup waited: %s", name, done.Diagnostics)
		}
		if ended := fw.Status.AttemptStatus.CompletionTime.Time; ended.After(killed.Add(timeout)) {
			t.Errorf("%s ended %v after the controller was killed: its time of %v began anew", name, ended.Sub(killed), timeout)
		}
	}
	recording.CheckQuiet(t)
}

// cordonUnder deletes a Pod and keeps others from its node while the test lasts.
func cordonUnder(t *testing.T, namespace, podName string) {
	t.Helper()
	pod, err := cluster.Kube.CoreV1().Pods(namespace).Get(t.Context(), podName, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, verb := range []string{"cordon", "uncordon"} {
		kubectl := func(ctx context.Context) {
			if out, err := cluster.Kubectl(ctx, verb, pod.Spec.NodeName); err != nil {
				t.Errorf("%s: %v\n%s", verb, err, out)
			}
		}
		if verb == "cordon" {
			kubectl(t.Context())
			cluster.WaitCordoned(t, pod.Spec.NodeName)
		} else {
			t.Cleanup(func() { kubectl(context.Background()) })
		}
	}
	deletePods(t, namespace, []*corev1.Pod{pod})
}

// TestDeletedPodGroupIsMadeAgain: the attempt goes on with the Pods that it has.
func TestDeletedPodGroupIsMadeAgain(t *testing.T) {
	fw := jobs.MakeFramework("loses").Gang().Role("worker", 3, jobs.RunForever()).Obj()
	namespace := submit(t, fw)
	runsWithGroup := func(but types.UID) *frameworkv1.Framework {
		return cluster.WaitFramework(t, namespace, fw.Name, "run, with a PodGroup", func(fw *frameworkv1.Framework) bool {
			if fw.Status == nil {
				return false
			}
			group := fw.Status.AttemptStatus.PodGroup
			return fw.Status.State == frameworkv1.FrameworkAttemptRunning && group != nil && group.UID != but &&
				group.Phase == schedulingv1alpha1.PodGroupRunning && group.Running == 3
		})
	}
	before := runsWithGroup("")
	group, pods := before.Status.AttemptStatus.PodGroup, podUIDs(t, namespace, fw.Name)
	if out, err := cluster.Kubectl(t.Context(), "delete", "podgroup", group.Name, "-n", namespace); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	after := runsWithGroup(group.UID)
	if after.Status.AttemptStatus.ID != 0 || after.Status.AttemptStatus.PodGroup.Name != group.Name {
		t.Errorf("attempt %d with PodGroup %s, want the same attempt with %s", after.Status.AttemptStatus.ID, after.Status.AttemptStatus.PodGroup.Name, group.Name)
	}
	for name, uid := range podUIDs(t, namespace, fw.Name) {
		if pods[name] != uid {
			t.Errorf("Pod %s was replaced", name)
		}
	}
	cluster.WaitPodGroup(t, namespace, group.Name, "say that it is scheduled", func(pg *schedulingv1alpha1.PodGroup) bool {
		scheduled := podgroup.Condition(pg, schedulingv1alpha1.ConditionScheduled)
		return scheduled != nil && scheduled.Status == metav1.ConditionTrue
	})
}

// TestOneTaskOfARunningGangIsRetried: one task has completed, one runs on and one
// fails. The minimum follows the tasks that are left, so that the retried one
// waits for nobody.
func TestOneTaskOfARunningGangIsRetried(t *testing.T) {
	fw := jobs.MakeFramework("gangretry").Gang().
		Role("short", 1, jobs.RunFor(time.Second, 0)).
		Role("flaky", 1, jobs.RunForever().Retry(false, 1)).
		Role("steady", 1, jobs.RunForever()).Obj()
	namespace := submit(t, fw)
	cluster.WaitFramework(t, namespace, fw.Name, "run, with one task completed", func(fw *frameworkv1.Framework) bool {
		return fw.Status != nil && fw.Status.Tasks != nil && fw.Status.Tasks.Running == 2 && fw.Status.Tasks.Succeeded == 1
	})
	cluster.EndPod(t, namespace, "gangretry-flaky-0", 5)

	var steady types.UID
	retried := cluster.WaitFramework(t, namespace, fw.Name, "run its flaky task again", func(fw *frameworkv1.Framework) bool {
		flaky, other := task(fw, "flaky", 0), task(fw, "steady", 0)
		if flaky == nil || flaky.AttemptStatus.ID != 1 || flaky.State != frameworkv1.TaskAttemptRunning || other.AttemptStatus.PodUID == nil {
			return false
		}
		steady = *other.AttemptStatus.PodUID
		return true
	})
	if got := retried.Status.AttemptStatus.PodGroup.MinMember; got != 2 {
		t.Errorf("minMember is %d while one of three tasks has completed, want 2", got)
	}
	cluster.EndPod(t, namespace, "gangretry-flaky-0", 5)
	done := cluster.WaitFrameworkState(t, namespace, fw.Name, frameworkv1.FrameworkCompleted)
	if got := *task(done, "steady", 0).AttemptStatus.PodUID; got != steady {
		t.Errorf("the steady task's Pod changed from %s to %s", steady, got)
	}
	if done.Status.AttemptStatus.ID != 0 || done.Status.AttemptStatus.CompletionStatus.Code != 5 {
		t.Errorf("attempt %d ended with %d, want the first one with 5", done.Status.AttemptStatus.ID, done.Status.AttemptStatus.CompletionStatus.Code)
	}
}

// TestFailedGangReleasesEverythingBeforeItsNextAttempt: the gang needs all nodes,
// so the next attempt has room only if nothing of the last one is left.
func TestFailedGangReleasesEverythingBeforeItsNextAttempt(t *testing.T) {
	namespace := cluster.Namespace(t)
	begin, err := cluster.Kube.CoreV1().Pods(namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	pods := testbed.Watch(t, begin, cluster.Kube.CoreV1().Pods(namespace).Watch)
	groups := testbed.Watch(t, begin, cluster.Lockstep.SchedulingV1alpha1().PodGroups(namespace).Watch)

	fw := jobs.MakeFramework("again").Gang().Retry(true, 0).
		Role("worker", nodes, jobs.RunFor(2*time.Second, 200).CPU(strconv.Itoa(coresOfNode)).InFirstAttempts(1)).Obj()
	cluster.CreateFramework(t, namespace, fw)

	released, begun := version{}, version{}
	deadline := time.After(testbed.Patience)
	for podsLeft, groupLeft := nodes, 1; begun.of == "" || podsLeft > 0 || groupLeft > 0; {
		var event watch.Event
		var left *int
		select {
		case event = <-pods.ResultChan():
			left = &podsLeft
		case event = <-groups.ResultChan():
			left = &groupLeft
		case <-deadline:
			t.Fatalf("%d Pods and %d PodGroups of the first attempt are left; the next one has begun with: %q", podsLeft, groupLeft, begun.of)
		}
		object, ok := event.Object.(metav1.Object)
		if !ok {
			t.Fatalf("the watch ended: %v", apierrors.FromObject(event.Object))
		}
		first := object.GetAnnotations()[frameworkv1.KeyFrameworkAttemptID] == "0"
		if event.Type == watch.Deleted && first {
			*left--
			released = released.later(versionOf(t, object))
		} else if event.Type == watch.Added && !first {
			begun = begun.earlier(versionOf(t, object))
		}
	}
	if begun.at < released.at {
		t.Errorf("the next attempt began with %s before %s of the last one was gone", begun.of, released.of)
	}
	cluster.WaitFrameworkState(t, namespace, fw.Name, frameworkv1.FrameworkCompleted)
}

// version is a point in the API server's history, in which an object was written.
type version struct {
	at uint64
	of string
}

func versionOf(t *testing.T, object metav1.Object) version {
	t.Helper()
	at, err := strconv.ParseUint(object.GetResourceVersion(), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return version{at, fmt.Sprintf("%T %s", object, object.GetName())}
}

func (v version) later(other version) version {
	if v.of == "" || other.at > v.at {
		return other
	}
	return v
}

func (v version) earlier(other version) version {
	if v.of == "" || other.at < v.at {
		return other
	}
	return v
}
