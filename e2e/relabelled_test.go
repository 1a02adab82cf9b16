//go:build e2e

// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	"github.com/lockstep-k8s/lockstep/internal/localenv/jobs"
)

// TestLabelsAreNotWhatAnAttemptLivesBy takes the label by which the controller finds a
// ConfigMap and a Pod from both. The attempt goes on with the Pods that it has, and the
// end of the Pod is noticed all the same.
func TestLabelsAreNotWhatAnAttemptLivesBy(t *testing.T) {
	t.Parallel()
	fw := jobs.MakeFramework("bare").Role("worker", 2, jobs.RunForever()).Obj()
	namespace := submit(t, fw)
	waitRunning(t, namespace, fw.Name, 2)
	before := podUIDs(t, namespace, fw.Name)
	for _, object := range []string{"configmap/" + frameworkv1.AttemptName(fw.Name), "pod/" + fw.Name + "-worker-0"} {
		if out, err := cluster.Kubectl(t.Context(), "label", object, "-n", namespace, frameworkv1.KeyFrameworkName+"-"); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	wantSameAttempt(t, namespace, fw.Name, 5*time.Second)
	for index := range int32(2) {
		cluster.EndPod(t, namespace, frameworkv1.PodName(fw.Name, "worker", index), 0)
	}
	done := cluster.WaitFrameworkState(t, namespace, fw.Name, frameworkv1.FrameworkCompleted)
	if diff := cmp.Diff(end{TasksSucceeded: 2, TasksTotal: 2}, endOf(done)); diff != "" {
		t.Errorf("its end (-want,+got):\n%s", diff)
	}
	for index := range 2 {
		attempt := task(done, "worker", index).AttemptStatus
		if *attempt.PodUID != before[attempt.PodName] {
			t.Errorf("task %d ran in Pod %s, and had %s", index, *attempt.PodUID, before[attempt.PodName])
		}
	}
}
