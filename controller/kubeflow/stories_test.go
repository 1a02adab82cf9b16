// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package kubeflow

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	kubeflowv1 "github.com/lockstep-k8s/lockstep/apis/kubeflow/v1"
	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/controller/engine/plan"
	"github.com/lockstep-k8s/lockstep/internal/testing/jobworld"
)

const w4ps2 = "{tfReplicaSpecs: {Worker: {replicas: 4, @t}, PS: {replicas: 2, @t}}}"

// workers is a TFJob of workers only.
func workers(rest string) string { return "{tfReplicaSpecs: {Worker: {" + rest + ", @t}}}" }

// withPolicy is a TFJob of workers with a runPolicy.
func withPolicy(policy, rest string) string {
	return "{runPolicy: {" + policy + "}, tfReplicaSpecs: {Worker: {" + rest + ", @t}}}"
}

// torch is a PyTorchJob of a master and workers, with whatever the workers and the spec have.
func torch(n string, ofWorkers, ofSpec string) string {
	return "{" + ofSpec + "pytorchReplicaSpecs: {Master: {replicas: 1, " + ofWorkers + "@t}, Worker: {replicas: " + n + ", " + ofWorkers + "@t}}}"
}

var sixPods = []string{"j-ps-0", "j-ps-1", "j-worker-0", "j-worker-1", "j-worker-2", "j-worker-3"}

