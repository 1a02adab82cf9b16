// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	configv1alpha1 "github.com/lockstep-k8s/lockstep/apis/config/v1alpha1"
	kubeflowv1 "github.com/lockstep-k8s/lockstep/apis/kubeflow/v1"
	kubeflowv2beta1 "github.com/lockstep-k8s/lockstep/apis/kubeflow/v2beta1"
	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/controller/kubeflow"
	"github.com/lockstep-k8s/lockstep/internal/testing/apiserver"
)

// The tests of this file lead training jobs of Kubeflow through their lives, and look at what
// the controller asks the API server for.

// withTraining is inCluster with a controller that runs all of Kubeflow's jobs.
func withTraining(t *testing.T, test func(t *testing.T, c *cluster)) {
	quiet(t)
	inClusterWith(t, runTraining, test)
}

// runTraining has the controller run all of Kubeflow's jobs.
func runTraining(c *cluster) {
	c.config.KubeflowJobs.Enabled = ptr.To(true)
	c.config.KubeflowJobs.TakeJobs = ptr.To(configv1alpha1.TakeJobsAll)
}

// newTFJob makes the TFJob j with a number of replicas of each type.
func newTFJob(replicas map[string]int32) *kubeflowv1.TFJob {
	return &kubeflowv1.TFJob{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "j"},
		Spec:       kubeflowv1.TFJobSpec{TFReplicaSpecs: replicaSpecs("tensorflow", replicas)},
	}
}

// newPyTorchJob makes the PyTorchJob j with a number of replicas of each type.
func newPyTorchJob(replicas map[string]int32) *kubeflowv1.PyTorchJob {
	return &kubeflowv1.PyTorchJob{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "j"},
		Spec:       kubeflowv1.PyTorchJobSpec{PyTorchReplicaSpecs: replicaSpecs("pytorch", replicas)},
	}
}

// newMPIJob makes the MPIJob j with a number of replicas of each type.
func newMPIJob(replicas map[string]int32) *kubeflowv2beta1.MPIJob {
	return &kubeflowv2beta1.MPIJob{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "j"},
		Spec:       kubeflowv2beta1.MPIJobSpec{MPIReplicaSpecs: replicaSpecs("mpi", replicas)},
	}
}

func replicaSpecs(container string, replicas map[string]int32) map[string]kubeflowv1.ReplicaSpec {
	specs := map[string]kubeflowv1.ReplicaSpec{}
	for name, number := range replicas {
		specs[name] = kubeflowv1.ReplicaSpec{Replicas: ptr.To(number), Template: runtime.RawExtension{
			Raw: fmt.Appendf(nil, `{"spec":{"containers":[{"name":%q,"image":"busybox"}]}}`, container)}}
	}
	return specs
}

// trainingStatus is the stored status of the job of a name in the namespace ns, whatever its
// kind.
func (c *cluster) trainingStatus(name string) *kubeflowv1.JobStatus {
	if job := apiserver.Find[kubeflowv1.TFJob](c.server, "ns", name); job != nil {
		return &job.Status
	}
	if job := apiserver.Find[kubeflowv1.PyTorchJob](c.server, "ns", name); job != nil {
		return &job.Status
	}
	if job := apiserver.Find[kubeflowv1.XGBoostJob](c.server, "ns", name); job != nil {
		return &job.Status
	}
	if job := apiserver.Find[kubeflowv1.PaddleJob](c.server, "ns", name); job != nil {
		return &job.Status
	}
	if job := apiserver.Find[kubeflowv1.JAXJob](c.server, "ns", name); job != nil {
		return &job.Status
	}
	if job := apiserver.Find[kubeflowv2beta1.MPIJob](c.server, "ns", name); job != nil {
		return &job.Status
	}
	return &kubeflowv1.JobStatus{}
}

// awaitTraining waits until the job of a name is in a phase.
func (c *cluster) awaitTraining(t *testing.T, name string, phase kubeflowv1.JobPhase) {
	t.Helper()
	for begun := time.Now(); c.trainingStatus(name).Phase != phase; c.runNodes(1) {
		if time.Since(begun) > 10*time.Minute {
			t.Fatalf("the job %s is not %s within 10 minutes, but: %+v", name, phase, c.trainingStatus(name))
		}
		c.pass(time.Second)
	}
}

// serviceNames are the names of all Services of the namespace ns.
func (c *cluster) serviceNames() []string {
	var names []string
	for _, service := range apiserver.All[corev1.Service](c.server, "ns") {
		names = append(names, service.Name)
	}
	return names
}

