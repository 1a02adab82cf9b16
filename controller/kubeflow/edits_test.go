// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package kubeflow

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kubeflowv1 "github.com/lockstep-k8s/lockstep/apis/kubeflow/v1"
	"github.com/lockstep-k8s/lockstep/controller/engine/plan"
	"github.com/lockstep-k8s/lockstep/internal/testing/jobworld"
)

// TestWhatUsersEdit are changes of a job and of what it has, by hand, while it lives.
func TestWhatUsersEdit(t *testing.T) {
	for name, story := range map[string]func(t *testing.T){
		"a Pod and a Service without labels are still the job's": func(t *testing.T) {
			w := given(t, workers("replicas: 2, restartPolicy: OnFailure")).run()
			pod, service := w.Pod("j-worker-1"), w.service("j-worker-1")
			pod.Labels, service.Labels = nil, nil
			w.Store(KindPod, pod)
			w.Store(KindService, service)
			before := w.uid("j-worker-1")
			if w.pass(3).counted("Worker 2/0/0"); w.uid("j-worker-1") != before {
				t.Error("the Pod is another one")
			}
			w.exit("j-worker-1", 1).run().says("Created Running").counted("Worker 2/0/0")
		},
		"a job that has begun stays ours, whatever scheduler its template names": func(t *testing.T) {
			w := newWorld(t, jobOf(t, objectOf(t, "", "", "", ofScheduler(gangScheduler))))
			w.core.options.TakeJobs = TakeScheduler
			w.run().says("Created Running")
			w.edit(func(s *Spec) { *s = jobOf(t, objectOf(t, "", "", "", ofScheduler("other"))).Spec })
			w.succeed("j-worker-0").says("Created !Running(TFJobRunning) Succeeded")
		},
		"and so does one that is suspended, and has nothing but its status": func(t *testing.T) {
			for _, byStarts := range []bool{true, false} {
				w := newWorld(t, jobOf(t, objectOf(t, "", "", "", ofScheduler(gangScheduler))))
				w.core.options.TakeJobs = TakeScheduler
				w.run().suspend(true).has(KindPod)
				if byStarts {
					w.Owner.ManagedFields = nil
				} else {
					w.Written.Starts = 0
				}
				w.edit(func(s *Spec) { *s = jobOf(t, objectOf(t, "", "", "", ofScheduler("other"))).Spec })
				w.Crash()
				w.suspend(false).run().says("Created !Suspended(TFJobResumed) Running")
			}
		},
		"one that has not begun is ours no more": func(t *testing.T) {
			w := newWorld(t, jobOf(t, objectOf(t, "", "", "", ofScheduler("other"))))
			w.core.options.TakeJobs = TakeScheduler
			w.Owner.ManagedFields = nil
			if w.pass(2).has(KindPod); w.Written != nil {
				t.Errorf("its status is %+v", w.Written)
			}
		},
		"an annotation of one Service changes no names": func(t *testing.T) {
			for version, of := range map[string]func(*testing.T, string) *world{"v1": givenDesigned, "v1alpha2": given} {
				w := of(t, "{tfReplicaSpecs: {Worker: {replicas: 3, @t}}}").run()
				pods := w.Names(KindPod)
				for _, name := range pods {
					service := w.service(name)
					service.Annotations[KeyCreatedAs] = version
					w.Store(KindService, service)
					for range 5 {
						w.Crash()
						w.has(KindPod, pods...)
					}
				}
			}
		},
		"what is scaled away does not count": func(t *testing.T) {
			w := given(t, "{successPolicy: AllWorkers, tfReplicaSpecs: {Worker: {replicas: 4, @t}}}").run()
			w.WriteFrom = plan.PersistNow // All else waits.
			w.succeed("j-worker-2", "j-worker-3")
			w.Remove(KindPod, "j-worker-2")
			w.Remove(KindPod, "j-worker-3")
			if w.scale("Worker", 2); is(w.Written, kubeflowv1.JobConditionSucceeded) {
				t.Error("it succeeds while workers 0 and 1 run")
			}
			w.WriteFrom = plan.PersistLater
			w.says("Created Running").counted("Worker 2/0/0")
		},
		"a failure that is scaled away fails nothing": func(t *testing.T) {
			w := given(t, "{tfReplicaSpecs: {Chief: {@t}, Worker: {replicas: 2, @t}}}").run()
			w.scaleAnd("Worker", 1, func() {
				w.SetPhase("j-worker-1", corev1.PodFailed, 1)
			})
			w.says("Created Running")
		},
		"a status of which nobody knows who has written it": func(t *testing.T) {
			w := newWorld(t, jobOf(t, objectOf(t, "", "", "", workers("replicas: 1"))))
			w.Owner.ManagedFields = nil
			w.Written = &status{Conditions: []kubeflowv1.JobCondition{{Type: kubeflowv1.JobConditionCreated, Status: corev1.ConditionTrue}}}
			w.Crash()
			if w.pass(2).has(KindPod); w.told("ManagedElsewhere") != 1 {
				t.Errorf("events: %v", w.Events)
			}
		},
		"an own status of which the managed fields were dropped": func(t *testing.T) {
			w := given(t, withPolicy("cleanPodPolicy: All", "replicas: 1"))
			w.Owner.ManagedFields = nil
			w.run().suspend(true)
			w.Crash()
			w.suspend(false).run().says("Created !Suspended(TFJobResumed) Running")
		},
		"Pods of a dead node go by force, if the job says after how long": func(t *testing.T) {
			for annotation, wants := range map[string]bool{"30": true, "": false, "soon": false, "-1": false} {
				w := given(t, workers("restartPolicy: OnFailure")).run()
				if annotation != "" {
					w.Edit(func(j *Job) { j.Annotations = map[string]string{KeyForceDeletion: annotation} })
				}
				before := w.uid("j-worker-0")
				w.DeletePod("j-worker-0", 10)
				w.Run()
				w.Now = w.Now.Add(29 * time.Second)
				if w.Run(); string(w.Pod("j-worker-0").UID) != before {
					t.Errorf("%q: it goes too early", annotation)
				}
				w.Now = w.Now.Add(time.Second)
				w.Run()
				if gone := w.Pod("j-worker-0") == nil || string(w.Pod("j-worker-0").UID) != before; gone != wants {
					t.Errorf("%q: gone: %v", annotation, gone)
				}
				if wrong := annotation != "" && !wants; wrong != (w.told("InvalidAnnotation") == 1) {
					t.Errorf("%q: events %v", annotation, w.Events)
				}
			}
		},
	} {
		t.Run(name, story)
	}
}