// TestStories are the lives that users know, of jobs of v1. Pods run and end when the story
// says so.
func TestStories(t *testing.T) {
	for name, story := range map[string]func(t *testing.T){
		"a job that has run for as long as its limit fails, counted from when its members run": func(t *testing.T) {
			w := given(t, withPolicy("schedulingPolicy: {}", "replicas: 2"))
			w.Owner.Annotations = map[string]string{schedulingv1alpha1.AnnotationMaxRuntime: "20"}
			w.run("j-worker-0").pass(30).says("Created Running")
			w.run("j-worker-1").pass(19).says("Created Running")
			w.pass(2).says("Created !Running(TFJobRunning) Failed")
		},
		"Pods that succeeded in time decide, though their watch is behind": func(t *testing.T) {
			w := given(t, workers("replicas: 2"))
			w.Owner.Annotations = map[string]string{schedulingv1alpha1.AnnotationMaxRuntime: "20"}
			w.run().pass(10)
			w.Prompt = false
			w.succeed("j-worker-0", "j-worker-1")
			w.pass(30).says("Created !Running(TFJobRunning) Succeeded")
		},
		"a longer limit comes too late for a job that runs": func(t *testing.T) {
			w := given(t, workers("replicas: 2"))
			w.Owner.Annotations = map[string]string{schedulingv1alpha1.AnnotationMaxRuntime: "20"}
			w.run().pass(10)
			w.Edit(func(j *Job) { j.Annotations[schedulingv1alpha1.AnnotationMaxRuntime] = "100" })
			w.pass(11).says("Created !Running(TFJobRunning) Failed")
		},
		"a job that is resumed has the whole time again": func(t *testing.T) {
			w := given(t, workers("replicas: 2"))
			w.Owner.Annotations = map[string]string{schedulingv1alpha1.AnnotationMaxRuntime: "20"}
			w.run().pass(15).suspend(true).suspend(false).run().pass(15)
			if is(w.Written, kubeflowv1.JobConditionFailed) {
				t.Errorf("it has failed: %v", w.Written.Conditions)
			}
		},
		"the gang of a job has the smaller limit of two, and its estimate": func(t *testing.T) {
			w := given(t, withPolicy("schedulingPolicy: {}, activeDeadlineSeconds: 50", "replicas: 2"))
			w.Owner.Annotations = map[string]string{schedulingv1alpha1.AnnotationMaxRuntime: "60", schedulingv1alpha1.AnnotationExpectedRuntime: "10"}
			w.settle()
			if spec := w.group().Spec; ptr.Deref(spec.MaxRuntimeSeconds, 0) != 50 || ptr.Deref(spec.ExpectedRuntimeSeconds, 0) != 10 {
				t.Errorf("the PodGroup has %v", spec)
			}
		},
		"a single worker is no cluster": func(t *testing.T) {
			w := given(t, workers("replicas: 1")).says("Created").counted("Worker 0/0/0").
				has(KindPod, "j-worker-0").has(KindService, "j-worker-0")
			if _, times := w.env("j-worker-0", 0, "TF_CONFIG"); times != 0 || w.Written.StartTime == nil {
				t.Errorf("TF_CONFIG %d times, started %v", times, w.Written.StartTime)
			}
		},
		"Pods and Services": func(t *testing.T) {
			w := given(t, w4ps2).has(KindPod, sixPods...).has(KindService, sixPods...)
			for _, name := range sixPods {
				for _, object := range []metav1.Object{w.Pod(name), w.service(name)} {
					owner := metav1.GetControllerOf(object)
					if owner == nil || owner.Kind != "TFJob" || owner.APIVersion != "kubeflow.org/v1" || owner.UID != w.Owner.UID || !*owner.BlockOwnerDeletion {
						t.Errorf("the controller of %s is %v", name, owner)
					}
				}
				leads := w.Pod(name).Labels[kubeflowv1.KeyJobRole] == "master"
				if leads != (name == "j-worker-0") {
					t.Errorf("%s has the role %q", name, w.Pod(name).Labels[kubeflowv1.KeyJobRole])
				}
			}
			labels := w.Pod("j-ps-1").Labels
			for key, want := range map[string]string{
				"training.kubeflow.org/operator-name": "tfjob-controller", "training.kubeflow.org/job-name": "j",
				"training.kubeflow.org/replica-type": "ps", "training.kubeflow.org/replica-index": "1",
			} {
				if labels[key] != want {
					t.Errorf("the label %s is %q, want %q", key, labels[key], want)
				}
				if selector := w.service("j-ps-1").Spec.Selector; selector[key] != want || len(selector) != 4 {
					t.Errorf("the Service selects %v", selector)
				}
			}
			if spec := w.service("j-ps-1").Spec; spec.ClusterIP != "None" || !spec.PublishNotReadyAddresses || len(spec.Ports) != 1 || spec.Ports[0].Port != 2222 {
				t.Errorf("the Service is %+v", spec)
			}
		},
		"a job runs as soon as a worker does": func(t *testing.T) {
			given(t, w4ps2).says("Created").counted("PS 0/0/0 Worker 0/0/0").
				run("j-worker-2").says("Created Running").counted("PS 0/0/0 Worker 1/0/0").inPhase("Running").
				run().says("Created Running").counted("PS 2/0/0 Worker 4/0/0").has(KindPod, sixPods...)
		},
		"what somebody deletes is back under its name": func(t *testing.T) {
			w := given(t, w4ps2).settle()
			w.Remove(KindPod, "j-ps-1")
			w.Remove(KindPod, "j-worker-3")
			w.Remove(KindService, "j-ps-0")
			w.succeed("j-worker-2").has(KindPod, sixPods...).has(KindService, sixPods...).says("Created").counted("PS 0/0/0 Worker 0/1/0")
		},
		"a job whose Pods all succeed has succeeded": func(t *testing.T) {
			w := given(t, w4ps2).succeed(sixPods...).counted("PS 0/2/0 Worker 0/4/0").says("Created Succeeded").inPhase("Succeeded")
			if w.Written.CompletionTime == nil {
				t.Error("it has no completionTime")
			}
			w.Remove(KindPod, "j-worker-1")
			if w.pass(2); w.Pod("j-worker-1") != nil {
				t.Error("a Pod that has ended was made again")
			}
		},
		"a gang that waits loses its surplus Pods before its minimum": func(t *testing.T) {
			w := given(t, withPolicy("schedulingPolicy: {}", "replicas: 4")).settle()
			var done []string
			w.OnAction = func(a plan.Action) {
				if a.Verb == plan.Delete && a.Kind == KindPod || a.Verb == plan.Update && a.Kind == KindPodGroup {
					done = append(done, string(a.Verb)+a.Kind)
				}
			}
			w.scale("Worker", 1).run()
			if want := []string{"DeletePod", "DeletePod", "DeletePod", "UpdatePodGroup"}; !slices.Equal(done, want) {
				t.Errorf("the controller did %v, want %v", done, want)
			}
		},
		"an init container that crashes again and again ends the job by backoffLimit": func(t *testing.T) {
			for _, w := range []*world{
				given(t, withPolicy("backoffLimit: 3", "replicas: 1, restartPolicy: OnFailure")).settle(),
				givenMPI(t, launched("", "runPolicy: {backoffLimit: 3}, ")).settle(),
			} {
				name := w.OwnPods()[0] // The worker, and the launcher.
				pod := w.Pod(name)
				pod.Status.Phase = corev1.PodPending
				pod.Status.InitContainerStatuses = []corev1.ContainerStatus{{
					Name: "fetch", RestartCount: 2, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}},
				}}
				w.Store(KindPod, pod)
				w.settle().says("Created")
				pod.Status.InitContainerStatuses[0].RestartCount = 3
				w.Store(KindPod, pod)
				w.settle().says("Created Failed")
			}
		},
		"what runs on after a success is counted as what it comes to": func(t *testing.T) {
			w := given(t, w4ps2).run().succeed("j-worker-0").says("Created !Running(TFJobRunning) Succeeded").
				counted("PS 2/0/0 Worker 3/1/0").has(KindPod, sixPods...)
			w.exit("j-worker-1", 1).succeed("j-worker-2").counted("PS 2/0/0 Worker 1/2/1")
			for _, name := range sixPods {
				w.Remove(KindPod, name)
			}
			w.settle().counted("PS 0/0/0 Worker 0/2/1")
		},
		"worker 0 without a word of its container counts only among all": func(t *testing.T) {
			w := given(t, workers("replicas: 2")).run()
			w.SetPhase("j-worker-0", corev1.PodSucceeded, -1)
			w.says("Created Running").succeed("j-worker-1").says("Created !Running(TFJobRunning) Succeeded")
		},
		"all workers, by the successPolicy": func(t *testing.T) {
			given(t, "{successPolicy: AllWorkers, tfReplicaSpecs: {Worker: {replicas: 2, @t}}}").run().
				succeed("j-worker-0").says("Created Running").succeed("j-worker-1").says("Created !Running(TFJobRunning) Succeeded")
		},
		"a chief decides": func(t *testing.T) {
			given(t, "{tfReplicaSpecs: {Chief: {@t}, Worker: {@t}}}").run("j-worker-0").says("Created").succeed("j-worker-0").says("Created").
				run("j-chief-0").says("Created Running").succeed("j-chief-0").says("Created !Running(TFJobRunning) Succeeded")
		},
		"parameter servers alone run and end": func(t *testing.T) {
			given(t, "{tfReplicaSpecs: {PS: {replicas: 2, @t}}}").run("j-ps-0").says("Created Running").
				succeed("j-ps-0").says("Created Running").succeed("j-ps-1").says("Created !Running(TFJobRunning) Succeeded")
		},
		"keys in any case": func(t *testing.T) {
			given(t, "{tfReplicaSpecs: {ps: {@t}, WORKER: {@t}}}").has(KindPod, "j-ps-0", "j-worker-0").counted("PS 0/0/0 Worker 0/0/0")
		},
		"an exit code that may be gone at the next try makes a Pod anew": func(t *testing.T) {
			w := given(t, workers("restartPolicy: ExitCode")).run()
			before := w.uid("j-worker-0")
			w.exit("j-worker-0", 130).says("Created Restarting")
			if after := w.uid("j-worker-0"); after == "" || after == before {
				t.Errorf("the Pod is %q, was %q", after, before)
			}
			w.run().says("Created Running")
			if w.told("ExitedWithCode") != 1 || w.told("TFJobRestarting") != 1 {
				t.Errorf("events: %v", w.Events)
			}
		},
		"a permanent exit code fails the job": func(t *testing.T) {
			w := given(t, workers("restartPolicy: ExitCode")).run()
			before := w.uid("j-worker-0")
			w.exit("j-worker-0", 1).says("Created !Running(TFJobRunning) Failed").counted("Worker 0/0/1").pass(3)
			if w.uid("j-worker-0") != before || w.Written.CompletionTime == nil {
				t.Error("the Pod did not stay, or there is no completionTime")
			}
		},
		"an evicted Pod, and one that a signal ended, are made anew": func(t *testing.T) {
			w := given(t, workers("replicas: 2, restartPolicy: ExitCode")).run()
			for _, code := range []int32{-1, 210} {
				before := w.uid("j-worker-1")
				w.exit("j-worker-1", code).says("Created Restarting")
				if after := w.uid("j-worker-1"); after == "" || after == before {
					t.Errorf("after %d the Pod is %q", code, after)
				}
				w.run("j-worker-1").says("Created Running")
			}
		},
		"a job goes on restarting until what was made anew runs": func(t *testing.T) {
			w := given(t, workers("replicas: 2, restartPolicy: OnFailure")).run()
			w.exit("j-worker-1", 1).says("Created Restarting").pass(5).says("Created Restarting")
			w.Crash()
			w.pass(1).says("Created Restarting").run("j-worker-1").says("Created Running")
		},
		"a restartPolicy of the replicas counts, not that of a template": func(t *testing.T) {
			w := given(t, `{tfReplicaSpecs: {Worker: {restartPolicy: Never, template: {metadata: {labels: {a: "1", training.kubeflow.org/replica-index: "9"}, annotations: {b: "2"}},
  spec: {restartPolicy: Always, containers: [{name: tensorflow, image: i}]}}}, PS: {restartPolicy: ExitCode, @t}}}`).pass(2)
			pod := w.Pod("j-worker-0")
			if pod.Labels["a"] != "1" || pod.Annotations["b"] != "2" || pod.Labels[kubeflowv1.KeyReplicaIndex] != "0" {
				t.Errorf("labels %v, annotations %v", pod.Labels, pod.Annotations)
			}
			if pod.Spec.RestartPolicy != "Never" || w.Pod("j-ps-0").Spec.RestartPolicy != "Never" || w.told("SetPodTemplateRestartPolicy") != 1 {
				t.Errorf("policies %s and %s, events %v", pod.Spec.RestartPolicy, w.Pod("j-ps-0").Spec.RestartPolicy, w.Events)
			}
		},
		"fewer replicas take the highest indexes, more are new ones": func(t *testing.T) {
			w := given(t, "{enableDynamicWorker: true, tfReplicaSpecs: {Worker: {replicas: 3, @t}}}").run()
			w.scale("Worker", 2).has(KindPod, "j-worker-0", "j-worker-1").has(KindService, "j-worker-0", "j-worker-1").says("Created Running")
			w.scale("Worker", 4).has(KindPod, "j-worker-0", "j-worker-1", "j-worker-2", "j-worker-3").counted("Worker 2/0/0")
			if got := w.Written.ReplicaStatuses["Worker"].RestartingIndexes; got != "" {
				t.Errorf("indexes %s go for ever", got)
			}
		},
		"an index that had ended is run again after it was scaled away": func(t *testing.T) {
			w := given(t, "{successPolicy: AllWorkers, tfReplicaSpecs: {Worker: {replicas: 3, @t}}}").run().succeed("j-worker-2").counted("Worker 2/1/0")
			w.scale("Worker", 2).counted("Worker 2/0/0").scale("Worker", 3).counted("Worker 2/0/0")
			if pod := w.Pod("j-worker-2"); pod == nil || pod.Status.Phase != corev1.PodPending {
				t.Errorf("worker 2 is %v", pod)
			}
		},
		"a type that is taken out of the spec goes": func(t *testing.T) {
			w := given(t, w4ps2).run()
			w.edit(func(s *Spec) { delete(s.Replicas, "PS") }).has(KindPod, sixPods[2:]...).has(KindService, sixPods[2:]...).counted("Worker 4/0/0")
		},
		"dynamic workers may fail, but not all": func(t *testing.T) {
			given(t, "{enableDynamicWorker: true, tfReplicaSpecs: {Worker: {replicas: 2, @t}, PS: {@t}}}").run().
				exit("j-worker-1", 1).says("Created Running").exit("j-worker-0", 1).says("Created !Running(TFJobRunning) Failed")
		},
		"cleanPodPolicy Running": func(t *testing.T) {
			given(t, "{runPolicy: {cleanPodPolicy: Running}, tfReplicaSpecs: {Worker: {replicas: 2, @t}, PS: {@t}}}").run().
				succeed("j-worker-0").says("Created !Running(TFJobRunning) Succeeded").has(KindPod, "j-worker-0").has(KindService, "j-worker-0")
		},
		"cleanPodPolicy All": func(t *testing.T) {
			w := given(t, "{runPolicy: {cleanPodPolicy: All}, tfReplicaSpecs: {Worker: {replicas: 2, @t}, PS: {@t}}}").run()
			w.SetPhase("j-worker-0", corev1.PodSucceeded, 0)
			w.Run()
			if services := w.Names(KindService); len(services) < 2 {
				t.Errorf("Services %v are left while their Pods end", services)
			}
			w.has(KindPod).has(KindService)
		},
		"ended Pods stay while the job goes on": func(t *testing.T) {
			given(t, "{runPolicy: {cleanPodPolicy: All}, successPolicy: AllWorkers, tfReplicaSpecs: {Worker: {replicas: 2, @t}}}").run().
				succeed("j-worker-0").has(KindPod, "j-worker-0", "j-worker-1").has(KindService, "j-worker-0", "j-worker-1")
		},
		"made suspended, a job has nothing": func(t *testing.T) {
			w := given(t, "{runPolicy: {suspend: true, ttlSecondsAfterFinished: 1, schedulingPolicy: {}}, tfReplicaSpecs: {Chief: {@t}, Worker: {@t}}}").pass(4)
			w.says("Created Suspended").has(KindPod).has(KindService).has(KindPodGroup)
			if w.Gone || w.Written.StartTime != nil {
				t.Errorf("gone %v, started %v", w.Gone, w.Written.StartTime)
			}
			w.suspend(false).run().says("Created !Suspended(TFJobResumed) Running")
		},
		"suspended and resumed": func(t *testing.T) {
			w := given(t, "{runPolicy: {schedulingPolicy: {}}, tfReplicaSpecs: {Chief: {@t}, Worker: {@t}}}").run().pass(5)
			started, before, gang := w.Written.StartTime, w.uid("j-worker-0"), w.group().Name
			w.suspend(true).has(KindPod).has(KindService).has(KindPodGroup).
				says("Created !Running(TFJobSuspended) Suspended").counted("Chief 0/0/0 Worker 0/0/0").inPhase("Pending")
			if !w.Written.StartTime.Equal(started) {
				t.Error("startTime has changed")
			}
			w.pass(5).edit(func(s *Spec) {
				s.RunPolicy.Suspend = ptr.To(false)
				worker := s.Replicas["Worker"]
				worker.Template = runtime.RawExtension{Raw: []byte(`{"spec":{"nodeSelector":{"a":"b"},"containers":[{"name":"tensorflow","image":"i"}]}}`)}
				s.Replicas["Worker"] = worker
			})
			w.run().says("Created !Suspended(TFJobResumed) Running")
			if pod := w.Pod("j-worker-0"); pod.Spec.NodeSelector["a"] != "b" || string(pod.UID) == before {
				t.Errorf("the Pod is %s with %v", pod.UID, pod.Spec.NodeSelector)
			}
			if !started.Before(w.Written.StartTime) || w.group().Name == gang {
				t.Errorf("started %v, gang %s", w.Written.StartTime, w.group().Name)
			}
		},
		"a suspended job frees its room as its Pods stop": func(t *testing.T) {
			w := given(t, workers("replicas: 2")).run()
			w.Edit(func(j *Job) { j.Spec.RunPolicy.Suspend = ptr.To(true) })
			w.Run()
			if got := w.Written.ReplicaStatuses["Worker"].Active; got != 2 {
				t.Errorf("active is %d while both Pods stop", got)
			}
			w.counted("Worker 0/0/0")
		},
		"resumed before its Pods are gone, a job waits for that": func(t *testing.T) {
			w := given(t, workers("replicas: 2")).run()
			w.Edit(func(j *Job) { j.Spec.RunPolicy.Suspend = ptr.To(true) })
			w.Run()
			w.Edit(func(j *Job) { j.Spec.RunPolicy.Suspend = ptr.To(false) })
			w.Run()
			w.EndPod("j-worker-0")
			w.Run()
			if pods := w.OwnPods(); !slices.Equal(pods, []string{"j-worker-1"}) {
				t.Errorf("Pods %v while one of the last start is left", pods)
			}
			w.run().says("Created !Suspended(TFJobResumed) Running")
		},
		"what had ended is run again after a resume": func(t *testing.T) {
			w := given(t, withPolicy("cleanPodPolicy: All", "replicas: 2")).run().succeed("j-worker-1")
			before := w.uid("j-worker-1")
			w.suspend(true).has(KindPod).counted("Worker 0/0/0").suspend(false).counted("Worker 0/0/0")
			if after := w.uid("j-worker-1"); after == "" || after == before {
				t.Errorf("worker 1 is %q", after)
			}
		},
		"a finished job ignores that it is suspended": func(t *testing.T) {
			given(t, workers("replicas: 1")).run().succeed("j-worker-0").suspend(true).
				says("Created !Running(TFJobRunning) Succeeded").has(KindPod, "j-worker-0")
		},
		"a gang": func(t *testing.T) {
			w := given(t, "{runPolicy: {schedulingPolicy: {}}, tfReplicaSpecs: {Worker: {replicas: 2, @t}, PS: {@t}}}")
			g := w.group()
			if g.Spec.MinMember != 3 || g.Spec.Queue != "default" || g.Name != "j-tfjob-1" {
				t.Errorf("the group is %s %+v", g.Name, g.Spec)
			}
			pod := w.Pod("j-worker-1")
			if pod.Spec.SchedulerName != gangScheduler || pod.Labels[schedulingv1alpha1.LabelPodGroup] != g.Name || pod.Labels[schedulingv1alpha1.LabelRole] != "worker" {
				t.Errorf("scheduler %s, labels %v", pod.Spec.SchedulerName, pod.Labels)
			}
			w.succeed("j-worker-0").has(KindPodGroup)
		},
		"a gang of some, with a class and a queue": func(t *testing.T) {
			w := given(t, withPolicy("schedulingPolicy: {minAvailable: 2, queue: q, priorityClass: high, minResources: {cpu: 1}, scheduleTimeoutSeconds: 7}", "replicas: 3"))
			g := w.group()
			if g.Spec.MinMember != 2 || g.Spec.Queue != "q" || g.Spec.PriorityClassName != "high" ||
				g.Annotations[KeyMinResources] != `{"cpu":"1"}` || g.Annotations[KeyScheduleTimeout] != "7" {
				t.Errorf("the group is %v %+v", g.Annotations, g.Spec)
			}
			if got := w.Pod("j-worker-0").Spec.PriorityClassName; got != "high" {
				t.Errorf("the class of a Pod is %q", got)
			}
		},
		"a job that waits for more than it has runs when its minimum is lowered": func(t *testing.T) {
			w := given(t, `{runPolicy: {schedulingPolicy: {minAvailable: 10}}, tfReplicaSpecs: {Worker: {template: {spec: {schedulerName: lockstep-scheduler, containers: [{name: tensorflow, image: i}]}}}}}`).pass(15)
			if w.says("Created").group().Spec.MinMember != 10 {
				t.Errorf("minMember is %d", w.group().Spec.MinMember)
			}
			w.edit(func(s *Spec) {
				s.RunPolicy.SchedulingPolicy = &kubeflowv1.SchedulingPolicy{MinAvailable: ptr.To[int32](1)}
			})
			if got := w.group().Spec.MinMember; got != 1 {
				t.Errorf("minMember is %d", got)
			}
			w.run().says("Created Running")
		},
		"what makes a gang of a job that runs counts from the next start on": func(t *testing.T) {
			w := given(t, workers("replicas: 2, restartPolicy: OnFailure")).run()
			w.edit(func(s *Spec) { s.RunPolicy.SchedulingPolicy = &kubeflowv1.SchedulingPolicy{} }).has(KindPodGroup)
			w.exit("j-worker-1", 1).has(KindPodGroup)
			if group := w.Pod("j-worker-1").Labels[schedulingv1alpha1.LabelPodGroup]; group != "" {
				t.Errorf("a Pod is in the group %s", group)
			}
			w.suspend(true).suspend(false).has(KindPodGroup, "j-tfjob-2")
		},
		"what has ended and is gone needs no place in the gang": func(t *testing.T) {
			w := given(t, "{successPolicy: AllWorkers, runPolicy: {schedulingPolicy: {}}, tfReplicaSpecs: {Worker: {replicas: 3, @t}}}").run().succeed("j-worker-1")
			if got := w.group().Spec.MinMember; got != 3 {
				t.Errorf("minMember is %d while the Pod is there", got)
			}
			w.Remove(KindPod, "j-worker-1")
			if got := w.group().Spec.MinMember; got != 2 {
				t.Errorf("minMember is %d, want 2", got)
			}
		},
		"a scheduler of a template stays": func(t *testing.T) {
			w := given(t, `{runPolicy: {schedulingPolicy: {}}, tfReplicaSpecs: {Worker: {replicas: 2, @t}, PS: {template: {spec: {schedulerName: other, containers: [{name: tensorflow, image: i}]}}}}}`).pass(1)
			if got := w.Pod("j-ps-0").Spec.SchedulerName; got != "other" || w.told("SetPodTemplateSchedulerName") != 1 {
				t.Errorf("the scheduler is %q, events %v", got, w.Events)
			}
			if w.group().Spec.MinMember != 2 || w.Pod("j-ps-0").Labels[schedulingv1alpha1.LabelPodGroup] != "" {
				t.Errorf("minMember %d", w.group().Spec.MinMember)
			}
		},
		"a name that another has is waited for": func(t *testing.T) {
			w := given(t, workers("replicas: 1"))
			w.take("j-worker-0")
			w.pass(3).says("Created")
			if w.told("NameTaken") != 1 {
				t.Errorf("events: %v", w.Events)
			}
			w.Remove(KindPod, "j-worker-0")
			w.run().says("Created Running")
		},
		"Pods that can never be made fail the job, and are one event": func(t *testing.T) {
			w := given(t, workers("replicas: 7"))
			w.Refuses = func(object metav1.Object) error {
				if _, ok := object.(*corev1.Pod); ok {
					return errors.New("spec.containers[0].image: Required value")
				}
				return nil
			}
			w.says("Created Failed")
			i := slices.IndexFunc(w.Events, func(e plan.Event) bool { return e.Reason == "FailedCreatePod" })
			if w.told("FailedCreatePod") != 1 || !strings.Contains(w.Events[i].Message, "j-worker-0, j-worker-1, j-worker-2, j-worker-3, j-worker-4 and 2 more") {
				t.Errorf("events: %v", w.Events)
			}
		},
		"a thousand Pods are one event": func(t *testing.T) {
			w := given(t, workers("replicas: 1000")).pass(1)
			if w.told("SuccessfulCreatePod") != 1 || w.told("SuccessfulCreateService") != 1 {
				t.Errorf("events: %v", w.Events)
			}
		},

		"a PyTorchJob succeeds with its master": func(t *testing.T) {
			w := givenTorch(t, torch("2", "", "")).run().says("Created Running").succeed("j-master-0").
				says("Created !Running(PyTorchJobRunning) Succeeded").counted("Master 0/1/0 Worker 2/0/0")
			const want = "training.kubeflow.org/job-name=j,training.kubeflow.org/operator-name=pytorchjob-controller,training.kubeflow.org/replica-type=worker"
			if got := w.Written.ReplicaStatuses["Worker"].Selector; got != want {
				t.Errorf("the selector is %s", got)
			}
		},
		"cleanPodPolicies of a PyTorchJob": func(t *testing.T) {
			for policy, want := range map[string][]string{
				"None": {"j-master-0", "j-worker-0", "j-worker-1", "j-worker-2"}, "Running": {"j-master-0"}, "All": nil,
			} {
				givenTorch(t, torch("3", "", "runPolicy: {cleanPodPolicy: "+policy+"}, ")).run().succeed("j-master-0").
					has(KindPod, want...).has(KindService, want...)
			}
		},
		"an elastic job succeeds with any worker": func(t *testing.T) {
			givenTorch(t, "{elasticPolicy: {}, pytorchReplicaSpecs: {Worker: {replicas: 2, @t}}}").run().succeed("j-worker-1").
				says("Created !Running(PyTorchJobRunning) Succeeded")
		},
		"workers alone succeed together": func(t *testing.T) {
			givenTorch(t, "{pytorchReplicaSpecs: {Worker: {replicas: 2, @t}}}").run().succeed("j-worker-1").says("Created Running").
				succeed("j-worker-0").says("Created !Running(PyTorchJobRunning) Succeeded")
		},
		"an evicted worker of a PyTorchJob is made anew": func(t *testing.T) {
			w := givenTorch(t, torch("2", "", "")).run().exit("j-worker-0", -1).says("Created Restarting")
			w.run("j-worker-0").says("Created Running")
		},
		"an autoscaler lives as long as the job runs": func(t *testing.T) {
			const metrics = "metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 80}}}]"
			w := givenTorch(t, "{elasticPolicy: {minReplicas: 1, maxReplicas: 3, "+metrics+"}, pytorchReplicaSpecs: {Worker: {@t}}}").has(KindAutoscaler, "j")
			w.edit(func(s *Spec) {
				elastic := s.ElasticPolicy.DeepCopy()
				elastic.MaxReplicas = ptr.To[int32](5)
				s.ElasticPolicy = elastic
			})
			if got := w.core.last.Autoscalers["j"].(*autoscalingv2.HorizontalPodAutoscaler).Spec; got.MaxReplicas != 5 || *got.MinReplicas != 1 || got.ScaleTargetRef.Kind != "PyTorchJob" || len(got.Metrics) != 1 {
				t.Errorf("the autoscaler is %+v", got)
			}
			w.suspend(true).has(KindAutoscaler).suspend(false).has(KindAutoscaler, "j").
				run().succeed("j-worker-0").says("Created !Suspended(PyTorchJobResumed) !Running(PyTorchJobRunning) Succeeded").has(KindAutoscaler)
		},
		"a PyTorchJob is scaled": func(t *testing.T) {
			givenTorch(t, "{pytorchReplicaSpecs: {Worker: {replicas: 2, @t}}}").run().scale("Worker", 3).
				has(KindPod, "j-worker-0", "j-worker-1", "j-worker-2").counted("Worker 2/0/0")
		},
	} {
		t.Run(name, story)
	}
}

