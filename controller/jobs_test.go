// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"bytes"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/crypto/ssh"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/ptr"

	batchv1alpha1 "github.com/lockstep-k8s/lockstep/apis/batch/v1alpha1"
	busv1alpha1 "github.com/lockstep-k8s/lockstep/apis/bus/v1alpha1"
	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/controller/volcano"
	"github.com/lockstep-k8s/lockstep/internal/testing/apiserver"
)

// The tests of this file lead Volcano Jobs through their lives, and look at what the
// controller asks the API server for.

// withJobs is inCluster with a controller that runs Volcano Jobs.
func withJobs(t *testing.T, test func(t *testing.T, c *cluster)) {
	quiet(t)
	inClusterWith(t, runJobs, test)
}

// runJobs has the controller run Volcano Jobs.
func runJobs(c *cluster) {
	c.config.VolcanoJobs.Enabled = ptr.To(true)
	c.config.VolcanoJobs.SchedulerNames = []string{*c.config.GangSchedulerName, "volcano", ""}
}

// newJob makes the Volcano Job j with tasks of a number of replicas each.
func newJob(tasks ...batchv1alpha1.TaskSpec) *batchv1alpha1.Job {
	return &batchv1alpha1.Job{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "j"},
		Spec:       batchv1alpha1.JobSpec{Tasks: tasks},
	}
}

func newTask(name string, replicas int32) batchv1alpha1.TaskSpec {
	return batchv1alpha1.TaskSpec{Name: name, Replicas: replicas, Template: runtime.RawExtension{
		Raw: []byte(`{"spec":{"restartPolicy":"Never","containers":[{"name":"main","image":"busybox"}]}}`)}}
}

// jobStatus is the stored status of the Volcano Job of a name in the namespace ns.
func (c *cluster) jobStatus(name string) *batchv1alpha1.JobStatus {
	job := apiserver.Find[batchv1alpha1.Job](c.server, "ns", name)
	if job == nil {
		return &batchv1alpha1.JobStatus{}
	}
	return &job.Status
}

// awaitPhase waits until the Volcano Job of a name is in a phase.
func (c *cluster) awaitPhase(t *testing.T, name string, phase batchv1alpha1.JobPhase) {
	t.Helper()
	for begun := time.Now(); c.jobStatus(name).State.Phase != phase; c.runNodes(1) {
		if time.Since(begun) > 10*time.Minute {
			t.Fatalf("Job %s is not %s within 10 minutes, but: %+v", name, phase, c.jobStatus(name))
		}
		c.pass(time.Second)
	}
}

// podNames are the names of all Pods of the namespace ns.
func (c *cluster) podNames() []string {
	var names []string
	for _, pod := range apiserver.All[corev1.Pod](c.server, "ns") {
		names = append(names, pod.Name)
	}
	return names
}

// TestAJobEndsWhosePodNoCacheEverShowed: the watch of Pods was broken from the Pod's creation to its deletion.
func TestAJobEndsWhosePodNoCacheEverShowed(t *testing.T) {
	withJobs(t, func(t *testing.T, c *cluster) {
		c.pass(time.Minute)
		c.program.process.Hold("pods")
		job := apiserver.Add(c.server, newJob(newTask("w", 1)))
		c.pass(10 * time.Second)
		if diff := cmp.Diff([]string{"j-w-0"}, c.podNames()); diff != "" {
			t.Fatalf("unexpected Pods (-want +got):\n%s", diff)
		}
		apiserver.Add(c.server, newCommand("stop", job, busv1alpha1.ActionTerminateJob))
		c.pass(10 * time.Second)
		if left := c.podNames(); len(left) > 0 {
			t.Fatalf("%v are left", left)
		}
		c.program.process.ExpireWatches("pods")
		c.program.process.ReleaseAll("pods")
		c.awaitPhase(t, "j", batchv1alpha1.JobTerminated)
	})
}