// says are the conditions of a status, in their order; one that is False has a ! before it.
func says(status *kubeflowv1.JobStatus) string {
	var types []string
	for _, condition := range status.Conditions {
		shown := string(condition.Type)
		if condition.Status == corev1.ConditionFalse {
			shown = "!" + shown
		}
		types = append(types, shown)
	}
	return strings.Join(types, " ")
}

func TestATrainingJobRunsToItsEnd(t *testing.T) {
	tests := map[string]struct {
		add  func(c *cluster)
		pods []string
		// services are those of the Pods, if none is named.
		services []string
		// succeeded is how many Pods of each type have.
		succeeded map[string]int32
	}{
		"a TFJob": {
			add:       func(c *cluster) { apiserver.Add(c.server, newTFJob(map[string]int32{"PS": 1, "Worker": 2})) },
			pods:      []string{"j-ps-0", "j-worker-0", "j-worker-1"},
			succeeded: map[string]int32{"PS": 1, "Worker": 2},
		},
		"a PyTorchJob": {
			add:       func(c *cluster) { apiserver.Add(c.server, newPyTorchJob(map[string]int32{"Master": 1, "Worker": 2})) },
			pods:      []string{"j-master-0", "j-worker-0", "j-worker-1"},
			succeeded: map[string]int32{"Master": 1, "Worker": 2},
		},
		"an XGBoostJob": {
			add: func(c *cluster) {
				apiserver.Add(c.server, &kubeflowv1.XGBoostJob{
					ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "j"},
					Spec:       kubeflowv1.XGBoostJobSpec{XGBReplicaSpecs: replicaSpecs("xgboost", map[string]int32{"Master": 1, "Worker": 2})},
				})
			},
			pods:      []string{"j-master-0", "j-worker-0", "j-worker-1"},
			succeeded: map[string]int32{"Master": 1, "Worker": 2},
		},
		"a PaddleJob": {
			add: func(c *cluster) {
				apiserver.Add(c.server, &kubeflowv1.PaddleJob{
					ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "j"},
					Spec:       kubeflowv1.PaddleJobSpec{PaddleReplicaSpecs: replicaSpecs("paddle", map[string]int32{"Master": 1, "Worker": 1})},
				})
			},
			pods:      []string{"j-master-0", "j-worker-0"},
			succeeded: map[string]int32{"Master": 1, "Worker": 1},
		},
		"an MPIJob": {
			add: func(c *cluster) {
				apiserver.Add(c.server, newMPIJob(map[string]int32{"Launcher": 1, "Worker": 2}))
			},
			pods:      []string{"j-launcher", "j-worker-0", "j-worker-1"},
			services:  []string{"j"},
			succeeded: map[string]int32{"Launcher": 1},
		},
		"a JAXJob": {
			add: func(c *cluster) {
				apiserver.Add(c.server, &kubeflowv1.JAXJob{
					ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "j"},
					Spec:       kubeflowv1.JAXJobSpec{JAXReplicaSpecs: replicaSpecs("jax", map[string]int32{"Worker": 2})},
				})
			},
			pods:      []string{"j-worker-0", "j-worker-1"},
			succeeded: map[string]int32{"Worker": 2},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			withTraining(t, func(t *testing.T, c *cluster) {
				tc.add(c)
				c.awaitTraining(t, "j", kubeflowv1.JobRunning)
				if got := says(c.trainingStatus("j")); got != "Created Running" {
					t.Errorf("the conditions are %s", got)
				}
				c.ends = succeed
				c.awaitTraining(t, "j", kubeflowv1.JobSucceeded)
				c.pass(time.Minute)
				status := c.trainingStatus("j")
				if got := says(status); got != "Created !Running Succeeded" || status.CompletionTime == nil {
					t.Errorf("the conditions are %s, the end was at %v", got, status.CompletionTime)
				}
				for name, want := range tc.succeeded {
					if got := status.ReplicaStatuses[name]; got.Succeeded != want || got.Active != 0 || got.Failed != 0 {
						t.Errorf("of %s the status says %+v, want %d succeeded", name, got, want)
					}
				}
				if diff := cmp.Diff(tc.pods, c.podNames()); diff != "" {
					t.Errorf("unexpected Pods (-want +got):\n%s", diff)
				}
				if tc.services == nil {
					tc.services = tc.pods
				}
				if diff := cmp.Diff(tc.services, c.serviceNames()); diff != "" {
					t.Errorf("unexpected Services (-want +got):\n%s", diff)
				}
				c.server.ClearJournal()
				c.pass(time.Hour)
				if n := c.requests(); n > 0 {
					t.Errorf("there were %d requests in an hour in which there was nothing to do", n)
				}
			})
		})
	}
}