// TestTheTimeToLiveOfAJob holds that a job that has ended goes on time, whatever ended it.
func TestTheTimeToLiveOfAJob(t *testing.T) {
	for name, end := range map[string]func(*world){
		"success": func(w *world) { w.succeed("j-worker-0") },
		"failure": func(w *world) { w.exit("j-worker-0", 1) },
	} {
		t.Run(name, func(t *testing.T) {
			w := given(t, withPolicy("ttlSecondsAfterFinished: 3", "replicas: 1")).run()
			end(w)
			ended := w.Written.CompletionTime.Time
			for !w.Gone && w.Now.Before(ended.Add(10*time.Second)) {
				w.pass(1)
			}
			if took := w.Now.Sub(ended); took != 3*time.Second || len(w.OwnPods()) > 0 || w.told("SuccessfulDeleteJob") != 1 {
				t.Errorf("it went after %v, Pods %v, events %v", took, w.OwnPods(), w.Events)
			}
			at := given(t, withPolicy("ttlSecondsAfterFinished: 0", "replicas: 1")).run()
			if end(at); !at.Gone {
				t.Error("with 0 it did not go at once")
			}
			kept := given(t, workers("replicas: 1")).run()
			if end(kept); kept.pass(100).Gone {
				t.Error("without one it went")
			}
		})
	}
}

