// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package kubeflow

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/google/go-cmp/cmp"

	kubeflowv1 "github.com/lockstep-k8s/lockstep/apis/kubeflow/v1"
	"github.com/lockstep-k8s/lockstep/controller/engine/plan"
	"github.com/lockstep-k8s/lockstep/internal/testing/jobworld"
)

// designed is a TFJob of v1alpha2 with two parameter servers and three workers. policy is the
// restartPolicy of their templates.
func designed(t *testing.T, policy string) *world {
	t.Helper()
	template := "template: {spec: {restartPolicy: " + policy + ", containers: [{name: tensorflow, image: i, args: [--lr=1]}]}}"
	w := givenDesigned(t, "{tfReplicaSpecs: {PS: {replicas: 2, "+template+"}, Worker: {replicas: 3, "+template+"}}}")
	w.Owner.UID = "0b5c7f2e-1111-2222-3333-444444444444"
	return w.settle()
}

const u = "-0b5c7f2e"

// TestDesignedStories are the lives of TFJobs of v1alpha2.
func TestDesignedStories(t *testing.T) {
	five := []string{"j-ps-1" + u, "j-ps-2" + u, "j-worker-1" + u, "j-worker-2" + u, "j-worker-3" + u}
	for name, story := range map[string]func(t *testing.T){
		"pairs of Pods and Services": func(t *testing.T) {
			w := designed(t, "Never").has(KindPod, five...).has(KindService, five...).inPhase("Pending").says("Created").counted("PS 0/0/0 Worker 0/0/0")
			if len(w.Written.ReplicaStatuses) != 0 || w.Written.StartTime == nil {
				t.Errorf("the status is %+v", w.Written)
			}
			if got := w.Pod("j-worker-2" + u).Labels[kubeflowv1.KeyReplicaIndex]; got != "1" {
				t.Errorf("the index of worker 2 is %s", got)
			}
		},
		"arguments": func(t *testing.T) {
			w := designed(t, "Never")
			want := []string{
				"--lr=1",
				"--ps_hosts=j-ps-1" + u + ".n.svc:2222,j-ps-2" + u + ".n.svc:2222",
				"--worker_hosts=j-worker-1" + u + ".n.svc:2222,j-worker-2" + u + ".n.svc:2222,j-worker-3" + u + ".n.svc:2222",
				"--job_name=worker", "--task_index=1",
			}
			if diff := cmp.Diff(want, w.Pod("j-worker-2" + u).Spec.Containers[0].Args); diff != "" {
				t.Errorf("arguments (-want,+got):\n%s", diff)
			}
			config, _ := w.env("j-worker-2"+u, 0, "TF_CONFIG")
			if !strings.HasSuffix(config, `"task":{"type":"worker","index":1},"environment":"cloud"}`) || !strings.HasPrefix(config, `{"cluster":{"ps":["j-ps-1`+u+`.n.svc:2222",`) {
				t.Errorf("TF_CONFIG is %s", config)
			}
		},
		"a type without replicas is an empty list": func(t *testing.T) {
			w := givenDesigned(t, "{tfReplicaSpecs: {Worker: {replicas: 2, @t}}}").settle()
			if args := w.Pod(w.OwnPods()[0]).Spec.Containers[0].Args; !slices.Contains(args, "--ps_hosts=") {
				t.Errorf("arguments: %v", args)
			}
		},
		"a local one is alone": func(t *testing.T) {
			w := givenDesigned(t, "{tfReplicaSpecs: {Local: {@t}}}").settle()
			pods := w.OwnPods()
			if len(pods) != 1 || !strings.HasPrefix(pods[0], "j-local-1-") || !slices.Equal(pods, w.Names(KindService)) {
				t.Fatalf("Pods %v, Services %v", pods, w.Names(KindService))
			}
			if _, times := w.env(pods[0], 0, "TF_CONFIG"); times != 0 || len(w.Pod(pods[0]).Spec.Containers[0].Args) > 0 {
				t.Errorf("containers: %+v", w.Pod(pods[0]).Spec.Containers)
			}
		},
		"it runs when all do": func(t *testing.T) {
			w := designed(t, "Never").run(five[:4]...).inPhase("Pending").says("Created")
			w.run().inPhase("Running").says("Created Running").counted("PS 2/0/0 Worker 3/0/0")
		},
		"it succeeds when all have ended, and all stays": func(t *testing.T) {
			w := designed(t, "Never").run().succeed(five[1:]...).inPhase("Running").succeed(five[0]).inPhase("Succeeded").
				says("Created !Running(TFJobNotRunning)").has(KindPod, five...).has(KindService, five...).counted("PS 0/2/0 Worker 0/3/0")
			if w.Written.CompletionTime == nil {
				t.Error("it has no completionTime")
			}
		},
		"one failure is told at once, and is the end only when all have ended": func(t *testing.T) {
			w := designed(t, "Never").run().exit(five[2], 1).inPhase("Running").says("Created Running Failed").counted("PS 2/0/0 Worker 2/0/1")
			w.succeed(five[0], five[1], five[3], five[4]).inPhase("Failed").says("Created Failed !Running(TFJobNotRunning)")
		},
		"a Pod that fails is replaced, if its template says so": func(t *testing.T) {
			for _, policy := range []string{"OnFailure", "Always"} {
				w := designed(t, policy).run()
				before := w.uid(five[2])
				w.exit(five[2], 1).inPhase("Pending").says("Created !Running(TFJobNotRunning) Restarting")
				if after := w.uid(five[2]); after == "" || after == before {
					t.Errorf("%s: the Pod is %q", policy, after)
				}
				w.run(five[2]).inPhase("Running").says("Created !Restarting(TFJobRestarted) Running")
			}
		},
		"a node that is not heard from": func(t *testing.T) {
			w := designed(t, "Never").run().set(corev1.PodUnknown, five[3]).inPhase("Unknown").says("Created ?Running")
			w.run(five[3]).inPhase("Running").says("Created Running")
			pod := w.Pod(five[3]).DeepCopy()
			pod.Status.Reason = "NodeLost" // As the node controller of older releases leaves the phase.
			w.Store(KindPod, pod)
			w.settle().inPhase("Unknown").says("Created ?Running")
		},
		"what somebody deletes is back": func(t *testing.T) {
			w := designed(t, "Never").run()
			w.Remove(KindService, five[0])
			w.Remove(KindPod, five[4])
			w.has(KindPod, five...).has(KindService, five...).inPhase("Pending").run().inPhase("Running").says("Created Running")
		},
		"it is suspended and resumed, as Kueue does it": func(t *testing.T) {
			w := givenDesigned(t, "{runPolicy: {suspend: true}, tfReplicaSpecs: {PS: {@t}, Worker: {replicas: 2, template: {spec: {restartPolicy: Never, containers: [{name: tensorflow, image: i}]}}}}}").
				pass(3).has(KindPod).has(KindService).says("Suspended").inPhase("Pending")
			if w.Written.StartTime != nil || w.told("RunPolicyIgnored") != 0 {
				t.Errorf("started %v, events %v", w.Written.StartTime, w.Events)
			}
			w.suspend(false).run().says("!Suspended(TFJobResumed) Created Running").inPhase("Running")
			first := w.OwnPods()
			w.exit(first[1], 1).says("!Suspended(TFJobResumed) Created Running Failed")
			w.suspend(true).has(KindPod).has(KindService).says("!Running(TFJobSuspended) Suspended").counted("PS 0/0/0 Worker 0/0/0")
			w.Crash()
			w.suspend(false).has(KindPod, first...).run().says("!Suspended(TFJobResumed) Created Running").pass(40).
				succeed(first...).inPhase("Succeeded")
		},
		"fields of v1 have no effect, and a warning": func(t *testing.T) {
			w := givenDesigned(t, "{successPolicy: AllWorkers, tfReplicaSpecs: {Worker: {restartPolicy: Never, @t}}}").pass(2)
			if w.told("FieldsIgnored") != 1 {
				t.Errorf("events: %v", w.Events)
			}
		},
		"a runPolicy has no effect, and a warning": func(t *testing.T) {
			w := givenDesigned(t, "{runPolicy: {ttlSecondsAfterFinished: 0, cleanPodPolicy: All}, tfReplicaSpecs: {PS: {@t}}}").pass(3)
			pods := w.OwnPods()
			w.run().succeed(pods...).pass(3).has(KindPod, pods...)
			if w.told("RunPolicyIgnored") != 1 || w.Gone {
				t.Errorf("gone %v, events %v", w.Gone, w.Events)
			}
		},
		"nothing is made twice, whenever the controller dies": func(t *testing.T) {
			w := givenDesigned(t, "{tfReplicaSpecs: {Worker: {replicas: 20, @t}}}")
			for crash := range 30 {
				w.CrashAfter = crash
				w.Run()
			}
			w.CrashAfter = -1
			if w.settle(); len(w.OwnPods()) != 20 || len(w.Names(KindService)) != 20 {
				t.Errorf("%d Pods, %d Services", len(w.OwnPods()), len(w.Names(KindService)))
			}
		},
	} {
		t.Run(name, story)
	}
}