// ofScheduler is the spec of a TFJob whose template names a scheduler.
func ofScheduler(name string) string {
	return "{tfReplicaSpecs: {Worker: {template: {spec: {schedulerName: " + name + ", containers: [{name: tensorflow, image: i}]}}}}}"
}

// scaleAnd scales a type while something happens of which nobody has heard before.
func (w *world) scaleAnd(name string, n int32, meanwhile func()) {
	w.T.Helper()
	w.Prompt = false
	meanwhile()
	w.Edit(func(j *Job) {
		spec := j.Spec.Replicas[name]
		spec.Replicas = &n
		replicas := map[string]kubeflowv1.ReplicaSpec{}
		for other, s := range j.Spec.Replicas {
			replicas[other] = s
		}
		replicas[name] = spec
		j.Spec.Replicas = replicas
	})
	w.Prompt = true
	w.DeliverAll()
	w.settle()
}

// TestPortsOfOneNumberAreOneOfAService, which takes no number twice.
func TestPortsOfOneNumberAreOneOfAService(t *testing.T) {
	template := "template: {spec: {containers: [{name: tensorflow, image: i, ports: [" +
		"{name: http, containerPort: 80}, {name: web, containerPort: 80, protocol: TCP}, {name: dns, containerPort: 80, protocol: UDP}, {name: tf, containerPort: 2222}]}]}}"
	var ports []string
	for _, port := range given(t, "{tfReplicaSpecs: {Worker: {"+template+"}}}").service("j-worker-0").Spec.Ports {
		ports = append(ports, port.Name)
	}
	if got := strings.Join(ports, " "); got != "http dns tfjob-port" {
		t.Errorf("ports: %s", got)
	}
}