// TestWhoseJobItIs: a job that is not taken gets nothing at all.
func TestWhoseJobItIs(t *testing.T) {
	const ofOurs = "schedulerName: lockstep-scheduler, "
	spec := func(manager, scheduler string) string {
		policy := ""
		if manager != "none" {
			policy = "runPolicy: {managedBy: '" + manager + "', suspend: false}, "
		}
		return "{" + policy + "tfReplicaSpecs: {Worker: {template: {spec: {" + scheduler + "containers: [{name: tensorflow, image: i}]}}}}}"
	}
	tests := map[string]struct {
		takes              TakeJobs
		manager, scheduler string
		want               bool
	}{
		"by default, a job without a manager":        {takes: TakeManaged, manager: "none"},
		"by default, ours":                           {takes: TakeManaged, manager: "lockstep.dev/kubeflow", want: true},
		"by default, with our scheduler":             {takes: TakeManaged, manager: "none", scheduler: ofOurs},
		"by scheduler, with ours":                    {takes: TakeScheduler, manager: "none", scheduler: ofOurs, want: true},
		"by scheduler, without":                      {takes: TakeScheduler, manager: "none"},
		"by scheduler, ours by its manager":          {takes: TakeScheduler, manager: "lockstep.dev/kubeflow", want: true},
		"all, without a manager":                     {takes: TakeAll, manager: "none", want: true},
		"all, of the training operator":              {takes: TakeAll, manager: "kubeflow.org/training-operator", want: true},
		"all, an empty one":                          {takes: TakeAll, manager: "", want: true},
		"all, of another cluster":                    {takes: TakeAll, manager: "kueue.x-k8s.io/multikueue"},
		"all, of another cluster, and our scheduler": {takes: TakeAll, manager: "kueue.x-k8s.io/multikueue", scheduler: ofOurs},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w := given(t, spec(tc.manager, tc.scheduler))
			w.core.options.TakeJobs = tc.takes
			w.Owner.ManagedFields = nil
			w.pass(2)
			if taken := w.Written != nil; taken != tc.want || len(w.Objects) > 0 != tc.want {
				t.Errorf("taken: %v, objects %d, want %v", taken, len(w.Objects), tc.want)
			}
		})
	}
}