func TestAJobRunsToItsEnd(t *testing.T) {
	withJobs(t, func(t *testing.T, c *cluster) {
		var phases []batchv1alpha1.JobPhase
		c.server.SetObserver(func(w *apiserver.Written) {
			if w.Resource == "jobs" && !w.Removed() {
				phases = append(phases, apiserver.After[batchv1alpha1.Job](w).Status.State.Phase)
			}
		})
		apiserver.Add(c.server, newJob(newTask("ps", 1), newTask("worker", 2)))
		c.awaitPhase(t, "j", batchv1alpha1.JobRunning)
		c.ends = succeed
		c.awaitPhase(t, "j", batchv1alpha1.JobCompleted)
		c.pass(time.Minute)
		want := []batchv1alpha1.JobPhase{"", batchv1alpha1.JobPending, batchv1alpha1.JobRunning, batchv1alpha1.JobCompleted}
		if diff := cmp.Diff(want, slices.Compact(phases)); diff != "" {
			t.Errorf("unexpected phases (-want +got):\n%s", diff)
		}
		if s := c.jobStatus("j"); s.Succeeded != 3 || s.Running != 0 || s.RetryCount != 0 {
			t.Errorf("the status is %+v, want 3 succeeded", s)
		}
		if diff := cmp.Diff([]string{"j-ps-0", "j-worker-0", "j-worker-1"}, c.podNames()); diff != "" {
			t.Errorf("unexpected Pods (-want +got):\n%s", diff)
		}
		c.server.ClearJournal()
		c.pass(time.Hour)
		if n := c.requests(); n > 0 {
			t.Errorf("there were %d requests in an hour in which there was nothing to do", n)
		}
	})
}

func TestWritesOfAJobComeInOrder(t *testing.T) {
	withJobs(t, func(t *testing.T, c *cluster) {
		c.ends = succeed
		job := newJob(newTask("a", 1))
		job.Spec.Plugins = map[string]batchv1alpha1.PluginFlags{batchv1alpha1.PluginSvc: nil, batchv1alpha1.PluginSSH: nil}
		job.Spec.Volumes = []batchv1alpha1.VolumeSpec{{MountPath: "/out", VolumeClaimName: "out", VolumeClaim: &runtime.RawExtension{
			Raw: []byte(`{"accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"1Gi"}}}`)}}}
		apiserver.Add(c.server, job)
		c.awaitPhase(t, "j", batchv1alpha1.JobCompleted)
		c.pass(time.Minute)
		writes := c.writes()
		slices.Sort(writes[1:7]) // They are made side by side.
		slices.Sort(writes[len(writes)-4:])
		want := []string{
			jobStatusWrite,
			"create configmaps j-svc", "create networkpolicies j", "create persistentvolumeclaims out",
			"create podgroups j-job-0", "create secrets j-ssh", "create services j",
			"create pods j-a-0", jobStatusWrite, jobStatusWrite,
			"delete configmaps j-svc", "delete networkpolicies j", "delete secrets j-ssh", "delete services j",
		}
		if diff := cmp.Diff(want, writes); diff != "" {
			t.Errorf("unexpected writes (-want +got):\n%s", diff)
		}
	})
}

const jobStatusWrite = "update jobs/status j"

