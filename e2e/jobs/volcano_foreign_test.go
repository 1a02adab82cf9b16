//go:build e2e

// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package jobs

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1 "k8s.io/api/core/v1"

	batchv1alpha1 "github.com/lockstep-k8s/lockstep/apis/batch/v1alpha1"
	"github.com/lockstep-k8s/lockstep/e2e/testbed"
	"github.com/lockstep-k8s/lockstep/internal/unknownfields"
)

// TestJobsOfOthersAreNeverTouched has Jobs that are not Lockstep's beside one that is, in one
// namespace, with Commands, and with Pods and objects that look like its own. What the API
// server has written down of the controller's requests shows that it has changed nothing of
// them: it has not even tried.
func TestJobsOfOthersAreNeverTouched(t *testing.T) {
	t.Parallel()
	namespace := cluster.Namespace(t)
	foreign := map[string]string{
		// Their scheduler is not in the list of the configuration.
		"named":  "{schedulerName: another, ttlSecondsAfterFinished: 0, plugins: {svc: [], ssh: []}, tasks: [{name: a, replicas: 2, @∞}]}",
		"shared": "{tasks: [{name: a, replicas: 1, @∞{schedulerName: another}}, {name: b, replicas: 1, @∞{schedulerName: another}}]}",
		"broken": "{schedulerName: another, plugins: {ray: []}, tasks: [{name: a, replicas: 1, @∞}]}",
		"served": "{schedulerName: another, tasks: [{name: a, replicas: 1, @∞}]}",
	}
	for name, spec := range foreign {
		j := cluster.CreateVolcanoJob(t, namespace, name, spec, nil)
		j.Issue(j.Command(abort))
		// As its own controller would make it.
		cluster.CreatePod(t, namespace, testbed.MakePod(name+"-a-0", func(pod *corev1.Pod) {
			pod.OwnerReferences = j.Command(abort).OwnerReferences
			pod.Labels = map[string]string{batchv1alpha1.KeyJobName: name, batchv1alpha1.KeyTaskName: "a"}
			pod.Spec.SchedulerName = "another"
		}))
		if name == "served" {
			job, err := cluster.Lockstep.BatchV1alpha1().Jobs(namespace).Get(t.Context(), name, metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			job.Status.State = batchv1alpha1.JobState{Phase: completed}
			if _, err := cluster.Lockstep.BatchV1alpha1().Jobs(namespace).UpdateStatus(t.Context(), job, metav1.UpdateOptions{FieldManager: "vc-controller-manager"}); err != nil {
				t.Fatal(err)
			}
		}
	}
	// One that comes later and is served shows that the others have been looked at.
	ours := cluster.CreateVolcanoJob(t, namespace, "ours", "{tasks: [{name: a, replicas: 1, @∞}]}", nil)
	ours.Passes(running).Do(restart).Passes(restarting, running).Stays(2 * time.Second)

	own := 0
	for _, r := range cluster.Audited(t) {
		if r.Namespace != namespace || !strings.HasSuffix(r.User, "lockstep-controller") {
			continue
		}
		if r.Name == "ours" || strings.HasPrefix(r.Name, "ours-") || r.Resource == "events" && strings.HasPrefix(r.Name, "ours.") || r.Name == unknownfields.PodName {
			own++
			continue
		}
		// Names of objects that are created, or that the API server makes up, are not always
		// in the log; so nothing of another name may be in it.
		t.Errorf("the controller has asked for %s", fmt.Sprintf("%+v", r))
	}
	if own == 0 {
		t.Error("nothing was written down of what the controller does with its own Job")
	}
	for name := range foreign {
		job, err := cluster.Lockstep.BatchV1alpha1().Jobs(namespace).Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			t.Errorf("Job %s: %v", name, err)
			continue
		}
		if phase := job.Status.State.Phase; name != "served" && phase != "" || name == "served" && phase != completed {
			t.Errorf("Job %s is %q", name, phase)
		}
	}
	if commands := ours.Commands(); len(commands) != len(foreign) {
		t.Errorf("the Commands are %v, want one for each of the Jobs of others", commands)
	}
}

// TestAJobThatAnotherControllerServesIsLeftAlone although its scheduler is ours: once another
// controller has written its status, it is told of that and nothing else.
func TestAJobThatAnotherControllerServesIsLeftAlone(t *testing.T) {
	t.Parallel()
	j := given(t, "{tasks: [{name: a, replicas: 1, @∞}]}").Passes(running)
	// It writes again and again, as a controller does: what Lockstep was about to write may
	// have replaced the first of it.
	testbed.Eventually(t, "the other controller to be noticed", func(ctx context.Context) (bool, string, error) {
		job, err := cluster.Lockstep.BatchV1alpha1().Jobs(j.Namespace).Get(ctx, j.Name, metav1.GetOptions{})
		if err != nil {
			return false, "", err
		}
		job.Status.Unknown++
		_, err = cluster.Lockstep.BatchV1alpha1().Jobs(j.Namespace).UpdateStatus(ctx, job, metav1.UpdateOptions{FieldManager: "vc-controller-manager"})
		told := slices.ContainsFunc(j.Events(), func(e corev1.Event) bool { return e.Reason == "ForeignStatus" })
		return told, "", err
	})
	j.Tells(corev1.EventTypeWarning, "ForeignStatus", "vc-controller-manager")
	name := j.Issue(j.Command(abort))
	j.Stays(2 * time.Second)
	if left := j.Commands(); len(left) != 1 || left[0] != name {
		t.Errorf("the Commands are %v, want %s", left, name)
	}
}