func TestWritesOfATrainingJobComeInOrder(t *testing.T) {
	withTraining(t, func(t *testing.T, c *cluster) {
		c.ends = succeed
		job := newTFJob(map[string]int32{"Worker": 2})
		job.Spec.RunPolicy.SchedulingPolicy = &kubeflowv1.SchedulingPolicy{}
		job.Spec.RunPolicy.CleanPodPolicy = ptr.To(kubeflowv1.CleanPodPolicyAll)
		apiserver.Add(c.server, job)
		c.awaitTraining(t, "j", kubeflowv1.JobSucceeded)
		c.pass(time.Minute)
		c.runNodes(1) // Pods that are deleted end.
		c.pass(time.Minute)
		writes := slices.DeleteFunc(c.writes(), func(write string) bool { return write == tfJobStatusWrite })
		slices.Sort(writes[0:3]) // They are made side by side.
		slices.Sort(writes[3:5])
		slices.Sort(writes[5:8])
		slices.Sort(writes[8:])
		want := []string{
			"create podgroups j-tfjob-1", "create services j-worker-0", "create services j-worker-1",
			"create pods j-worker-0", "create pods j-worker-1",
			"delete pods j-worker-0", "delete pods j-worker-1", "delete podgroups j-tfjob-1",
			"delete services j-worker-0", "delete services j-worker-1",
		}
		slices.Sort(want[5:8])
		if diff := cmp.Diff(want, writes); diff != "" {
			t.Errorf("unexpected writes (-want +got):\n%s", diff)
		}
		if first := c.writes()[0]; first != tfJobStatusWrite {
			t.Errorf("the first write is %q, want the status: all rests on it", first)
		}
	})
}

const tfJobStatusWrite = "update tfjobs/status j"

// TestATrainingJobComesThroughACrashBetweenAnyTwoWrites lets the controller crash after each of
// its writes in turn, while a worker is made anew because it fails, the job is suspended and
// resumed. A new one always brings it to the same end.
func TestATrainingJobComesThroughACrashBetweenAnyTwoWrites(t *testing.T) {
	quiet(t)
	for crashAfter, crashed := 0, true; crashed; crashAfter++ {
		crashed = false
		t.Run(fmt.Sprintf("after %d writes", crashAfter), func(t *testing.T) {
			inClusterWith(t, runTraining, func(t *testing.T, c *cluster) {
				book := newTrainingBook(c)
				c.server.SetObserver(book.observe)
				failed := false
				c.ends = func(pod *corev1.Pod) (int32, bool) {
					status := c.trainingStatus("j")
					switch {
					case status.Starts == 2:
						return 0, true
					case pod.Name == "j-worker-1" && !failed && status.Phase == kubeflowv1.JobRunning:
						failed = true
						return 137, true
					default:
						return 0, false
					}
				}
				c.program.process.KillAfter(crashAfter)
				job := newTFJob(map[string]int32{"PS": 1, "Worker": 2})
				for name, spec := range job.Spec.TFReplicaSpecs {
					spec.RestartPolicy = kubeflowv1.RestartExitCode
					job.Spec.TFReplicaSpecs[name] = spec
				}
				job.Spec.RunPolicy.SchedulingPolicy = &kubeflowv1.SchedulingPolicy{}
				apiserver.Add(c.server, job)
				suspend := func(is bool) {
					apiserver.Change(c.server, "ns", "j", func(job *kubeflowv1.TFJob) { job.Spec.RunPolicy.Suspend = &is })
				}
				for second := range 120 {
					switch second {
					case 30:
						suspend(true)
					case 60:
						suspend(false)
					}
					c.pass(time.Second)
					if c.program == nil {
						crashed = true
						c.startProgram()
					}
					c.runNodes(1)
					if workers := c.trainingStatus("j").ReplicaStatuses["Worker"]; second == 29 && workers.Restarts != 1 {
						t.Errorf("%d restarts are counted before the suspension, want 1", workers.Restarts)
					}
				}
				status := c.trainingStatus("j")
				if status.Phase != kubeflowv1.JobSucceeded || status.Starts != 2 || status.ReplicaStatuses["Worker"].Succeeded != 2 {
					t.Errorf("the status is %+v, want Succeeded in the second start", status)
				}
				if groups := apiserver.All[schedulingv1alpha1.PodGroup](c.server, "ns"); len(groups) > 0 {
					t.Errorf("%d PodGroups are left", len(groups))
				}
			})
		})
	}
}