// TestAJobThatAnotherControllerHasBegunIsLeftAlone with one warning.
func TestAJobThatAnotherControllerHasBegunIsLeftAlone(t *testing.T) {
	t.Run("by a Pod of it", func(t *testing.T) {
		w := given(t, workers("replicas: 1"))
		w.Store(KindPod, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Name: "j-worker-0", UID: w.NewUID(), OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(w.Owner, tfJob.gvk)},
		}})
		w.pass(3)
		if w.Written != nil || len(w.Objects) != 1 || w.told("ManagedElsewhere") != 0 && len(w.Events) != 1 {
			t.Errorf("written %v, objects %d, events %v", w.Written, len(w.Objects), w.Events)
		}
	})
	t.Run("by its status", func(t *testing.T) {
		w := given(t, workers("replicas: 1"))
		w.Written = &status{Conditions: []kubeflowv1.JobCondition{{Type: "Created", Status: "True"}}}
		w.Owner.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "training-operator", Subresource: "status"}}
		w.pass(3)
		if w.Writes != 0 || len(w.Objects) != 0 || w.told("ManagedElsewhere") != 1 {
			t.Errorf("writes %d, objects %d, events %v", w.Writes, len(w.Objects), w.Events)
		}
	})
	t.Run("unless it has ended, and Lockstep runs all jobs: its ttl and its cleanPodPolicy are carried out", func(t *testing.T) {
		for policy, want := range map[string][]string{"All": nil, "Running": {"j-worker-0"}, "None": {"j-worker-0", "j-worker-1"}} {
			w := givenByAnother(t, withPolicy("cleanPodPolicy: "+policy+", ttlSecondsAfterFinished: 60", "replicas: 2"), kubeflowv1.JobConditionSucceeded)
			for name, phase := range map[string]corev1.PodPhase{"j-worker-0": corev1.PodSucceeded, "j-worker-1": corev1.PodRunning} {
				w.Store(KindPod, &corev1.Pod{
					ObjectMeta: metav1.ObjectMeta{Name: name, UID: w.NewUID(), OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(w.Owner, tfJob.gvk)}},
					Status:     corev1.PodStatus{Phase: phase},
				})
			}
			w.pass(50)
			if got := w.Names(KindPod); !slices.Equal(got, want) || w.Gone || w.Writes != 0 {
				t.Errorf("%s: Pods %v, want %v; gone %v, writes %d", policy, got, want, w.Gone, w.Writes)
			}
			if (w.told("CleanPodPolicy") == 1) != (policy != "None") {
				t.Errorf("%s: events %v", policy, w.Events)
			}
			if w.pass(15); !w.Gone || w.told("SuccessfulDeleteJob") != 1 || w.told("ManagedElsewhere") != 0 {
				t.Errorf("%s: gone %v after its ttl, events %v", policy, w.Gone, w.Events)
			}
		}
	})
	t.Run("nor is one touched that has ended, where another operator may run", func(t *testing.T) {
		w := givenByAnother(t, withPolicy("managedBy: lockstep.dev/kubeflow, cleanPodPolicy: All, ttlSecondsAfterFinished: 1", "replicas: 1"), kubeflowv1.JobConditionSucceeded)
		w.core.options.TakeJobs = TakeManaged
		if w.pass(5); w.Gone || w.Writes != 0 || len(w.Events) != 0 {
			t.Errorf("gone %v, writes %d, events %v", w.Gone, w.Writes, w.Events)
		}
	})
	t.Run("by its end, without a word", func(t *testing.T) {
		w := givenByAnother(t, "{tfReplicaSpecs: {Worker: {@t}}}", kubeflowv1.JobConditionSucceeded)
		for range 3 {
			w.Crash()
			w.pass(3)
		}
		if w.Writes != 0 || len(w.Objects) != 0 || len(w.Events) != 0 {
			t.Errorf("writes %d, objects %d, events %v", w.Writes, len(w.Objects), w.Events)
		}
	})
}

