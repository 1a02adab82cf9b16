//go:build e2e

// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/e2e/testbed"
	"github.com/lockstep-k8s/lockstep/internal/localenv/jobs"
)

// TestKubectlGet checks what a user sees of a running gang at first glance.
func TestKubectlGet(t *testing.T) {
	fw := jobs.MakeFramework("seen").Gang().Role("worker", 3, jobs.RunForever()).Obj()
	namespace := submit(t, fw)
	cluster.WaitFramework(t, namespace, fw.Name, "run whole and show it", func(fw *frameworkv1.Framework) bool {
		s := fw.Status
		return s != nil && s.Tasks != nil && s.Tasks.Running == 3 && s.AttemptStatus.PodGroup != nil &&
			s.AttemptStatus.PodGroup.Phase == "Running" && s.State == frameworkv1.FrameworkAttemptRunning
	})
	cluster.WaitPodGroup(t, namespace, frameworkv1.PodGroupName(fw.Name), "have no reason to wait any more", func(pg *schedulingv1alpha1.PodGroup) bool {
		return !slices.ContainsFunc(pg.Status.Conditions, func(c schedulingv1alpha1.PodGroupCondition) bool {
			return c.Reason != schedulingv1alpha1.ReasonScheduled
		})
	})
	for _, tc := range []struct {
		resource             string
		wantHeader, wantCell []string
	}{
		{
			resource:   "frameworks",
			wantHeader: []string{"NAME", "STATE", "ATTEMPT", "RUNNING", "SUCCEEDED", "FAILED", "TOTAL", "PODGROUP", "AGE"},
			wantCell:   []string{"seen", "AttemptRunning", "0", "3", "0", "0", "3", "Running"},
		},
		{
			resource:   "podgroups",
			wantHeader: []string{"NAME", "PHASE", "MIN", "SCHEDULED", "RUNNING", "SUCCEEDED", "FAILED", "REASON", "AGE"},
			wantCell:   []string{"seen-attempt", "Running", "3", "3", "3", "0", "0"}, // no REASON: nothing is wrong
		},
	} {
		out, err := cluster.Kubectl(t.Context(), "get", tc.resource, "-n", namespace)
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		lines := strings.Split(strings.TrimSpace(out), "\n")
		if len(lines) != 2 {
			t.Fatalf("kubectl get %s printed %d lines, want 2:\n%s", tc.resource, len(lines), out)
		}
		if diff := cmp.Diff(tc.wantHeader, strings.Fields(lines[0])); diff != "" {
			t.Errorf("columns of %s (-want,+got):\n%s", tc.resource, diff)
		}
		cells := strings.Fields(lines[1])
		if diff := cmp.Diff(tc.wantCell, cells[:len(cells)-1]); diff != "" { // all but the age
			t.Errorf("row of %s (-want,+got):\n%s", tc.resource, diff)
		}
	}
	out, err := cluster.Kubectl(t.Context(), "get", "lockstep", "-n", namespace, "-o", "name")
	if err != nil || !strings.Contains(out, "framework.frameworkcontroller.microsoft.com/seen") || !strings.Contains(out, "podgroup.scheduling.lockstep.dev/seen-attempt") {
		t.Errorf("the category lockstep lists %q (%v), want the Framework and its PodGroup", out, err)
	}
}

// TestKubectlGetSaysWhyAGroupWaits looks at a group that a user made, of which
// one member is missing.
func TestKubectlGetSaysWhyAGroupWaits(t *testing.T) {
	namespace := cluster.Namespace(t)
	out, err := cluster.KubectlApply(t.Context(), namespace, manifestOf("PodGroup", "waits", "{minMember: 2}")+`
---
apiVersion: v1
kind: Pod
metadata:
  name: alone
  labels: {scheduling.lockstep.dev/pod-group: waits}
spec:
  schedulerName: lockstep-scheduler
  containers: [{name: main, image: none}]
`)
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	want := "waits Pending 2 0 0 0 0 NotEnoughTasks"
	testbed.Eventually(t, "kubectl get podgroups to say "+want, func(ctx context.Context) (bool, string, error) {
		out, err := cluster.Kubectl(ctx, "get", "lpg", "waits", "-n", namespace, "--no-headers")
		return strings.HasPrefix(strings.Join(strings.Fields(out), " "), want), out, err
	})
}

// TestKubectlWaitsForTheEnd of a Framework by the condition that every one has, and
// tells by its reason how it ended.
func TestKubectlWaitsForTheEnd(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		exitCode int
		want     string
	}{"good": {0, frameworkv1.ReasonSucceeded}, "bad": {1, frameworkv1.ReasonFailed}} {
		namespace := submit(t, jobs.MakeFramework(name).Role("worker", 1, jobs.RunFor(time.Second, tc.exitCode)).Obj())
		if out, err := cluster.Kubectl(t.Context(), "wait", "framework/"+name, "-n", namespace, "--for=condition=Completed", "--timeout=2m"); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		got, err := cluster.Kubectl(t.Context(), "get", "framework", name, "-n", namespace, "-o", `jsonpath={.status.conditions[?(@.type=="Completed")].reason}`)
		if err != nil || got != tc.want {
			t.Errorf("%s: the reason of Completed is %q (%v), want %q", name, got, err, tc.want)
		}
	}
}

// TestAConditionOfSomebodyElseStays while the controller writes the status.
func TestAConditionOfSomebodyElseStays(t *testing.T) {
	t.Parallel()
	fw := jobs.MakeFramework("judged").Role("worker", 1, jobs.RunForever().Completes(1, 1)).Obj()
	namespace := submit(t, fw)
	waitRunning(t, namespace, fw.Name, 1)
	const mine = `{"type": "Approved", "status": "True", "reason": "Inspected", "message": "by hand", "lastTransitionTime": "2026-01-01T00:00:00Z"}`
	if out, err := cluster.Kubectl(t.Context(), "patch", "framework", fw.Name, "-n", namespace, "--subresource=status", "--type=json",
		"-p", `[{"op": "add", "path": "/status/conditions/-", "value": `+mine+`}]`); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	cluster.EndPod(t, namespace, "judged-worker-0", 0)
	done := cluster.WaitFrameworkState(t, namespace, fw.Name, frameworkv1.FrameworkCompleted)
	for _, condition := range []string{"Approved", frameworkv1.ConditionCompleted} {
		if !meta.IsStatusConditionTrue(done.Status.Conditions, condition) {
			t.Errorf("the condition %s is not True: %+v", condition, done.Status.Conditions)
		}
	}
}