// TestTheReconcilerLooksLessAndLessOften at a job that is quiet, until something happens, or
// another controller begins.
func TestTheReconcilerLooksLessAndLessOften(t *testing.T) {
	w := designed(t, "Never").run()
	looks := func(seconds int) []time.Duration {
		var steps []time.Duration
		last := w.Written.LastReconcileTime
		for range seconds {
			w.pass(1)
			now := w.Written.LastReconcileTime
			if now != nil && (last == nil || !now.Equal(last)) {
				from := w.Written.StartTime.Time
				if last != nil {
					from = last.Time
				}
				steps = append(steps, now.Sub(from))
				last = now
			}
		}
		return steps
	}
	const s = time.Second
	if got, want := looks(15*(1+2+4+8)), []time.Duration{15 * s, 30 * s, 60 * s, 120 * s}; !slices.Equal(got, want) {
		t.Errorf("it looks after %v, want %v", got, want)
	}
	if got, want := looks(240+300+300), []time.Duration{240 * s, 300 * s, 300 * s}; !slices.Equal(got, want) {
		t.Errorf("then after %v, want %v", got, want)
	}
	w.pass(3).restarted("j-ps-1"+u, 1)
	if got := looks(16); len(got) != 1 {
		t.Errorf("after a Pod event it looks after %v", got)
	}
	looks(15 * (2 + 4 + 8))
	lists := 0
	w.OnAction = func(a plan.Action) {
		if a.Verb == plan.List {
			lists++
		}
	}
	if got := len(looks(1200)); lists != got*len(reconciledKinds) {
		t.Errorf("it lists %d times in %d periods", lists, got)
	}
	w.Crash()
	if got := looks(16); len(got) != 1 {
		t.Errorf("another controller looks after %v", got)
	}
	w.succeed(w.OwnPods()...)
	if got := looks(600); len(got) > 0 {
		t.Errorf("it looks at a job that has ended, after %v", got)
	}
}