// TestATextThatNoProcessStartsWithIsRefused: Linux takes but 128 KiB of a variable.
func TestATextThatNoProcessStartsWithIsRefused(t *testing.T) {
	long := strings.Repeat("x", 50)
	for _, version := range []string{"v1", "v1alpha2"} {
		few := jobOf(t, objectOf(t, version, "", "j", "{tfReplicaSpecs: {Worker: {replicas: 1000, @t}}}"))
		if r := (Memory{}).read(few, kindOfJob(few), Options{}); r.invalid != "" {
			t.Errorf("%s: 1000 workers are too many: %s", version, r.invalid)
		}
		name := strings.Repeat("x", 40)
		w := newWorld(t, jobOf(t, objectOf(t, version, "", name, "{tfReplicaSpecs: {Worker: {replicas: 3000, @t}}}")))
		w.Run()
		if c := condition(w.Written, kubeflowv1.JobConditionFailed); c == nil || !strings.Contains(c.Message, "spec.tfReplicaSpecs: ") || w.Written.CompletionTime == nil {
			t.Errorf("%s: the status is %+v", version, w.Written)
		}
	}
	settings := strings.Repeat("{key: "+strings.Repeat(long, 20)+", value: "+strings.Repeat(long, 20)+"}, ", 64) + "{key: " + strings.Repeat(long, 20) + ", value: " + strings.Repeat(long, 20) + "}"
	w := newWorld(t, jobOf(t, objectOf(t, "", "PyTorchJob", "", "{elasticPolicy: {rdzvConf: ["+settings+", "+settings+"]}, pytorchReplicaSpecs: {Worker: {@t}}}")))
	w.Run()
	if c := condition(w.Written, kubeflowv1.JobConditionFailed); c == nil || !strings.Contains(c.Message, "spec.elasticPolicy.rdzvConf: ") {
		t.Errorf("the status is %+v", w.Written)
	}
}

// TestWhatIsToldToAllContainersIsBounded, since all of it is in each of them.
func TestWhatIsToldToAllContainersIsBounded(t *testing.T) {
	setting := "{key: a, value: " + strings.Repeat("x", 1024) + "}"
	for containers, fits := range map[int]bool{10: true, 20: false} {
		others := strings.Repeat(", {name: c, image: i}", containers-1)
		template := "template: {spec: {containers: [{name: pytorch, image: i}" + others + "]}}"
		job := jobOf(t, objectOf(t, "", "PyTorchJob", "", "{elasticPolicy: {rdzvConf: ["+strings.Repeat(setting+", ", 63)+setting+"]}, pytorchReplicaSpecs: {Worker: {"+template+"}}}"))
		r := (Memory{}).read(job, pyTorchJob, Options{})
		if (r.invalid == "") != fits || !fits && !strings.HasPrefix(r.invalid, "spec.elasticPolicy: the containers of a Pod of Worker would have ") {
			t.Errorf("%d containers: %s", containers, r.invalid)
		}
	}
}