// TestATrainingJobOfOthersIsNeverTouched, whether it makes sense or not.
func TestATrainingJobOfOthersIsNeverTouched(t *testing.T) {
	tests := map[string]func(c *cluster){
		"those that don't name Lockstep, by default": func(c *cluster) {
			c.config.KubeflowJobs.TakeJobs = ptr.To(configv1alpha1.TakeJobsManaged)
		},
		"those whose templates name no scheduler of ours": func(c *cluster) {
			c.config.KubeflowJobs.TakeJobs = ptr.To(configv1alpha1.TakeJobsScheduler)
		},
		"those of other namespaces": func(c *cluster) { c.config.KubeflowJobs.Namespaces = []string{"other"} },
	}
	for name, prepare := range tests {
		t.Run(name, func(t *testing.T) {
			quiet(t)
			inClusterWith(t, func(c *cluster) {
				runTraining(c)
				prepare(c)
			}, func(t *testing.T, c *cluster) {
				apiserver.Add(c.server, newTFJob(map[string]int32{"Worker": 2}))
				multi := newPyTorchJob(map[string]int32{"Master": 1})
				multi.Spec.RunPolicy.ManagedBy = ptr.To(kubeflowv1.ManagedByMultiKueue)
				apiserver.Add(c.server, multi)
				wrong := newTFJob(nil)
				wrong.Name = "wrong"
				apiserver.Add(c.server, wrong)
				c.addRaw(t, kubeflowv1.SchemeGroupVersion.WithResource(kubeflowv1.TFJobPlural), "garbled", `{"spec":{"tfReplicaSpecs":"none"},"status":{"conditions":{}}}`)
				c.addRaw(t, kubeflowv1.SchemeGroupVersion.WithResource(kubeflowv1.TFJobPlural), "nobodys", `{"spec":{"runPolicy":7}}`)
				c.server.ClearJournal()
				for range 10 {
					c.pass(time.Minute)
					apiserver.Change(c.server, "ns", "j", func(job *kubeflowv1.TFJob) {
						spec := job.Spec.TFReplicaSpecs["Worker"]
						*spec.Replicas++
						job.Status.Phase = "Odd"
					})
				}
				if requests := c.jobRequests(); len(requests) > 0 {
					t.Errorf("the controller has sent %q, want nothing", requests)
				}
			})
		})
	}
}

// TestATrainingJobThatNamesLockstepIsTaken, beside a training operator that leaves it alone.
func TestATrainingJobThatNamesLockstepIsTaken(t *testing.T) {
	quiet(t)
	inClusterWith(t, func(c *cluster) { c.config.KubeflowJobs.Enabled = ptr.To(true) }, func(t *testing.T, c *cluster) {
		job := newTFJob(map[string]int32{"Worker": 1})
		job.Spec.RunPolicy.ManagedBy = ptr.To(kubeflowv1.ManagedByLockstep)
		apiserver.Add(c.server, job)
		c.ends = succeed
		c.awaitTraining(t, "j", kubeflowv1.JobSucceeded)
	})
}

// TestAJobThatAnotherControllerHasBegunIsLeftAloneAfterOneWarning, although it would be taken.
func TestAJobThatAnotherControllerHasBegunIsLeftAloneAfterOneWarning(t *testing.T) {
	withTraining(t, func(t *testing.T, c *cluster) {
		c.killProgram()
		job := apiserver.Add(c.server, newTFJob(map[string]int32{"Worker": 2}))
		apiserver.Add(c.server, podOfAnotherController(job))
		c.server.ClearJournal()
		c.startProgram()
		for range 10 {
			c.pass(time.Minute)
			apiserver.Change(c.server, "ns", "j", func(job *kubeflowv1.TFJob) { *job.Spec.TFReplicaSpecs["Worker"].Replicas++ })
		}
		c.wantOneWarning(t, "ManagedElsewhere")
	})
}

// TestAJobIsLeftAloneWhosePodsTheCacheDoesNotShowYet: a training operator was faster.
func TestAJobIsLeftAloneWhosePodsTheCacheDoesNotShowYet(t *testing.T) {
	withTraining(t, func(t *testing.T, c *cluster) {
		c.program.process.Hold("pods")
		c.server.ClearJournal()
		job := apiserver.Add(c.server, newTFJob(map[string]int32{"Worker": 2}))
		apiserver.Add(c.server, podOfAnotherController(job))
		c.pass(time.Minute)
		c.program.process.ReleaseAll("pods")
		c.pass(time.Minute)
		c.wantOneWarning(t, "ManagedElsewhere")
	})
}