// TestAJobThatAnotherControllerHasSuspendedIsTaken, since it has nothing of anybody's.
func TestAJobThatAnotherControllerHasSuspendedIsTaken(t *testing.T) {
	for name, anothersCRD := range map[string]bool{"with the CRD of Lockstep": false, "with another's": true} {
		t.Run(name, func(t *testing.T) {
			for _, begun := range []bool{false, true} {
				w := givenByAnother(t, withPolicy("suspend: true, cleanPodPolicy: All", "replicas: 2"), kubeflowv1.JobConditionSuspended)
				if anothersCRD {
					w.core.options.ForeignCRDs = true
					w.ForeignCRD = true
				}
				if begun {
					w.Written.StartTime = &metav1.Time{Time: w.Now.Add(-time.Hour)}
				}
				w.pass(2).says("Created Suspended").has(KindPod)
				w.wroteStatus()
				w.Crash()
				w.suspend(false).run().says("Created !Suspended(TFJobResumed) Running").succeed("j-worker-0").has(KindPod)
				w.Crash()
				w.pass(2).says("Created !Suspended(TFJobResumed) !Running(TFJobRunning) Succeeded")
				if w.told("ManagedElsewhere") != 0 {
					t.Errorf("events: %v", w.Events)
				}
			}
		})
	}
	t.Run("but one whose Pods the cache does not show yet is left alone", func(t *testing.T) {
		w := givenByAnother(t, withPolicy("suspend: true", "replicas: 1"), kubeflowv1.JobConditionSuspended)
		w.Prompt = false
		w.Store(KindPod, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Name: "j-worker-0", UID: w.NewUID(), OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(w.Owner, tfJob.gvk)},
		}})
		w.Run()
		if w.Writes != 0 {
			t.Errorf("%d statuses were written", w.Writes)
		}
	})
}