// TestTheNamesOfAllWorkersAreBoundedInAllContainers, as each of them is told all names.
func TestTheNamesOfAllWorkersAreBoundedInAllContainers(t *testing.T) {
	name := strings.Repeat("x", 20)
	for replicas, wants := range map[int]string{
		3900: "", 4100: "spec.xgbReplicaSpecs: WORKER_ADDRS would have ",
	} {
		job := jobOf(t, objectOf(t, "", "XGBoostJob", name, fmt.Sprintf("{xgbReplicaSpecs: {Master: {replicas: 1, @t}, Worker: {replicas: %d, @t}}}", replicas)))
		if r := (Memory{}).read(job, xgBoostJob, Options{}); (wants == "") != (r.invalid == "") || !strings.HasPrefix(r.invalid, wants) {
			t.Errorf("%d workers: %s", replicas, r.invalid)
		}
	}
	template := "template: {spec: {containers: [{name: xgboost, image: i}" + strings.Repeat(", {name: c, image: i}", 9) + "]}}"
	job := jobOf(t, objectOf(t, "", "XGBoostJob", name, "{xgbReplicaSpecs: {Master: {replicas: 1, "+template+"}, Worker: {replicas: 3900, "+template+"}}}"))
	if r := (Memory{}).read(job, xgBoostJob, Options{}); !strings.HasPrefix(r.invalid, "spec.xgbReplicaSpecs: the containers of a Pod of Master would have ") || !strings.HasSuffix(r.invalid, "or fewer replicas") {
		t.Errorf("ten containers: %s", r.invalid)
	}
}

// TestAnEditThatMakesNoSenseFailsNoJobThatWaits, for a name, a quota or after a resume: nothing of it
// is there, but its user may mend what was edited.
func TestAnEditThatMakesNoSenseFailsNoJobThatWaits(t *testing.T) {
	nonsense := func(s *Spec) { s.SuccessPolicy = "Some" }
	waits := map[string]func(*world){
		"for a name": func(w *world) {
			w.Fate = func(a plan.Action) jobworld.Fate {
				if a.Verb == plan.Create {
					return jobworld.Refused
				}
				return jobworld.Done
			}
			w.pass(2).edit(nonsense)
		},
		"since its resume": func(w *world) {
			w.run().suspend(true)
			w.edit(func(s *Spec) { nonsense(s); s.RunPolicy.Suspend = nil })
		},
	}
	for name, wait := range waits {
		for version, of := range map[string]func(*testing.T, string) *world{"v1": given, "v1alpha2": givenDesigned} {
			t.Run(name+", of "+version, func(t *testing.T) {
				w := of(t, "{tfReplicaSpecs: {Worker: {@t}}}")
				wait(w)
				w.pass(2)
				w.Crash()
				if w.pass(2); isFinished(w.Written) || w.told("TFJobInvalid") == 0 {
					t.Fatalf("the status is %s, events %v", transcript(w.Written), w.Events)
				}
				w.Fate = func(plan.Action) jobworld.Fate { return jobworld.Done }
				if w.edit(func(s *Spec) { s.SuccessPolicy = "" }).run().inPhase("Running"); len(w.OwnPods()) != 1 {
					t.Errorf("Pods: %v", w.OwnPods())
				}
			})
		}
	}
}

// TestTheUserHearsWhatAJobWaitsFor if the deletion of an object does not end.
func TestTheUserHearsWhatAJobWaitsFor(t *testing.T) {
	for kind, grace := range map[string]time.Duration{KindPod: 30 * time.Second, KindService: 0, KindPodGroup: 0} {
		t.Run(kind, func(t *testing.T) {
			w := given(t, withPolicy("schedulingPolicy: {}", "restartPolicy: OnFailure")).run()
			name := w.Names(kind)[0]
			if kind == KindPod {
				w.DeletePod(name, 30)
			} else {
				object := w.Objects[jobworld.Key{Kind: kind, Name: name}]
				object.SetDeletionTimestamp(&metav1.Time{Time: w.Now})
				w.Store(kind, object)
			}
			w.Run()
			w.Now = w.Now.Add(grace + 59*time.Second)
			p := w.Run()
			if w.told("Waiting") != 0 || !p.WakeAt.Equal(w.Now.Add(time.Second)) {
				t.Errorf("after less than a minute it looks again at %v, events %v", p.WakeAt, w.Events)
			}
			w.Now = w.Now.Add(time.Second)
			w.Run()
			w.Run()
			if w.told("Waiting") != 1 || !slices.ContainsFunc(w.Events, func(e plan.Event) bool {
				return strings.HasPrefix(e.Message, kind+" "+name+" ") && strings.Contains(e.Message, " has been in deletion since ")
			}) {
				t.Errorf("after a minute: %v", w.Events)
			}
		})
	}
}