// TestAJobComesThroughACrashBetweenAnyTwoWrites lets the controller crash after each of its
// writes in turn, while a Job is restarted because a Pod fails, aborted and resumed. A new
// one always brings it to the same end.
func TestAJobComesThroughACrashBetweenAnyTwoWrites(t *testing.T) {
	quiet(t)
	for crashAfter, crashed := 0, true; crashed; crashAfter++ {
		crashed = false
		t.Run(fmt.Sprintf("after %d writes", crashAfter), func(t *testing.T) {
			inClusterWith(t, runJobs, func(t *testing.T, c *cluster) {
				book := newJobBook(c)
				c.server.SetObserver(book.observe)
				c.ends = func(pod *corev1.Pod) (int32, bool) {
					switch version := pod.Annotations[batchv1alpha1.KeyJobVersion]; {
					case version == "0" && pod.Name == "j-a-0":
						return 1, c.jobStatus("j").State.Phase == batchv1alpha1.JobRunning
					case version == "3":
						return 0, true
					default:
						return 0, false
					}
				}
				c.program.process.KillAfter(crashAfter)
				job := newJob(newTask("a", 2), newTask("b", 1))
				job.Spec.MaxRetry = 5
				job.Spec.Plugins = map[string]batchv1alpha1.PluginFlags{batchv1alpha1.PluginSvc: nil}
				job.Spec.Policies = []batchv1alpha1.LifecyclePolicy{{Event: busv1alpha1.EventPodFailed, Action: busv1alpha1.ActionRestartJob}}
				job = apiserver.Add(c.server, job)
				for second := range 120 {
					switch second {
					case 30:
						apiserver.Add(c.server, newCommand("stop", job, busv1alpha1.ActionAbortJob))
					case 60:
						apiserver.Add(c.server, newCommand("go", job, busv1alpha1.ActionResumeJob))
					}
					c.pass(time.Second)
					if c.program == nil {
						crashed = true
						c.startProgram()
					}
					c.runNodes(1)
				}
				status := c.jobStatus("j")
				if status.State.Phase != batchv1alpha1.JobCompleted || status.RetryCount != 1 || status.Version != 3 || status.Succeeded != 3 {
					t.Errorf("the status is %+v, want Completed with 3 successes after 1 restart that counts, in version 3", status)
				}
				want := []batchv1alpha1.JobPhase{
					batchv1alpha1.JobPending, batchv1alpha1.JobRunning, batchv1alpha1.JobRestarting,
					batchv1alpha1.JobPending, batchv1alpha1.JobRunning, batchv1alpha1.JobAborting, batchv1alpha1.JobAborted, batchv1alpha1.JobRestarting,
					batchv1alpha1.JobPending, batchv1alpha1.JobRunning, batchv1alpha1.JobCompleted,
				}
				if diff := cmp.Diff(want, book.phases["ns/j"]); diff != "" {
					t.Errorf("unexpected phases (-want +got):\n%s", diff)
				}
				if left := apiserver.All[busv1alpha1.Command](c.server, "ns"); len(left) > 0 {
					t.Errorf("%d Commands are left", len(left))
				}
			})
		})
	}
}

// newCommand is a user who asks for an action on a Job.
func newCommand(name string, job *batchv1alpha1.Job, action busv1alpha1.Action) *busv1alpha1.Command {
	return &busv1alpha1.Command{
		ObjectMeta: metav1.ObjectMeta{Namespace: job.Namespace, Name: name},
		Action:     action,
		Target:     metav1.NewControllerRef(job, batchv1alpha1.JobGroupVersionKind),
	}
}

// jobRequests are the requests of the controller that name an object, events too.
func (c *cluster) jobRequests() []string {
	var requests []string
	for _, entry := range c.server.Journal() {
		if entry.Process != "" && entry.Name != "" && entry.Verb != apiserver.Watch {
			requests = append(requests, describeWrite(entry))
		}
	}
	return requests
}

// TestAJobOfAnotherSchedulerIsNeverTouched, nor are its Commands, whether it makes sense or
// not.
func TestAJobOfAnotherSchedulerIsNeverTouched(t *testing.T) {
	withJobs(t, func(t *testing.T, c *cluster) {
		foreign := newJob(newTask("a", 2))
		foreign.Spec.SchedulerName = "somebodys"
		foreign = apiserver.Add(c.server, foreign)
		shared := newJob(newTask("a", 1), newTask("b", 1))
		shared.Name = "shared"
		for i := range shared.Spec.Tasks {
			shared.Spec.Tasks[i].Template.Raw = []byte(`{"spec":{"schedulerName":"somebodys","containers":[{"name":"main","image":"busybox"}]}}`)
		}
		apiserver.Add(c.server, shared)
		wrong := newJob()
		wrong.Name, wrong.Spec.SchedulerName = "wrong", "somebodys"
		apiserver.Add(c.server, wrong)
		c.addRaw(t, jobResource, "garbled", `{"spec":{"schedulerName":"somebodys","tasks":"none"},"status":{"state":[]}}`)
		c.addRaw(t, jobResource, "nobodys", `{"spec":{"schedulerName":{},"tasks":[]}}`)
		apiserver.Add(c.server, newCommand("stop", foreign, busv1alpha1.ActionAbortJob))
		c.server.ClearJournal()
		for range 10 {
			c.pass(time.Minute)
			apiserver.Change(c.server, "ns", "j", func(job *batchv1alpha1.Job) {
				job.Spec.Tasks[0].Replicas++
				job.Status.State.Phase = "Odd"
			})
		}
		if requests := c.jobRequests(); len(requests) > 0 {
			t.Errorf("the controller has sent %q, want nothing", requests)
		}
	})
}