// givenByAnother is a TFJob of which a training operator has written a status, that ends with a
// condition.
func givenByAnother(t *testing.T, spec string, last kubeflowv1.JobConditionType) *world {
	t.Helper()
	w := given(t, spec)
	w.Written = &status{}
	for _, is := range []kubeflowv1.JobConditionType{kubeflowv1.JobConditionCreated, last} {
		w.Written.Conditions = append(w.Written.Conditions, kubeflowv1.JobCondition{Type: is, Status: corev1.ConditionTrue, Reason: "TFJob" + string(is)})
	}
	if last == kubeflowv1.JobConditionSucceeded {
		w.Written.CompletionTime = &metav1.Time{Time: w.Now}
	}
	w.Edit(func(j *Job) {
		j.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "training-operator", Subresource: "status"}}
	})
	w.Crash()
	return w
}

// wroteStatus has the job say that this controller has written its status, too.
func (w *world) wroteStatus() {
	w.Edit(func(j *Job) {
		own := metav1.ManagedFieldsEntry{Manager: w.core.options.Manager, Subresource: "status"}
		j.ManagedFields = append(slices.Clone(j.ManagedFields), own)
	})
}

// TestWhatWasToldTakesNoMoreRoomThanWhatHolds, also of a job that is left alone while its user
// edits it again and again.
func TestWhatWasToldTakesNoMoreRoomThanWhatHolds(t *testing.T) {
	w := given(t, workers("replicas: 1"))
	w.ForeignCRD = true
	w.pass(2)
	for i := range 30 {
		w.edit(func(s *Spec) { s.SuccessPolicy = kubeflowv1.SuccessPolicy(strings.Repeat("x", i+1)) }).pass(1)
	}
	if w.told("TFJobInvalid") != 30 || w.told("ForeignCRD") != 1 {
		t.Errorf("told %d times that it is invalid, and %d times of its CRD", w.told("TFJobInvalid"), w.told("ForeignCRD"))
	}
	if got := len(w.core.memory.Told); got > 2 {
		t.Errorf("%d things are remembered that were told", got)
	}
}