// TestAPodWithoutContainersIsNoPanic, though nobody could run it.
func TestAPodWithoutContainersIsNoPanic(t *testing.T) {
	w := given(t, workers("restartPolicy: ExitCode")).run()
	pod := w.Pod("j-worker-0")
	pod.Spec.Containers, pod.Status.ContainerStatuses, pod.Status.Phase = nil, nil, corev1.PodFailed
	w.Store(KindPod, pod)
	w.says("Created Restarting")
}

// TestAJobOfV1alpha2EndsWhenNothingRuns any more, and not before.
func TestAJobOfV1alpha2EndsWhenNothingRuns(t *testing.T) {
	t.Run("what is scaled away ends first", func(t *testing.T) {
		w := designed(t, "Never").run()
		w.scaleAnd("Worker", 2, func() {
			for _, name := range w.OwnPods() {
				if name != "j-worker-3"+u {
					w.SetPhase(name, corev1.PodSucceeded, 0)
				}
			}
		})
		w.inPhase("Succeeded")
		if w.Pod("j-worker-3"+u) != nil {
			t.Error("worker 3 runs on")
		}
	})
	t.Run("a Pod that can never be made is a failure, and the others run on", func(t *testing.T) {
		w := givenDesigned(t, "{tfReplicaSpecs: {PS: {@t}, Worker: {replicas: 2, template: {spec: {restartPolicy: Never, containers: [{name: tensorflow, image: i}]}}}}}")
		w.Refuses = func(object metav1.Object) error {
			if _, isPod := object.(*corev1.Pod); isPod && strings.Contains(object.GetName(), "-ps-") {
				return errors.New("never")
			}
			return nil
		}
		w.settle()
		pods := w.OwnPods()
		w.run().says("Created Failed").inPhase("Pending").succeed(pods...).inPhase("Failed")
	})
}

// TestWhatIsOnNodesCountsWhileASuspendedJobStops, also what does not run yet, and Pods of the start
// before: who waits for the room waits for them.
func TestWhatIsOnNodesCountsWhileASuspendedJobStops(t *testing.T) {
	w := given(t, workers("replicas: 3")).settle()
	for _, name := range w.OwnPods()[:2] {
		pod := w.Pod(name)
		pod.Spec.NodeName = "node-1"
		w.Store(KindPod, pod)
	}
	yes := true
	w.Edit(func(j *Job) { j.Spec.RunPolicy.Suspend = &yes })
	for range 3 {
		w.Run()
	}
	if got := w.Written.ReplicaStatuses["Worker"].Active; got != 2 {
		t.Errorf("%d are active while two Pods are on their way out", got)
	}
	w.counted("Worker 0/0/0")
}

// TestAGangRecordsWhatItNeedsAtLeast: minResources, or else what the first of its Pods request.
func TestAGangRecordsWhatItNeedsAtLeast(t *testing.T) {
	template := func(resources string) string {
		return "template: {spec: {containers: [{name: tensorflow, image: i, resources: " + resources + "}, {name: log, image: i, resources: {requests: {cpu: 100m}}}]}}"
	}
	replicas := ", tfReplicaSpecs: {Worker: {replicas: 3, " + template("{requests: {cpu: 1}, limits: {cpu: 2, nvidia.com/gpu: 1}}") + "}, PS: {replicas: 2, " + template("{requests: {memory: 1Gi}}") + "}}}"
	for policy, want := range map[string]string{
		"{minResources: {cpu: 7}}": `{"cpu":"7"}`,
		"{}":                       `{"cpu":"3500m","memory":"2Gi","nvidia.com/gpu":"3"}`,
		"{minAvailable: 2}":        `{"cpu":"2200m","nvidia.com/gpu":"2"}`,
	} {
		w := given(t, "{runPolicy: {schedulingPolicy: "+policy+"}"+replicas)
		if got := w.group().Annotations[KeyMinResources]; got != want {
			t.Errorf("%s: %s, want %s", policy, got, want)
		}
	}
}