// TestAJobThatVolcanoRunsIsLeftAloneAfterOneWarning, although its scheduler is in the list.
func TestAJobThatVolcanoRunsIsLeftAloneAfterOneWarning(t *testing.T) {
	group := schema.GroupVersionResource{Group: "scheduling.volcano.sh", Version: "v1beta1", Resource: "podgroups"}
	serveGroups := func(c *cluster) {
		runJobs(c)
		apiserver.WithResource(apiserver.Resource{GroupVersionResource: group, Kind: "PodGroup"})(c.server)
	}
	tests := map[string]func(t *testing.T, c *cluster, job *batchv1alpha1.Job){
		"by its status": func(_ *testing.T, c *cluster, job *batchv1alpha1.Job) {
			job.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "vc-controller-manager", Operation: metav1.ManagedFieldsOperationUpdate, Subresource: "status"}}
			job.Status.State.Phase = batchv1alpha1.JobRunning
			apiserver.Add(c.server, job)
		},
		"by its PodGroup": func(t *testing.T, c *cluster, job *batchv1alpha1.Job) {
			job.Spec.SchedulerName = "somebodys" // Until it has the PodGroup.
			job = apiserver.Add(c.server, job)
			c.addRaw(t, group, "j-the-job", fmt.Sprintf(`{"metadata":{"ownerReferences":[
				{"apiVersion":"batch.volcano.sh/v1alpha1","kind":"Job","name":"j","uid":%q,"controller":true}]}}`, job.UID))
			c.pass(10 * time.Second)
			apiserver.Change(c.server, "ns", "j", func(job *batchv1alpha1.Job) { job.Spec.SchedulerName = "volcano" })
		},
	}
	for name, given := range tests {
		t.Run(name, func(t *testing.T) {
			quiet(t)
			inClusterWith(t, serveGroups, func(t *testing.T, c *cluster) {
				c.pass(time.Second)
				c.server.ClearJournal()
				given(t, c, newJob(newTask("a", 2)))
				c.server.ClearJournal()
				for range 10 {
					c.pass(time.Minute)
					apiserver.Change(c.server, "ns", "j", func(job *batchv1alpha1.Job) { job.Spec.Tasks[0].Replicas++ })
				}
				requests := c.jobRequests()
				if len(requests) != 1 || !strings.HasPrefix(requests[0], "create events j.") {
					t.Errorf("the controller has sent %q, want one event", requests)
				}
				c.wantEvent(t, "j", corev1.EventTypeWarning, "ForeignStatus", "left alone")
				c.wantEvent(t, "j", corev1.EventTypeWarning, "ForeignStatus", `the annotation batch.lockstep.dev/take-over: "true" has Lockstep run it`)
				apiserver.Change(c.server, "ns", "j", func(job *batchv1alpha1.Job) {
					job.Annotations = map[string]string{volcano.KeyTakeOver: "true"}
				})
				c.pass(time.Minute)
				if len(c.podNames()) == 0 {
					t.Error("the Job is not run after an administrator has handed it over")
				}
			})
		})
	}
}

var jobResource = batchv1alpha1.SchemeGroupVersion.WithResource(batchv1alpha1.JobPlural)

