// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	kubeflowv1 "github.com/lockstep-k8s/lockstep/apis/kubeflow/v1"
	kubeflowv2beta1 "github.com/lockstep-k8s/lockstep/apis/kubeflow/v2beta1"
	"github.com/lockstep-k8s/lockstep/internal/testing/apiserver"
)

// TestFrameworksOfOtherNamespacesAreLeftAlone runs a controller of two namespaces beside Frameworks
// in three. Nothing but classes of priority is read of the whole cluster.
func TestFrameworksOfOtherNamespacesAreLeftAlone(t *testing.T) {
	var wide, touched []string
	inClusterWith(t, func(c *cluster) {
		for _, namespace := range []string{"ns", "other", "third"} {
			f := newFramework(2)
			f.Namespace = namespace
			apiserver.Add(c.server, f)
		}
		c.config.Namespaces = []string{"ns", "third"}
		c.server.SetHook(func(r *apiserver.Request) apiserver.Fault {
			switch {
			case r.Namespace == "":
				wide = append(wide, r.Resource)
			case r.Namespace == "other":
				touched = append(touched, r.String())
			}
			return apiserver.Fault{}
		})
	}, func(t *testing.T, c *cluster) {
		for _, namespace := range c.config.Namespaces {
			begun := time.Now()
			for f := (*frameworkv1.Framework)(nil); f == nil || f.Status == nil || f.Status.State != frameworkv1.FrameworkAttemptRunning; {
				c.pass(50 * time.Millisecond)
				for _, pod := range []string{"fw-w-0", "fw-w-1"} {
					if p := apiserver.Find[corev1.Pod](c.server, namespace, pod); p != nil && p.Status.Phase != corev1.PodRunning {
						apiserver.Change(c.server, namespace, pod, func(pod *corev1.Pod) { pod.Status.Phase = corev1.PodRunning })
					}
				}
				f = apiserver.Find[frameworkv1.Framework](c.server, namespace, "fw")
				if time.Since(begun) > time.Minute {
					t.Fatalf("the Framework in %s never runs", namespace)
				}
			}
		}
		slices.Sort(wide)
		if diff := cmp.Diff([]string{"priorityclasses"}, slices.Compact(wide)); diff != "" {
			t.Errorf("what is read of all namespaces (-want,+got):\n%s", diff)
		}
		if len(touched) > 0 {
			t.Errorf("the namespace of nobody's concern was touched: %v", touched)
		}
	})
}

// TestJobsWhosePodsMayNotBeReadAreLeftAsTheyAre until they may be: that no Pod is shown does not say that there is none.
func TestJobsWhosePodsMayNotBeReadAreLeftAsTheyAre(t *testing.T) {
	reads := map[apiserver.Verb]bool{apiserver.Get: true, apiserver.List: true, apiserver.Watch: true}
	tfJob := func(c *cluster) { apiserver.Add(c.server, newTFJob(map[string]int32{"Worker": 2})) }
	mpiJob := func(c *cluster) {
		apiserver.Add(c.server, &kubeflowv2beta1.MPIJob{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "j"},
			Spec:       kubeflowv2beta1.MPIJobSpec{MPIReplicaSpecs: replicaSpecs("mpi", map[string]int32{"Launcher": 1, "Worker": 2})},
		})
	}
	for name, with := range map[string]struct {
		add func(c *cluster)
		// runs says that the job runs by then, and restarts that the controller starts anew.
		runs, restarts bool
	}{
		"a TFJob that runs": {tfJob, true, false},
		"a TFJob that runs, while the controller starts anew": {tfJob, true, true},
		"a new TFJob": {tfJob, false, false},
		"a new TFJob, while the controller starts anew":         {tfJob, false, true},
		"an MPIJob that runs":                                   {mpiJob, true, false},
		"an MPIJob that runs, while the controller starts anew": {mpiJob, true, true},
		"a new MPIJob": {mpiJob, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			refused := false
			inClusterWith(t, func(c *cluster) {
				runTraining(c)
				c.config.Namespaces = []string{"ns", "third"}
				c.server.SetHook(func(r *apiserver.Request) apiserver.Fault {
					if refused && r.Namespace == "ns" && r.Resource == "pods" && reads[r.Verb] {
						return apiserver.Fault{Refusal: apiserver.NoRight(string(r.Verb), r.Resource, r.Namespace)}
					}
					return apiserver.Fault{}
				})
			}, func(t *testing.T, c *cluster) {
				if with.runs {
					with.add(c)
					c.awaitTraining(t, "j", kubeflowv1.JobRunning)
				}
				c.pass(time.Minute)
				refused = true
				c.program.process.DropWatches("pods")
				c.pass(time.Minute)
				if !with.runs {
					with.add(c)
				}
				status, writes := c.trainingStatus("j"), len(c.writes())
				if with.restarts {
					c.killProgram()
					c.startProgram()
				}
				c.ends = succeed
				for range 10 {
					c.runNodes(1)
					c.pass(time.Minute)
				}
				if diff := cmp.Diff(status, c.trainingStatus("j")); diff != "" {
					t.Errorf("the status has changed (-before,+now):\n%s", diff)
				}
				if got := c.writes()[writes:]; len(got) > 0 {
					t.Errorf("what it writes meanwhile: %v", got)
				}
				refused = false
				c.awaitTraining(t, "j", kubeflowv1.JobSucceeded)
				if starts := c.trainingStatus("j").Starts; starts != 1 {
					t.Errorf("it started %d times", starts)
				}
			})
		})
	}
}