// TestTheReconcilerFindsWhatNoEventHasTold: a Service and a Pod are gone, a Pod runs, and the
// watches are silent.
func TestTheReconcilerFindsWhatNoEventHasTold(t *testing.T) {
	w := designed(t, "Never").run()
	pod, service := "j-worker-2"+u, "j-ps-1"+u
	w.Prompt = false
	w.Remove(KindPod, pod)
	w.Remove(KindService, service)
	if w.pass(14); w.Pod(pod) != nil {
		t.Error("the Pod is back before its turn")
	}
	w.pass(1)
	if w.Pod(pod) == nil || w.Objects[jobworld.Key{Kind: KindService, Name: service}] == nil {
		t.Error("what was deleted is not back")
	}
	w.SetPhase(pod, corev1.PodRunning, 0)
	w.inPhase("Pending").pass(15).inPhase("Running")
}

// TestTheReconcilerTriesAgain when it can't list, and says that it has looked when it has.
func TestTheReconcilerTriesAgain(t *testing.T) {
	w := designed(t, "Never").run()
	w.Fate = func(a plan.Action) jobworld.Fate {
		if a.Verb == plan.List && a.Kind == KindService {
			return jobworld.Refused
		}
		return jobworld.Done
	}
	if w.pass(20); w.Written.LastReconcileTime != nil {
		t.Error("it says that it has looked")
	}
	w.Fate = func(plan.Action) jobworld.Fate { return jobworld.Done }
	if w.pass(1); w.Written.LastReconcileTime == nil {
		t.Error("it does not try again")
	}
}

// latest is entropy without chance: the greatest of all numbers.
type latest struct{ steady }

func (latest) Between(_, most int64) int64 { return most }

// TestJobsTakeTheirTurnsApart from each other, also after a time without a controller.
func TestJobsTakeTheirTurnsApart(t *testing.T) {
	w := designed(t, "Never").run()
	w.core.entropy = latest{}
	first := w.pass(15).Written.LastReconcileTime
	if first == nil {
		t.Fatal("it has not looked after 15 s")
	}
	if w.pass(32); !w.Written.LastReconcileTime.Equal(first) {
		t.Error("it looks again before 30 s and a tenth have gone by")
	}
	before := w.pass(1).Written.LastReconcileTime
	if before.Equal(first) {
		t.Error("it does not look after 33 s")
	}
	w.Now = w.Now.Add(time.Hour)
	w.Crash()
	if w.pass(14); !w.Written.LastReconcileTime.Equal(before) {
		t.Error("with all others, it looks at once")
	}
	if w.pass(1); w.Written.LastReconcileTime.Equal(before) {
		t.Error("it does not look within a period")
	}
}