// addRaw adds an object that no type of Go has a place for.
func (c *cluster) addRaw(t *testing.T, resource schema.GroupVersionResource, name, fields string) {
	t.Helper()
	object := &unstructured.Unstructured{}
	if err := json.Unmarshal([]byte(fields), &object.Object); err != nil {
		t.Fatal(err)
	}
	kind := map[string]string{"jobs": "Job", "commands": "Command", "podgroups": "PodGroup", "tfjobs": "TFJob"}[resource.Resource]
	object.SetGroupVersionKind(resource.GroupVersion().WithKind(kind))
	object.SetNamespace("ns")
	object.SetName(name)
	client, err := dynamic.NewForConfig(c.server.Config())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Resource(resource).Namespace("ns").Create(t.Context(), object, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// TestWhatCantBeReadDisturbsNoOther: a Job, and a Command, that no CRD of Lockstep would let
// in.
func TestWhatCantBeReadDisturbsNoOther(t *testing.T) {
	withJobs(t, func(t *testing.T, c *cluster) {
		c.addRaw(t, jobResource, "garbled", `{"spec":{"tasks":[{"replicas":"many"}],"schedulerName":"volcano"}}`)
		c.addRaw(t, busv1alpha1.SchemeGroupVersion.WithResource(busv1alpha1.CommandPlural), "garbled", `{"action":["AbortJob"],"target":7}`)
		job := apiserver.Add(c.server, newJob(newTask("a", 2)))
		c.awaitPhase(t, "j", batchv1alpha1.JobRunning)
		apiserver.Add(c.server, newCommand("stop", job, busv1alpha1.ActionAbortJob))
		c.awaitPhase(t, "j", batchv1alpha1.JobAborted)
		c.wantEvent(t, "garbled", corev1.EventTypeWarning, "InvalidJob", "replicas")
		// A controller that begins lists both.
		c.killProgram()
		c.startProgram()
		apiserver.Add(c.server, newCommand("go", job, busv1alpha1.ActionResumeJob))
		c.awaitPhase(t, "j", batchv1alpha1.JobRunning)
	})
}

// TestAJobOfTooManyPodsGetsNone: the CRD may be one that lets it in.
func TestAJobOfTooManyPodsGetsNone(t *testing.T) {
	withJobs(t, func(t *testing.T, c *cluster) {
		apiserver.Add(c.server, newJob(newTask("a", batchv1alpha1.MaxReplicas), newTask("b", 1)))
		c.pass(10 * time.Minute)
		if pods := c.podNames(); len(pods) > 0 {
			t.Errorf("there are %d Pods", len(pods))
		}
		if state := c.jobStatus("j").State; state.Phase != batchv1alpha1.JobPending || state.Reason != "InvalidJob" ||
			!strings.Contains(state.Message, "must have at most 10000 replicas") {
			t.Errorf("the state is %+v, want Pending, as there are too many", state)
		}
	})
}

// TestJobsRunOnceTheirKindsAreServed, and Frameworks don't wait for that.
func TestJobsRunOnceTheirKindsAreServed(t *testing.T) {
	for missing, kind := range map[string]string{batchv1alpha1.JobPlural: "Job", busv1alpha1.CommandPlural: "Command"} {
		t.Run(missing, func(t *testing.T) {
			quiet(t)
			unserved := func(c *cluster) {
				runJobs(c)
				c.trace.verbose = true
				c.server.SetHook(func(r *apiserver.Request) apiserver.Fault {
					if r.Resource == missing {
						return apiserver.Fault{Refusal: apierrors.NewGenericServerResponse(http.StatusNotFound, "get", schema.GroupResource{Resource: missing}, "", "404 page not found", 0, true)}
					}
					return apiserver.Fault{}
				})
			}
			inClusterWith(t, unserved, func(t *testing.T, c *cluster) {
				c.add("ns", "fw", map[string]int32{"w": 1})
				apiserver.Add(c.server, newJob(newTask("a", 2)))
				c.pass(10 * time.Minute)
				if got := c.podNames(); !slices.Equal(got, []string{"fw-w-0"}) {
					t.Errorf("there are the Pods %v, want those of the Framework alone", got)
				}
				told := slices.DeleteFunc(c.trace.lines, func(line string) bool { return !strings.Contains(line, "may not serve") })
				if len(told) != 1 || !strings.Contains(told[0], "missing ["+kind+"]") {
					t.Errorf("the log says %q, want one line that names the kind %s", told, kind)
				}
				c.server.SetHook(nil)
				c.pass(time.Minute)
				if got := c.podNames(); !slices.Equal(got, []string{"fw-w-0", "j-a-0", "j-a-1"}) {
					t.Errorf("there are the Pods %v a minute after all is served, want those of the Job too", got)
				}
			})
		})
	}
}

// TestNoKindHoldsUpAnother: whoever has a thousand of one kind begun makes nobody wait who has
// one of the other.
func TestNoKindHoldsUpAnother(t *testing.T) {
	addJob := func(c *cluster, namespace, name string) {
		job := newJob(newTask("w", 2))
		job.Namespace, job.Name = namespace, name
		apiserver.Add(c.server, job)
	}
	addFramework := func(c *cluster, namespace, name string) { c.add(namespace, name, map[string]int32{"w": 2}) }
	addTFJob := func(c *cluster, namespace, name string) {
		job := newTFJob(map[string]int32{"Worker": 2})
		job.Namespace, job.Name = namespace, name
		apiserver.Add(c.server, job)
	}
	addPyTorchJob := func(c *cluster, namespace, name string) {
		job := newPyTorchJob(map[string]int32{"Worker": 2})
		job.Namespace, job.Name = namespace, name
		apiserver.Add(c.server, job)
	}
	tests := map[string]struct {
		many, one func(c *cluster, namespace, name string)
	}{
		"a thousand TFJobs, and a Framework":  {addTFJob, addFramework},
		"a thousand TFJobs, and a PyTorchJob": {addTFJob, addPyTorchJob},
		"a thousand Frameworks, and a TFJob":  {addFramework, addTFJob},
		"a thousand Jobs, and a Framework":    {addJob, addFramework},
		"a thousand Frameworks, and a Job":    {addFramework, addJob},
		"a thousand Jobs, and a Job":          {addJob, addJob},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			quiet(t)
			inClusterWith(t, func(c *cluster) {
				runJobs(c)
				runTraining(c)
			}, func(t *testing.T, c *cluster) {
				c.server.SetHook(func(r *apiserver.Request) apiserver.Fault {
					if r.Namespace == "" || r.Resource == "events" { // The watches, and what is only told.
						return apiserver.Fault{}
					}
					return apiserver.Fault{After: 100 * time.Millisecond}
				})
				for i := range 1000 {
					tc.many(c, "many", fmt.Sprint("x", i))
				}
				c.pass(3 * time.Second)
				if begun := len(apiserver.All[corev1.Pod](c.server, "many")); begun == 0 || begun == 2000 {
					t.Fatalf("%d Pods of the thousand are there: it shows nothing", begun)
				}
				tc.one(c, "ns", "fw")
				c.pass(3 * time.Second)
				if got := c.podNames(); len(got) != 2 {
					t.Errorf("the one has the Pods %v after 3 seconds, want 2", got)
				}
			})
		})
	}
}