// podOfAnotherController is the first worker of a TFJob as a training operator makes it.
func podOfAnotherController(job *kubeflowv1.TFJob) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: job.Namespace, Name: job.Name + "-worker-0",
			Labels: map[string]string{kubeflowv1.KeyJobName: job.Name, kubeflowv1.KeyOperatorName: "tfjob-controller",
				kubeflowv1.KeyReplicaType: "worker", kubeflowv1.KeyReplicaIndex: "0"},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(job, kubeflowv1.SchemeGroupVersion.WithKind(kubeflowv1.TFJobKind))},
		},
	}
}

// wantOneWarning holds that the controller has written nothing of the job j but one Warning of a
// reason.
func (c *cluster) wantOneWarning(t *testing.T, reason string) {
	t.Helper()
	writes := slices.DeleteFunc(c.jobRequests(), func(request string) bool { return strings.HasPrefix(request, "get ") })
	if len(writes) != 1 || !strings.HasPrefix(writes[0], "create events j.") {
		t.Errorf("the controller has sent %q, want one event", writes)
	}
	c.wantEvent(t, "j", corev1.EventTypeWarning, reason, "left alone")
}

// TestAJobOfAForeignCRDRunsOnlyIfItIsWanted: the CRD of the training operator drops what Lockstep
// adds to the status.
func TestAJobOfAForeignCRDRunsOnlyIfItIsWanted(t *testing.T) {
	foreign := func(wanted bool) func(*cluster) {
		return func(c *cluster) {
			runTraining(c)
			c.config.KubeflowJobs.ForeignCRDs = &wanted
			fields := []string{"phase", "starts", "services", "tfReplicaStatuses"}
			for _, added := range []string{"completedIndexes", "failedIndexes", "restartingIndexes", "restarts"} {
				fields = append(fields, "replicaStatuses.*."+added)
			}
			c.server.DropFromStatus(kubeflowv1.TFJobPlural, fields...)
			job := newTFJob(map[string]int32{"Worker": 2})
			job.Spec.RunPolicy.TTLSecondsAfterFinished = ptr.To[int32](30)
			apiserver.Add(c.server, job)
		}
	}
	t.Run("without the setting it is left alone, and its user is told", func(t *testing.T) {
		quiet(t)
		inClusterWith(t, foreign(false), func(t *testing.T, c *cluster) {
			c.pass(time.Minute)
			c.wantEvent(t, "j", corev1.EventTypeWarning, "ForeignCRD", "foreignCRDs")
			writes := slices.DeleteFunc(c.jobRequests(), func(request string) bool { return strings.HasPrefix(request, "get ") })
			others := slices.DeleteFunc(slices.Clone(writes), func(write string) bool { return write == tfJobStatusWrite })
			if writes[0] != tfJobStatusWrite || len(writes) > 10 || len(others) != 1 || !strings.HasPrefix(others[0], "create events j.") {
				t.Errorf("the controller has written %q, want the status, by which it finds out, now and then, and one event", writes)
			}
			c.server.ClearJournal()
			c.pass(time.Hour)
			if n := c.requests(); n > 2*25 {
				t.Errorf("there were %d requests in an hour in which nothing happened, want some looks whether there is another CRD", n)
			}
			c.server.DropFromStatus(kubeflowv1.TFJobPlural)
			c.await(t, "it runs with Lockstep's CRD", func() bool { return says(c.trainingStatus("j")) == "Created Running" })
		})
	})
	t.Run("with the setting it runs to its end, and goes when its time to live is up", func(t *testing.T) {
		quiet(t)
		inClusterWith(t, foreign(true), func(t *testing.T, c *cluster) {
			c.await(t, "it runs", func() bool { return says(c.trainingStatus("j")) == "Created Running" })
			c.ends = succeed
			c.await(t, "it has succeeded", func() bool { return says(c.trainingStatus("j")) == "Created !Running Succeeded" })
			if status := c.trainingStatus("j"); status.Phase != "" || status.ReplicaStatuses["Worker"].Succeeded != 2 || status.ReplicaStatuses["Worker"].CompletedIndexes != "" {
				t.Errorf("the CRD has kept %+v", status)
			}
			c.await(t, "it is deleted", func() bool { return apiserver.Find[kubeflowv1.TFJob](c.server, "ns", "j") == nil })
		})
	})
}