// TestAnothersCRDKeepsJobsAsTheyAre: the training operator's drops what it does not know.
func TestAnothersCRDKeepsJobsAsTheyAre(t *testing.T) {
	t.Run("a job of v1alpha2", func(t *testing.T) {
		w := givenDesigned(t, "{tfReplicaSpecs: {PS: {@t}}}").settle()
		name := w.OwnPods()[0]
		w.edit(func(s *Spec) { s.CreatedAs = "" })
		w.Remove(KindPod, name)
		w.has(KindPod, name)
	})
	t.Run("a job that has ended", func(t *testing.T) {
		for _, end := range []func(*world){func(w *world) { w.succeed("j-worker-0") }, func(w *world) { w.exit("j-worker-0", 1) }} {
			w := given(t, withPolicy("cleanPodPolicy: All", "replicas: 1")).run()
			end(w)
			phase, conditions := w.Written.Phase, shown(w.Written)
			w.Written.Phase, w.Written.Starts, w.Written.ReplicaStatuses = "", 0, nil
			w.Crash()
			w.pass(3).has(KindPod).inPhase(phase).says(conditions)
		}
	})
	t.Run("a job that was resumed", func(t *testing.T) {
		w := given(t, workers("replicas: 1")).run().suspend(true).suspend(false).run()
		before := w.uid("j-worker-0")
		w.Written.Starts = 0
		w.Crash()
		w.pass(3).has(KindPod, "j-worker-0")
		if w.uid("j-worker-0") != before {
			t.Error("the Pod is another one")
		}
	})
}

// TestAJobThatTheAPIServerDoesNotRememberIsLeftAlone, as another's CRD drops a part of its status,
// unless the administrator wants it.
func TestAJobThatTheAPIServerDoesNotRememberIsLeftAlone(t *testing.T) {
	anothersCRD := func(w *world) *world {
		w.ForeignCRD = true
		return w
	}
	t.Run("one that is new", func(t *testing.T) {
		w := anothersCRD(given(t, workers("replicas: 1"))).pass(3).has(KindPod).has(KindService).says("Created")
		w.Crash()
		if w.pass(3).has(KindPod); w.told("ForeignCRD") != 2 {
			t.Errorf("each controller says it once: %v", w.Events)
		}
	})
	t.Run("one that is new, while the API server is slow to take a status", func(t *testing.T) {
		w := anothersCRD(given(t, workers("replicas: 1"))).pass(1)
		w.Crash() // What the next controller finds has nothing that another's CRD drops.
		w.WriteFrom = plan.PersistNow
		w.pass(3).has(KindPod).has(KindService)
	})
	t.Run("one that is resumed", func(t *testing.T) {
		w := anothersCRD(given(t, workers("replicas: 1")).run().suspend(true))
		w.Crash()
		if w.suspend(false).pass(1).has(KindPod); w.told("ForeignCRD") != 1 {
			t.Errorf("events: %v", w.Events)
		}
	})
	t.Run("until Lockstep's CRD takes the place of the other", func(t *testing.T) {
		w := anothersCRD(given(t, workers("replicas: 1"))).pass(60).has(KindPod)
		w.ForeignCRD = false
		w.Now = w.Now.Add(6 * time.Minute)
		w.run().says("Created Running")
	})
	t.Run("and looks later and later whether it has", func(t *testing.T) {
		w := anothersCRD(given(t, workers("replicas: 1"))).settle()
		looks := 0
		w.OnAction = func(plan.Action) { looks++ }
		for range 720 {
			w.Now = w.Now.Add(5 * time.Second)
			w.Run()
		}
		if looks < 12 || looks > 30 || w.told("ForeignCRD") != 1 {
			t.Errorf("it has looked %d times in an hour, and told %v", looks, w.Events)
		}
	})
	t.Run("and one of Lockstep's is begun by the next controller, whatever the last one has made", func(t *testing.T) {
		w := given(t, workers("replicas: 1"))
		w.Fate = func(a plan.Action) jobworld.Fate {
			if a.Verb == plan.Create {
				return jobworld.Refused
			}
			return jobworld.Done
		}
		w.settle()
		w.Fate = func(plan.Action) jobworld.Fate { return jobworld.Done }
		w.Crash()
		w.run().says("Created Running")
	})
	t.Run("one that has begun goes on", func(t *testing.T) {
		w := anothersCRD(given(t, withPolicy("ttlSecondsAfterFinished: 3", "replicas: 1, restartPolicy: OnFailure")).run())
		w.Crash()
		w.exit("j-worker-0", 1).run().says("Created Running").succeed("j-worker-0")
		w.Crash()
		if w.pass(3); !w.Gone {
			t.Error("it did not go after its time to live")
		}
	})
	t.Run("one that has begun has its Pods made anew", func(t *testing.T) {
		w := anothersCRD(given(t, workers("replicas: 1")).run())
		w.Crash()
		w.Remove(KindPod, "j-worker-0")
		w.run().has(KindPod, "j-worker-0")
	})
	t.Run("one that is wanted", func(t *testing.T) {
		w := anothersCRD(given(t, withPolicy("ttlSecondsAfterFinished: 3", "replicas: 1")))
		w.core.options.ForeignCRDs = true
		if w.run().says("Created Running").succeed("j-worker-0").pass(3); !w.Gone {
			t.Error("it did not go after its time to live")
		}
	})
}

// TestWhatAnothersCRDKeeps of a status.
func TestWhatAnothersCRDKeeps(t *testing.T) {
	w := given(t, workers("replicas: 2")).run().succeed("j-worker-1")
	if kept := Kept(w.Written, w.Written); kept != w.Written {
		t.Errorf("Lockstep's keeps %+v", kept)
	}
	kept := Kept(w.Written, &status{})
	want := map[string]kubeflowv1.ReplicaStatus{"Worker": {Active: 1, Succeeded: 1}}
	if diff := cmp.Diff(want, kept.ReplicaStatuses); diff != "" || kept.Phase != "" || kept.Starts != 0 || len(kept.Conditions) != 2 || kept.StartTime == nil {
		t.Errorf("another's keeps %+v:\n%s", kept, diff)
	}
}

// TestASpecThatMakesNoSenseTakesNoPods edits a job that runs into nonsense, as the CRD of
// somebody else may let users do. They are told, and may mend it.
func TestASpecThatMakesNoSenseTakesNoPods(t *testing.T) {
	w := given(t, workers("replicas: 2")).run()
	w.scale("Worker", -1).has(KindPod, "j-worker-0", "j-worker-1").says("Created Running")
	if w.told("TFJobInvalid") != 1 || !strings.Contains(w.Events[len(w.Events)-1].Message, "spec.tfReplicaSpecs.Worker.replicas") {
		t.Errorf("events: %v", w.Events)
	}
	w.scale("Worker", 1).has(KindPod, "j-worker-0")
}