func TestAnExhaustedQuotaOfAJobCostsTwoRequestsAMinute(t *testing.T) {
	withJobs(t, func(t *testing.T, c *cluster) {
		used := 0
		c.refuse(func(name string) bool { return strings.HasPrefix(name, "j-a-") }, func(name string) error {
			used++ // Others start and end.
			return apiserver.QuotaExceeded(name, fmt.Sprintf("small, used: cpu=%dm", 1000+used))
		})
		job := newJob(newTask("a", 100), newTask("b", 3))
		job.Spec.MinAvailable = 3
		apiserver.Add(c.server, job)
		c.pass(5 * time.Second)
		if got := c.podNames(); !slices.Equal(got, []string{"j-b-0", "j-b-1", "j-b-2"}) {
			t.Errorf("there are the Pods %v, want all of the task that is not refused", got)
		}
		c.pass(10 * time.Minute)
		if state := c.jobStatus("j").State; state.Phase != batchv1alpha1.JobPending || state.Reason != "FailedCreate" || !strings.Contains(state.Message, "exceeded quota") {
			t.Errorf("the state is %+v, want Pending because of the quota", state)
		}
		c.wantEvent(t, "j", corev1.EventTypeWarning, "FailedCreate", "exceeded quota")
		c.server.ClearJournal()
		lines := c.trace.linesOf("ns/j")
		c.pass(10 * time.Minute)
		if got := c.requests(); got == 0 || got > 20 {
			t.Errorf("%d requests in ten minutes, want some, and 20 at most", got)
		}
		if got := c.trace.linesOf("ns/j") - lines; got > 20 {
			t.Errorf("%d lines in the log in ten minutes, want 20 at most", got)
		}
		c.server.SetHook(nil)
		c.pass(time.Minute)
		if got := len(c.podNames()); got != 103 {
			t.Errorf("%d Pods a minute after there is room, want 103", got)
		}
		if state := c.jobStatus("j").State; state.Reason != "" {
			t.Errorf("the state is still %+v", state)
		}
	})
}