// TestATFJobAndAPyTorchJobOfOneNameGetTheirOwn: their names meet, so one of them waits.
func TestATFJobAndAPyTorchJobOfOneNameGetTheirOwn(t *testing.T) {
	withTraining(t, func(t *testing.T, c *cluster) {
		first := apiserver.Add(c.server, newTFJob(map[string]int32{"Worker": 1}))
		c.awaitTraining(t, "j", kubeflowv1.JobRunning)
		torch := newPyTorchJob(map[string]int32{"Worker": 1})
		apiserver.Add(c.server, torch)
		c.pass(10 * time.Minute)
		if pod := apiserver.Find[corev1.Pod](c.server, "ns", "j-worker-0"); !metav1.IsControlledBy(pod, first) {
			t.Errorf("the Pod belongs to %v, want the first job", pod.OwnerReferences)
		}
		c.wantEvent(t, "j", corev1.EventTypeWarning, "NameTaken", "TFJob j")
		apiserver.DeleteObject[kubeflowv1.TFJob](c.server, "ns", "j", metav1.DeleteOptions{})
		c.ends = succeed
		c.await(t, "the other job has succeeded", func() bool {
			return apiserver.Find[kubeflowv1.PyTorchJob](c.server, "ns", "j").Status.Phase == kubeflowv1.JobSucceeded
		})
	})
}

// TestAnElasticPyTorchJobHasAnAutoscaler, until it ends.
func TestAnElasticPyTorchJobHasAnAutoscaler(t *testing.T) {
	withTraining(t, func(t *testing.T, c *cluster) {
		job := newPyTorchJob(map[string]int32{"Worker": 1})
		job.Spec.ElasticPolicy = &kubeflowv1.ElasticPolicy{MinReplicas: ptr.To[int32](1), MaxReplicas: ptr.To[int32](3), Metrics: []kubeflowv1.Metric{
			{RawExtension: runtime.RawExtension{Raw: []byte(`{"type":"Resource","resource":{"name":"cpu","target":{"type":"Utilization","averageUtilization":80}}}`)}}}}
		apiserver.Add(c.server, job)
		c.awaitTraining(t, "j", kubeflowv1.JobRunning)
		scaler := apiserver.Find[autoscalingv2.HorizontalPodAutoscaler](c.server, "ns", "j")
		if scaler == nil || scaler.Spec.MaxReplicas != 3 {
			t.Fatalf("the autoscaler is %+v, want one to 3", scaler)
		}
		apiserver.Change(c.server, "ns", "j", func(job *kubeflowv1.PyTorchJob) { job.Spec.ElasticPolicy.MaxReplicas = ptr.To[int32](5) })
		c.await(t, "the autoscaler follows the job", func() bool {
			return apiserver.Find[autoscalingv2.HorizontalPodAutoscaler](c.server, "ns", "j").Spec.MaxReplicas == 5
		})
		c.ends = succeed
		c.awaitTraining(t, "j", kubeflowv1.JobSucceeded)
		c.pass(time.Minute)
		if scaler := apiserver.Find[autoscalingv2.HorizontalPodAutoscaler](c.server, "ns", "j"); scaler != nil {
			t.Errorf("the autoscaler is still there")
		}
	})
}

// TestAPodThatIsRefusedForGoodFailsItsJob, and no other.
func TestAPodThatIsRefusedForGoodFailsItsJob(t *testing.T) {
	withTraining(t, func(t *testing.T, c *cluster) {
		c.refuse(func(name string) bool { return strings.HasPrefix(name, "bad-") }, func(name string) error {
			return apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, name, nil)
		})
		bad, good := newTFJob(map[string]int32{"Worker": 3}), newTFJob(map[string]int32{"Worker": 3})
		bad.Name, good.Name = "bad", "good"
		apiserver.Add(c.server, bad)
		apiserver.Add(c.server, good)
		c.awaitTraining(t, "bad", kubeflowv1.JobFailed)
		conditions := c.trainingStatus("bad").Conditions
		if last := conditions[len(conditions)-1]; last.Type != kubeflowv1.JobConditionFailed || !strings.Contains(last.Message, "can never be created") {
			t.Errorf("the last condition is %+v, want Failed because of its Pods", last)
		}
		c.awaitTraining(t, "good", kubeflowv1.JobRunning)
	})
}

