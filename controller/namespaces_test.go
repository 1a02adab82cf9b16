// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	batchv1alpha1 "github.com/lockstep-k8s/lockstep/apis/batch/v1alpha1"
	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	kubeflowv1 "github.com/lockstep-k8s/lockstep/apis/kubeflow/v1"
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

// jobOfAKind is how a job of some kind is made, and what it has come to.
type jobOfAKind struct {
	add             func(c *cluster)
	runs, succeeded func(c *cluster) bool
}

// kubeflowJob is a job of one of Kubeflow's kinds.
func kubeflowJob(add func(c *cluster)) jobOfAKind {
	is := func(phase kubeflowv1.JobPhase) func(c *cluster) bool {
		return func(c *cluster) bool { return c.trainingStatus("j").Phase == phase }
	}
	return jobOfAKind{add, is(kubeflowv1.JobRunning), func(c *cluster) bool {
		return is(kubeflowv1.JobSucceeded)(c) && c.trainingStatus("j").Starts == 1
	}}
}

// jobsOfAllKinds are one for each front end, and one that tells Pods of each other.
var jobsOfAllKinds = map[string]jobOfAKind{
	"Framework": {
		func(c *cluster) { apiserver.Add(c.server, newFramework(2)) },
		func(c *cluster) bool {
			status := c.statusOf("ns", "fw")
			return status != nil && status.State == frameworkv1.FrameworkAttemptRunning
		},
		func(c *cluster) bool {
			status := c.statusOf("ns", "fw")
			return status != nil && status.State == frameworkv1.FrameworkCompleted && status.AttemptStatus.ID == 0 &&
				status.AttemptStatus.CompletionStatus.Code == frameworkv1.CodeSucceeded
		},
	},
	"Volcano Job": {
		func(c *cluster) { apiserver.Add(c.server, newJob(newTask("worker", 2))) },
		func(c *cluster) bool { return c.jobStatus("j").State.Phase == batchv1alpha1.JobRunning },
		func(c *cluster) bool {
			return c.jobStatus("j").State.Phase == batchv1alpha1.JobCompleted && c.jobStatus("j").RetryCount == 0
		},
	},
	"TFJob": kubeflowJob(func(c *cluster) { apiserver.Add(c.server, newTFJob(map[string]int32{"Worker": 2})) }),
	"MPIJob": kubeflowJob(func(c *cluster) {
		apiserver.Add(c.server, newMPIJob(map[string]int32{"Launcher": 1, "Worker": 2}))
	}),
}

// runAllKinds runs a test with a controller of all integrations and two namespaces. Nothing that refuses names may be read
// in one of them.
func runAllKinds(t *testing.T, refuses func(resource string) bool, test func(t *testing.T, c *cluster)) {
	quiet(t)
	inClusterWith(t, func(c *cluster) {
		runJobs(c)
		runTraining(c)
		c.config.Namespaces = []string{"ns", "third"}
		c.server.SetHook(func(r *apiserver.Request) apiserver.Fault {
			if r.Namespace == "ns" && !r.Verb.Writes() && refuses(r.Resource) {
				return apiserver.Fault{Refusal: apiserver.NoRight(string(r.Verb), r.Resource, r.Namespace)}
			}
			return apiserver.Fault{}
		})
	}, test)
}

// TestJobsWhosePodsMayNotBeReadAreLeftAsTheyAre until they may be: that no Pod is shown does not say that there is none.
func TestJobsWhosePodsMayNotBeReadAreLeftAsTheyAre(t *testing.T) {
	for kind, job := range jobsOfAllKinds {
		for name, when := range map[string]struct{ runs, restarts bool }{
			"that runs": {true, false},
			"that runs, while the controller starts anew": {true, true},
			"that is new": {false, false},
			"that is new to a controller that starts": {false, true},
		} {
			t.Run(kind+" "+name, func(t *testing.T) {
				refused := false
				runAllKinds(t, func(resource string) bool { return refused && resource == "pods" }, func(t *testing.T, c *cluster) {
					if when.runs {
						job.add(c)
						c.await(t, "the job runs", func() bool { return job.runs(c) })
					}
					c.pass(time.Minute)
					refused = true
					c.program.process.DropWatches("pods")
					c.pass(time.Minute)
					if !when.runs {
						job.add(c)
					}
					writes := len(c.writes())
					if when.restarts {
						c.killProgram()
						c.startProgram()
					}
					c.ends = succeed
					for range 10 {
						c.runNodes(1)
						c.pass(time.Minute)
					}
					if got := c.writes()[writes:]; len(got) > 0 {
						t.Errorf("what it writes meanwhile: %v", got)
					}
					refused = false
					c.await(t, "the job has succeeded at its first start", func() bool { return job.succeeded(c) })
				})
			})
		}
	}
}

// TestAJobThatWasDeletedWhileItMightNotBeReadStaysGone: its Pods may be read before it may.
func TestAJobThatWasDeletedWhileItMightNotBeReadStaysGone(t *testing.T) {
	refused := map[string]bool{}
	runAllKinds(t, func(resource string) bool { return refused[resource] }, func(t *testing.T, c *cluster) {
		job := jobsOfAllKinds["TFJob"]
		job.add(c)
		c.await(t, "the job runs", func() bool { return job.runs(c) })
		for _, resource := range []string{"pods", "services", kubeflowv1.TFJobPlural} {
			refused[resource] = true
			c.program.process.DropWatches(resource)
		}
		c.pass(time.Minute)
		apiserver.Remove[kubeflowv1.TFJob](c.server, "ns", "j")
		for _, pod := range c.podNames() {
			apiserver.Remove[corev1.Pod](c.server, "ns", pod)
		}
		writes := len(c.writes())
		delete(refused, "pods")
		delete(refused, "services")
		c.pass(5 * time.Minute)
		delete(refused, kubeflowv1.TFJobPlural)
		c.pass(5 * time.Minute)
		for _, written := range c.writes()[writes:] {
			if strings.HasPrefix(written, "create") {
				t.Errorf("of a job that is gone: %s", written)
			}
		}
	})
}

// TestAVolcanoJobRunsWherePodGroupsOfVolcanoWereRefused: the API server says whether it serves them only to those who
// may read them.
func TestAVolcanoJobRunsWherePodGroupsOfVolcanoWereRefused(t *testing.T) {
	quiet(t)
	group := schema.GroupVersionResource{Group: "scheduling.volcano.sh", Version: "v1beta1", Resource: "podgroups"}
	refused := true
	inClusterWith(t, func(c *cluster) {
		runJobs(c)
		c.config.Namespaces = []string{"ns", "third"}
		apiserver.WithResource(apiserver.Resource{GroupVersionResource: group, Kind: "PodGroup"})(c.server)
		c.server.SetHook(func(r *apiserver.Request) apiserver.Fault {
			switch {
			case r.Group != group.Group:
				return apiserver.Fault{}
			case refused:
				return apiserver.Fault{Refusal: apiserver.NoRight(string(r.Verb), r.Resource, r.Namespace)}
			default:
				return apiserver.Fault{Refusal: apierrors.NewNotFound(group.GroupResource(), "")}
			}
		})
		apiserver.Add(c.server, newJob(newTask("worker", 2)))
	}, func(t *testing.T, c *cluster) {
		c.pass(5 * time.Minute)
		refused = false
		c.awaitPhase(t, "j", batchv1alpha1.JobRunning)
	})
}