// TestATakenNameHoldsBackAJob until it is free, and the foreign object stays as it is.
func TestATakenNameHoldsBackAJob(t *testing.T) {
	withJobs(t, func(t *testing.T, c *cluster) {
		foreign := apiserver.Add(c.server, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "j-a-0"}})
		apiserver.Add(c.server, newJob(newTask("a", 2)))
		c.pass(time.Minute)
		c.wantEvent(t, "j", corev1.EventTypeWarning, "FailedCreate", "j-a-0")
		if got := apiserver.Find[corev1.Pod](c.server, "ns", "j-a-0"); got == nil || got.ResourceVersion != foreign.ResourceVersion {
			t.Errorf("the foreign Pod is %v", got)
		}
		apiserver.Remove[corev1.Pod](c.server, "ns", "j-a-0")
		c.awaitPhase(t, "j", batchv1alpha1.JobRunning)
	})
}

// TestAPodOfAJobThatLostItsLabelIsFollowed, at the cost of a look now and then.
func TestAPodOfAJobThatLostItsLabelIsFollowed(t *testing.T) {
	for _, when := range []string{"while the controller runs", "before it begins"} {
		t.Run(when, func(t *testing.T) {
			withJobs(t, func(t *testing.T, c *cluster) {
				apiserver.Add(c.server, newJob(newTask("a", 2)))
				c.awaitPhase(t, "j", batchv1alpha1.JobRunning)
				before := apiserver.Find[corev1.Pod](c.server, "ns", "j-a-0").UID
				if when == "before it begins" {
					c.killProgram()
				}
				apiserver.Change(c.server, "ns", "j-a-0", func(pod *corev1.Pod) { delete(pod.Labels, batchv1alpha1.KeyJobName) })
				if c.program == nil {
					c.startProgram()
				}
				c.pass(time.Minute)
				c.server.ClearJournal()
				c.pass(10 * time.Minute)
				if got := c.requests(); got > 30 {
					t.Errorf("%d requests in ten minutes, want 30 at most", got)
				}
				status := c.jobStatus("j")
				if pod := apiserver.Find[corev1.Pod](c.server, "ns", "j-a-0"); pod == nil || pod.UID != before || status.State.Phase != batchv1alpha1.JobRunning || status.Running != 2 {
					t.Errorf("the Pod is %v, the status %+v, want both as they were", pod, status)
				}
				c.ends = succeed
				c.awaitPhase(t, "j", batchv1alpha1.JobCompleted)
			})
		})
	}
}

func TestAJobGoesOnOnceTheClaimExistsThatItNames(t *testing.T) {
	withJobs(t, func(t *testing.T, c *cluster) {
		job := newJob(newTask("a", 1))
		job.Spec.Volumes = []batchv1alpha1.VolumeSpec{{MountPath: "/in", VolumeClaimName: "data"}}
		apiserver.Add(c.server, job)
		c.pass(20 * time.Second)
		c.wantEvent(t, "j", corev1.EventTypeWarning, "PVCError", "data")
		if pods := c.podNames(); len(pods) > 0 {
			t.Errorf("there are the Pods %v", pods)
		}
		apiserver.Add(c.server, &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "data"}})
		c.pass(time.Second)
		if pods := c.podNames(); len(pods) != 1 {
			t.Errorf("there are the Pods %v a second after the claim is there, want one", pods)
		}
	})
}