// TestAJobRunsWithoutAPriorityClassThatDoesNotExist, if its schedulingPolicy alone names the class, and its
// user is warned of that once.
func TestAJobRunsWithoutAPriorityClassThatDoesNotExist(t *testing.T) {
	withTraining(t, func(t *testing.T, c *cluster) {
		apiserver.Add(c.server, &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "high"}, Value: 7})
		ofClass := func(name, class string) *kubeflowv1.PyTorchJob {
			job := newPyTorchJob(map[string]int32{"Master": 1, "Worker": 3})
			job.Name = name
			job.Spec.RunPolicy.SchedulingPolicy = &kubeflowv1.SchedulingPolicy{PriorityClass: class}
			return job
		}
		ofTemplate := ofClass("template", "")
		for name, spec := range ofTemplate.Spec.PyTorchReplicaSpecs {
			spec.Template.Raw = []byte(strings.Replace(string(spec.Template.Raw), `"containers"`, `"priorityClassName":"no-such-class","containers"`, 1))
			ofTemplate.Spec.PyTorchReplicaSpecs[name] = spec
		}
		for _, job := range []*kubeflowv1.PyTorchJob{ofClass("known", "high"), ofClass("unknown", "no-such-class"), ofTemplate} {
			apiserver.Add(c.server, job)
		}
		c.awaitTraining(t, "known", kubeflowv1.JobRunning)
		c.awaitTraining(t, "unknown", kubeflowv1.JobRunning)
		classes := map[string]string{}
		for _, pod := range apiserver.All[corev1.Pod](c.server, "ns") {
			classes[pod.Labels[kubeflowv1.KeyJobName]] += pod.Spec.PriorityClassName + ","
		}
		want := map[string]string{"known": "high,high,high,high,", "unknown": ",,,,"}
		if !maps.Equal(classes, want) {
			t.Errorf("the Pods have the classes %v, want %v", classes, want)
		}
		warnings := map[string]int{}
		for _, event := range apiserver.All[corev1.Event](c.server, "ns") {
			if event.Type == corev1.EventTypeWarning {
				warnings[event.InvolvedObject.Name+" "+event.Reason]++
			}
		}
		// Each type of replicas is refused by itself.
		if want := map[string]int{"unknown PriorityClassNotFound": 1, "template FailedCreatePod": 2}; !maps.Equal(warnings, want) {
			t.Errorf("the Warnings are %v, want %v", warnings, want)
		}
		c.wantEvent(t, "unknown", corev1.EventTypeWarning, "PriorityClassNotFound",
			"spec.runPolicy.schedulingPolicy.priorityClass: PriorityClass no-such-class does not exist; the Pods run without it")
	})
}

// TestAPodThatCanNotBeDeletedIsToldByAReasonOfItsOwn, as users of the training operator know it.
func TestAPodThatCanNotBeDeletedIsToldByAReasonOfItsOwn(t *testing.T) {
	withTraining(t, func(t *testing.T, c *cluster) {
		c.ends = succeed
		c.server.SetHook(func(r *apiserver.Request) apiserver.Fault {
			if r.Verb == apiserver.Delete && r.Resource == "pods" {
				return apiserver.Fault{
					Before:  time.Millisecond, // Events are named by their time.
					Refusal: apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, r.Name, errors.New("no right")),
				}
			}
			return apiserver.Fault{}
		})
		job := newTFJob(map[string]int32{"Worker": 2})
		job.Spec.RunPolicy.CleanPodPolicy = ptr.To(kubeflowv1.CleanPodPolicyAll)
		apiserver.Add(c.server, job)
		c.awaitTraining(t, "j", kubeflowv1.JobSucceeded)
		c.pass(time.Minute)
		reasons := map[string]int{}
		for _, event := range apiserver.All[corev1.Event](c.server, "ns") {
			reasons[event.Reason]++
		}
		if reasons["FailedDeletePod"] != 1 || reasons["ActionFailed"] != 0 {
			t.Errorf("the events are %v, want one FailedDeletePod, and no ActionFailed", reasons)
		}
	})
}

// TestAJobThatHangsOnADeadNodeIsHelpedByAnAnnotation, which is set when it hangs already: nothing else
// happens to the job then.
func TestAJobThatHangsOnADeadNodeIsHelpedByAnAnnotation(t *testing.T) {
	withTraining(t, func(t *testing.T, c *cluster) {
		apiserver.Add(c.server, newTFJob(map[string]int32{"Worker": 1}))
		c.awaitTraining(t, "j", kubeflowv1.JobRunning)
		first := c.podUID("ns", "j-worker-0")
		apiserver.DeleteObject[corev1.Pod](c.server, "ns", "j-worker-0", metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](30)})
		c.pass(time.Hour) // No kubelet ends it.
		if pod := apiserver.Find[corev1.Pod](c.server, "ns", "j-worker-0"); pod == nil || pod.UID != first {
			t.Fatalf("the Pod of the dead node is gone, though nobody said that it may go")
		}
		apiserver.Change(c.server, "ns", "j", func(job *kubeflowv1.TFJob) {
			job.Annotations = map[string]string{kubeflow.KeyForceDeletion: "60"}
		})
		c.pass(time.Minute)
		if got := c.podUID("ns", "j-worker-0"); got == first || got == "" {
			t.Errorf("a minute after the annotation the job has no other Pod than that of the dead node")
		}
	})
}