// TestARescaleOfAJobChangesItsHostsAndItsGang, and no Pod that stays.
func TestARescaleOfAJobChangesItsHostsAndItsGang(t *testing.T) {
	withJobs(t, func(t *testing.T, c *cluster) {
		job := newJob(newTask("a", 2))
		job.Spec.Plugins = map[string]batchv1alpha1.PluginFlags{batchv1alpha1.PluginSvc: nil, batchv1alpha1.PluginSSH: nil}
		apiserver.Add(c.server, job)
		c.awaitPhase(t, "j", batchv1alpha1.JobRunning)
		before := apiserver.Find[corev1.Pod](c.server, "ns", "j-a-0").UID
		keys := apiserver.Find[corev1.Secret](c.server, "ns", "j-ssh").Data
		if block, _ := pem.Decode(keys["id_rsa"]); block == nil {
			t.Errorf("there is no private key: %q", keys["id_rsa"])
		} else if private, err := ssh.ParsePrivateKey(keys["id_rsa"]); err != nil {
			t.Errorf("the private key can't be read: %v", err)
		} else if public := ssh.MarshalAuthorizedKey(private.PublicKey()); !bytes.Equal(public, keys["authorized_keys"]) {
			t.Errorf("the keys are no pair: the public one is %q", keys["authorized_keys"])
		}
		apiserver.Change(c.server, "ns", "j", func(job *batchv1alpha1.Job) { job.Spec.Tasks[0].Replicas = 3 })
		c.await(t, "three Pods run", func() bool { return c.jobStatus("j").Running == 3 })
		hosts := apiserver.Find[corev1.ConfigMap](c.server, "ns", "j-svc").Data["a.host"]
		if want := "j-a-0.j\nj-a-1.j\nj-a-2.j"; hosts != want {
			t.Errorf("the hosts are %q, want %q", hosts, want)
		}
		if group := apiserver.Find[schedulingv1alpha1.PodGroup](c.server, "ns", "j-job-0"); group.Spec.MinMember != 3 {
			t.Errorf("the gang needs %d, want 3", group.Spec.MinMember)
		}
		if after := apiserver.Find[corev1.Pod](c.server, "ns", "j-a-0").UID; after != before || c.jobStatus("j").RetryCount != 0 {
			t.Errorf("the Pod %s has become %s, after %d restarts", before, after, c.jobStatus("j").RetryCount)
		}
	})
}

// TestALargeJobIsWrittenAFewTimes, although its Pods come, run and end one after the other.
func TestALargeJobIsWrittenAFewTimes(t *testing.T) {
	const tasks = 1000
	withJobs(t, func(t *testing.T, c *cluster) {
		apiserver.Add(c.server, newJob(newTask("a", tasks)))
		c.ends = succeed
		for begun := time.Now(); c.jobStatus("j").State.Phase != batchv1alpha1.JobCompleted; c.runNodes(30) {
			if c.pass(100 * time.Millisecond); time.Since(begun) > 10*time.Minute {
				t.Fatalf("the Job has not completed within 10 minutes: %+v", c.jobStatus("j"))
			}
		}
		counts := map[string]int{}
		for _, entry := range c.tries() {
			counts[fmt.Sprintf("%s %s", entry.Verb, entry.Resource)]++
		}
		if counts["update jobs"] > 40 || counts["create pods"] != tasks || counts["create podgroups"] != 1 || counts["patch podgroups"] > 0 {
			t.Errorf("the writes are %v, want a few tens of the Job, each Pod once, and one PodGroup", counts)
		}
	})
}

// TestAFinishedJobIsDeletedInTime, in the foreground.
func TestAFinishedJobIsDeletedInTime(t *testing.T) {
	withJobs(t, func(t *testing.T, c *cluster) {
		c.ends = succeed
		job := newJob(newTask("a", 2))
		job.Spec.TTLSecondsAfterFinished = ptr.To[int32](60)
		apiserver.Add(c.server, job)
		c.awaitPhase(t, "j", batchv1alpha1.JobCompleted)
		c.pass(50 * time.Second)
		if apiserver.Find[batchv1alpha1.Job](c.server, "ns", "j") == nil {
			t.Fatal("the Job is gone too early")
		}
		for range 10 {
			c.runNodes(1)
			c.pass(5 * time.Second)
		}
		if apiserver.Find[batchv1alpha1.Job](c.server, "ns", "j") != nil || len(c.podNames()) > 0 {
			t.Errorf("the Job is still there, or the Pods %v", c.podNames())
		}
		if known := c.program.frameworks.KnownJobs(); known > 0 {
			t.Errorf("the controller remembers %d Jobs when all are gone", known)
		}
	})
}

// ofJob says whether a change is of an object that was made for a Volcano Job.
func ofJob(w *apiserver.Written) bool { return w.Metadata().Labels[batchv1alpha1.KeyJobName] != "" }