// TestTrainingJobsRunOnceTheirKindsAreServed, and others don't wait for that.
func TestTrainingJobsRunOnceTheirKindsAreServed(t *testing.T) {
	quiet(t)
	unserved := func(c *cluster) {
		runTraining(c)
		c.server.SetHook(func(r *apiserver.Request) apiserver.Fault {
			if r.Resource == kubeflowv1.TFJobPlural {
				return apiserver.Fault{Refusal: apierrors.NewGenericServerResponse(http.StatusNotFound, "get", schema.GroupResource{Resource: r.Resource}, "", "404 page not found", 0, true)}
			}
			return apiserver.Fault{}
		})
	}
	inClusterWith(t, unserved, func(t *testing.T, c *cluster) {
		c.add("ns", "fw", map[string]int32{"w": 1})
		apiserver.Add(c.server, newTFJob(map[string]int32{"Worker": 1}))
		torch := newPyTorchJob(map[string]int32{"Master": 1})
		torch.Name = "torch"
		apiserver.Add(c.server, torch)
		c.pass(10 * time.Minute)
		if got := c.podNames(); !slices.Equal(got, []string{"fw-w-0", "torch-master-0"}) {
			t.Errorf("there are the Pods %v, want those of the Framework and of the kind that is served", got)
		}
		c.server.SetHook(nil)
		c.pass(time.Minute)
		if got := c.podNames(); !slices.Equal(got, []string{"fw-w-0", "j-worker-0", "torch-master-0"}) {
			t.Errorf("there are the Pods %v a minute after all is served, want those of the TFJob too", got)
		}
	})
}

// TestWhatCantBeReadOfATrainingJobDisturbsNoOther: a job that no CRD of Lockstep would let in.
func TestWhatCantBeReadOfATrainingJobDisturbsNoOther(t *testing.T) {
	withTraining(t, func(t *testing.T, c *cluster) {
		c.addRaw(t, kubeflowv1.SchemeGroupVersion.WithResource(kubeflowv1.TFJobPlural), "garbled", `{"spec":{"tfReplicaSpecs":{"Worker":{"replicas":"many"}}}}`)
		apiserver.Add(c.server, newTFJob(map[string]int32{"Worker": 2}))
		c.awaitTraining(t, "j", kubeflowv1.JobRunning)
		c.wantEvent(t, "garbled", corev1.EventTypeWarning, "Undecodable", "replicas")
		c.killProgram() // The next one lists both.
		c.startProgram()
		c.ends = succeed
		c.awaitTraining(t, "j", kubeflowv1.JobSucceeded)
	})
}

// TestALargeTrainingJobIsWrittenAFewTimes, although its Pods come, run and end one after the
// other.
func TestALargeTrainingJobIsWrittenAFewTimes(t *testing.T) {
	const workers = 1000
	withTraining(t, func(t *testing.T, c *cluster) {
		job := newTFJob(map[string]int32{"Worker": workers})
		job.Spec.SuccessPolicy = ptr.To(kubeflowv1.SuccessPolicyAllWorkers)
		job.Spec.RunPolicy.SchedulingPolicy = &kubeflowv1.SchedulingPolicy{}
		apiserver.Add(c.server, job)
		c.ends = succeed
		for begun := time.Now(); c.trainingStatus("j").Phase != kubeflowv1.JobSucceeded; c.runNodes(30) {
			if c.pass(100 * time.Millisecond); time.Since(begun) > 10*time.Minute {
				t.Fatalf("the job has not succeeded within 10 minutes: %+v", c.trainingStatus("j"))
			}
		}
		counts := map[string]int{}
		for _, entry := range c.tries() {
			counts[fmt.Sprintf("%s %s", entry.Verb, entry.Resource)]++
		}
		if counts["update tfjobs"] > 40 || counts["create pods"] != workers || counts["create services"] != workers || counts["create podgroups"] != 1 || counts["patch podgroups"] > 0 {
			t.Errorf("the writes are %v, want a few tens of the job, each Pod and Service once, and one PodGroup", counts)
		}
	})
}

// ofTraining says whether a change is of an object that was made for a training job.
func ofTraining(w *apiserver.Written) bool { return w.Metadata().Labels[kubeflowv1.KeyJobName] != "" }
