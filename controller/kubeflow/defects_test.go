// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package kubeflow

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	kubeflowv1 "github.com/lockstep-k8s/lockstep/apis/kubeflow/v1"
	"github.com/lockstep-k8s/lockstep/controller/engine/plan"
	"github.com/lockstep-k8s/lockstep/internal/testing/jobworld"
)

// TestDefects holds that none of the defects of the training operator comes back. Numbers are
// those of its issues.
func TestDefects(t *testing.T) {
	for name, story := range map[string]func(t *testing.T){
		"3358: a deadline is noticed on time, though nothing else happens": func(t *testing.T) {
			w := given(t, "{runPolicy: {activeDeadlineSeconds: 20, cleanPodPolicy: All}, tfReplicaSpecs: {Worker: {replicas: 4, @t}, PS: {replicas: 2, @t}}}").run()
			started := w.Written.StartTime.Time
			p := w.Run()
			if want := started.Add(20 * time.Second); !p.WakeAt.Equal(want) {
				t.Fatalf("it looks again at %v, want %v", p.WakeAt, want)
			}
			w.Now = p.WakeAt
			w.says("Created !Running(TFJobRunning) Failed").has(KindPod).has(KindService)
		},
		"a deadline of 0 is over at once, one that is absent never": func(t *testing.T) {
			given(t, withPolicy("activeDeadlineSeconds: 0", "replicas: 1")).says("Created Failed")
			w := given(t, w4ps2).run()
			w.Now = w.Now.Add(1000 * time.Hour)
			w.says("Created Running").has(KindPod, sixPods...)
		},
		"3419: a limit under None ends what runs, and its objects stay": func(t *testing.T) {
			w := given(t, "{runPolicy: {activeDeadlineSeconds: 2}, tfReplicaSpecs: {Worker: {replicas: 4, @t}, PS: {replicas: 2, @t}}}").run()
			stops := 0
			w.OnAction = func(a plan.Action) {
				if a.Verb == plan.Update && a.Kind == KindPod {
					stops++
				}
			}
			if w.pass(3).pass(60); stops != len(sixPods) {
				t.Errorf("%d requests stop %d Pods", stops, len(sixPods))
			}
			w.says("Created !Running(TFJobRunning) Failed").has(KindPod, sixPods...).has(KindService, sixPods...).counted("PS 2/0/0 Worker 4/0/0")
			for _, name := range sixPods {
				if got := w.Pod(name).Spec.ActiveDeadlineSeconds; got == nil || *got != 1 {
					t.Errorf("%s may run for %v", name, got)
				}
			}
			w.set(corev1.PodFailed, sixPods...).counted("PS 0/0/2 Worker 0/0/4")
		},
		"3419: a limit under None ends what no kubelet would: Pods without a node go": func(t *testing.T) {
			w := given(t, "{runPolicy: {activeDeadlineSeconds: 2}, tfReplicaSpecs: {Worker: {replicas: 2, @t}}}").run("j-worker-0").pass(3)
			w.says("Created !Running(TFJobRunning) Failed").has(KindPod, "j-worker-0").has(KindService, "j-worker-0", "j-worker-1")
		},
		"3419: but not one that has got a node in the meantime": func(t *testing.T) {
			w := given(t, "{runPolicy: {activeDeadlineSeconds: 2}, tfReplicaSpecs: {Worker: {@t}}}").settle()
			w.Prompt = false
			w.SetPhase("j-worker-0", corev1.PodRunning, 0)
			w.Now = w.Now.Add(3 * time.Second)
			w.Run()
			w.Prompt = true
			w.DeliverAll()
			w.settle()
			if pod := w.Pod("j-worker-0"); pod == nil || pod.Spec.ActiveDeadlineSeconds == nil {
				t.Errorf("the Pod is %+v", pod)
			}
		},
		"a backoffLimit of 0 ends a job with its first Pod that fails, also of workers that come and go": func(t *testing.T) {
			spec := "{enableDynamicWorker: true, runPolicy: {%}, tfReplicaSpecs: {Worker: {replicas: 3, restartPolicy: Never, @t}}}"
			given(t, strings.Replace(spec, "%", "backoffLimit: 0", 1)).run().exit("j-worker-1", 1).says("Created !Running(TFJobRunning) Failed")
			given(t, strings.Replace(spec, "%", "backoffLimit: 1", 1)).run().exit("j-worker-1", 1).says("Created Running")
		},
		"3419: an end that is no limit lets what runs run on, under None": func(t *testing.T) {
			w := given(t, "{tfReplicaSpecs: {Worker: {replicas: 2, @t}}}").run().exit("j-worker-1", 1).says("Created !Running(TFJobRunning) Failed")
			if got := w.Pod("j-worker-0").Spec.ActiveDeadlineSeconds; got != nil {
				t.Errorf("worker 0 is stopped after %d s", *got)
			}
		},
		"3419: cleanPodPolicies at a limit": func(t *testing.T) {
			for policy, want := range map[string][]string{"None": {"j-master-0", "j-worker-0"}, "All": nil, "Running": nil} {
				givenTorch(t, torch("1", "", "runPolicy: {backoffLimit: 1, cleanPodPolicy: "+policy+"}, ")).run().restarted("j-master-0", 3).
					says("Created !Running(PyTorchJobRunning) Failed").has(KindPod, want...)
			}
			givenTorch(t, torch("1", "", "runPolicy: {backoffLimit: 1, cleanPodPolicy: Running}, ")).run().succeed("j-worker-0").
				restarted("j-master-0", 1).has(KindPod, "j-worker-0").has(KindService, "j-worker-0")
		},
		"2124, 999: a Pod that is being deleted does not fail the job": func(t *testing.T) {
			for _, policy := range []string{"Never", "OnFailure", "Always", "ExitCode"} {
				w := given(t, workers("replicas: 2, restartPolicy: "+policy)).run()
				before := w.uid("j-worker-1")
				w.DeletePod("j-worker-1", 30)
				for range 3 {
					w.Run()
					w.Now = w.Now.Add(time.Second)
					if s := w.Written.ReplicaStatuses["Worker"]; s.Failed != 0 || is(w.Written, "Failed") {
						t.Errorf("%s: %+v, %s", policy, s, shown(w.Written))
					}
				}
				w.SetPhase("j-worker-1", corev1.PodFailed, 143) // The kubelet's last word.
				w.says("Created Restarting").counted("Worker 1/0/0")
				if after := w.uid("j-worker-1"); after == "" || after == before {
					t.Errorf("%s: the Pod is %q", policy, after)
				}
				w.run("j-worker-1").says("Created Running")
			}
		},
		"2124: nor does one whose deletion and end are seen at once": func(t *testing.T) {
			w := given(t, workers("replicas: 2")).run()
			w.DeletePod("j-worker-1", 30)
			w.Now = w.Now.Add(time.Second)
			w.SetPhase("j-worker-1", corev1.PodFailed, 143)
			w.Run()
			if got := w.Written.ReplicaStatuses["Worker"].Failed; got != 0 {
				t.Errorf("%d Pods have failed", got)
			}
			w.says("Created Restarting").run("j-worker-1").says("Created Running")
		},
		"2342, 1589: the backoffLimit is reached by Pods that are made anew": func(t *testing.T) {
			w := given(t, withPolicy("backoffLimit: 2", "restartPolicy: ExitCode")).run()
			w.exit("j-worker-0", 137).says("Created Restarting").run()
			w.Crash()
			w.exit("j-worker-0", 137).says("Created !Restarting(TFJobRestarting) Failed")
		},
		"2342: restarts in place count when their Pod is gone": func(t *testing.T) {
			w := given(t, withPolicy("backoffLimit: 3", "replicas: 2, restartPolicy: OnFailure")).run().restarted("j-worker-0", 2)
			w.DeletePod("j-worker-0", 30)
			w.says("Created Restarting").run().says("Created Running").restarted("j-worker-1", 1).says("Created !Running(TFJobRunning) Failed")
		},
		"deleted Pods are no restarts": func(t *testing.T) {
			w := given(t, withPolicy("backoffLimit: 1", "restartPolicy: OnFailure")).run()
			for range 3 {
				w.DeletePod("j-worker-0", 30)
				w.run()
			}
			w.says("Created Running")
		},
		"the sum of restarts in place reaches the backoffLimit": func(t *testing.T) {
			w := given(t, withPolicy("backoffLimit: 3", "replicas: 2, restartPolicy: OnFailure")).run()
			w.restarted("j-worker-0", 1).restarted("j-worker-1", 1).says("Created Running").restarted("j-worker-0", 2).says("Created !Running(TFJobRunning) Failed")
			w = given(t, withPolicy("backoffLimit: 0", "replicas: 2, restartPolicy: OnFailure")).run().says("Created Running")
			w.restarted("j-worker-0", 1).says("Created !Running(TFJobRunning) Failed")
			given(t, "{runPolicy: {backoffLimit: 1}, tfReplicaSpecs: {Worker: {@t}, PS: {restartPolicy: Never, @t}}}").run().
				restarted("j-ps-0", 5).says("Created Running")
		},
		"1186, 2454: what has ended and is deleted is not run again": func(t *testing.T) {
			w := given(t, "{successPolicy: AllWorkers, tfReplicaSpecs: {Worker: {replicas: 2, @t}}}").run().succeed("j-worker-1")
			w.Remove(KindPod, "j-worker-1")
			w.Crash()
			w.pass(2).has(KindPod, "j-worker-0").counted("Worker 1/1/0").succeed("j-worker-0").says("Created !Running(TFJobRunning) Succeeded")
		},
		"2044: a permanent exit code after a restart": func(t *testing.T) {
			w := given(t, workers("restartPolicy: ExitCode")).run().exit("j-worker-0", 130).says("Created Restarting")
			w.exit("j-worker-0", 1).says("Created !Restarting(TFJobRestarting) Failed")
		},
		"a PyTorchJob that a permanent exit code fails has a completionTime, and goes after its time to live": func(t *testing.T) {
			w := givenTorch(t, torch("1", "restartPolicy: ExitCode, ", "runPolicy: {ttlSecondsAfterFinished: 3}, ")).run().exit("j-worker-0", 1)
			if !is(w.Written, "Failed") || w.Written.CompletionTime == nil {
				t.Errorf("the status is %+v", w.Written)
			}
			if w.pass(2).Gone || !w.pass(1).Gone {
				t.Error("it did not go after 3 s")
			}
		},
		"1533: a time to live is no matter of chance": func(t *testing.T) {
			w := given(t, withPolicy("ttlSecondsAfterFinished: 60", "replicas: 1")).run().succeed("j-worker-0")
			if p := w.Run(); !p.WakeAt.Equal(w.Written.CompletionTime.Add(time.Minute)) {
				t.Errorf("it looks again at %v", p.WakeAt)
			}
		},
		"2239: a time to live does not hinder a suspension": func(t *testing.T) {
			given(t, withPolicy("ttlSecondsAfterFinished: 1", "replicas: 1")).run().suspend(true).pass(3).
				has(KindPod).says("Created !Running(TFJobSuspended) Suspended")
		},
		"2072, 2185: a Pod that its node never lets go is replaced once somebody forces it": func(t *testing.T) {
			w := given(t, workers("restartPolicy: OnFailure")).run()
			w.DeletePod("j-worker-0", 30)
			w.Run()
			w.Now = w.Now.Add(time.Hour)
			w.Run()
			if is(w.Written, "Failed") || len(w.OwnPods()) != 1 {
				t.Errorf("conditions %s, Pods %v", shown(w.Written), w.OwnPods())
			}
			w.Remove(KindPod, "j-worker-0")
			w.run().says("Created Running")
		},
		"2277: PET_NNODES counts the master": func(t *testing.T) {
			w := givenTorch(t, torch("2", "", "elasticPolicy: {minReplicas: 1, maxReplicas: 3}, "))
			if got, _ := w.env("j-worker-1", 0, "PET_NNODES"); got != "2:4" {
				t.Errorf("PET_NNODES is %s", got)
			}
		},
		"1991: without a master there is no RANK and no WORLD_SIZE": func(t *testing.T) {
			w := givenTorch(t, "{pytorchReplicaSpecs: {Worker: {replicas: 2, @t}}}")
			for _, name := range []string{"RANK", "WORLD_SIZE", "MASTER_ADDR"} {
				if _, times := w.env("j-worker-1", 0, name); times != 0 {
					t.Errorf("%s is set", name)
				}
			}
		},
		"1745, 707: a bad name or spec has a status and an event": func(t *testing.T) {
			for what, job := range map[string]*Job{
				"spec": jobOf(t, objectOf(t, "", "", "", "{tfReplicaSpecs: {Worker: {template: {spec: {containers: []}}}}}")),
				"name": jobOf(t, objectOf(t, "", "", strings.Repeat("x", 63), workers("replicas: 1"))),
			} {
				w := newWorld(t, job).pass(2).says("Created Failed").has(KindPod)
				if w.told("TFJobInvalid") != 1 {
					t.Errorf("%s: events %v", what, w.Events)
				}
			}
		},
		"561, 706, 813: an object of which nothing makes sense stops nobody": func(t *testing.T) {
			w := newWorld(t, &Job{TypeMeta: metav1.TypeMeta{Kind: "TFJob"}, ObjectMeta: metav1.ObjectMeta{Name: "j"}, Spec: Spec{
				Replicas: map[string]kubeflowv1.ReplicaSpec{"": {Replicas: ptr.To[int32](-7)}, "Worker": {RestartPolicy: "?"}},
			}}).pass(2).says("Created Failed")
			if w.told("TFJobInvalid") != 1 {
				t.Errorf("events: %v", w.Events)
			}
		},
		"965, 1079, 1407: a quiet job asks for no other look, whatever its size": func(t *testing.T) {
			w := given(t, "{tfReplicaSpecs: {Worker: {replicas: 50, @t}}}").run()
			if p := w.Run(); !p.WakeAt.IsZero() || len(p.Actions) > 0 || p.Persist != plan.PersistNone {
				t.Errorf("it wants %v", p)
			}
		},
		"1976: a user's own Service with the labels hides nothing": func(t *testing.T) {
			w := given(t, workers("replicas: 1"))
			w.Store(KindService, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "mine", UID: w.NewUID(), Labels: map[string]string{
				kubeflowv1.KeyJobName: "j", kubeflowv1.KeyReplicaType: "worker", kubeflowv1.KeyReplicaIndex: "0", kubeflowv1.KeyOperatorName: "tfjob-controller",
			}}})
			w.has(KindService, "j-worker-0", "mine")
		},
		"1458: the Service of a Pod is there before it, and goes after it": func(t *testing.T) {
			w := given(t, w4ps2)
			services, pods := 0, 0
			w.OnPlan = func(seen *view, p plan.Plan[status]) {
				for _, a := range p.Actions {
					if a.Kind == KindPod && a.Verb == plan.Create && seen.Objects[jobworld.Key{Kind: KindService, Name: a.Name}] == nil {
						t.Errorf("%s before its Service", a)
					}
				}
			}
			w.OnAction = func(a plan.Action) {
				switch {
				case a.Kind == KindService && a.Verb == plan.Create:
					services++
				case a.Kind == KindPod && a.Verb == plan.Create:
					pods++
				case a.Kind == KindService && a.Verb == plan.Delete:
					if w.Pod(a.Name) != nil {
						t.Errorf("Service %s goes before its Pod", a.Name)
					}
				}
			}
			w.run().suspend(true)
			if services != 6 || pods != 6 {
				t.Errorf("%d Services and %d Pods were made", services, pods)
			}
		},
		"1426: a PodGroup is written once, and not made again after the end": func(t *testing.T) {
			w := given(t, withPolicy("schedulingPolicy: {}", "replicas: 2"))
			writes := 0
			w.OnAction = func(a plan.Action) {
				if a.Kind == KindPodGroup && a.Verb != plan.Delete {
					writes++
				}
			}
			w.run().pass(5).succeed("j-worker-0").pass(5).has(KindPodGroup)
			if writes != 1 {
				t.Errorf("the PodGroup was written %d times", writes)
			}
		},
		"1120, 1394: an object that exists already holds nothing up": func(t *testing.T) {
			w := given(t, workers("replicas: 2"))
			w.Prompt = false // Nothing that is made is seen.
			w.Run()
			w.Crash()
			w.Prompt = true
			w.has(KindPod, "j-worker-0", "j-worker-1").run().says("Created Running")
		},
		"an empty rdzvConf, and an elasticPolicy without workers, are no panic": func(t *testing.T) {
			w := givenTorch(t, "{elasticPolicy: {rdzvConf: []}, pytorchReplicaSpecs: {Worker: {@t}}}")
			if _, times := w.env("j-worker-0", 0, "PET_RDZV_CONF"); times != 0 {
				t.Error("PET_RDZV_CONF is set")
			}
			newWorld(t, jobOf(t, objectOf(t, "", "PyTorchJob", "", "{elasticPolicy: {}, pytorchReplicaSpecs: {Master: {replicas: 1, @t}}}"))).pass(1).says("Created Failed")
		},
		"never Succeeded and Failed: the type that decides goes first": func(t *testing.T) {
			w := given(t, "{tfReplicaSpecs: {Chief: {@t}, Worker: {@t}}}").run()
			w.SetPhase("j-chief-0", corev1.PodSucceeded, 0)
			w.SetPhase("j-worker-0", corev1.PodFailed, 1)
			w.says("Created !Running(TFJobRunning) Succeeded")
		},
		"first seen with a failure, a job has Running=False besides Failed": func(t *testing.T) {
			w := given(t, workers("replicas: 2")).settle()
			w.SetPhase("j-worker-0", corev1.PodRunning, 0)
			w.SetPhase("j-worker-1", corev1.PodFailed, 1)
			w.says("Created !Running(TFJobRunning) Failed")
		},
		"Failed says what still runs, and Running when it ended": func(t *testing.T) {
			w := given(t, workers("replicas: 2")).run().pass(5).exit("j-worker-1", 1).counted("Worker 1/0/1")
			running := condition(w.Written, "Running")
			if !running.LastTransitionTime.Equal(w.Written.CompletionTime) {
				t.Errorf("Running is False since %v, the end was at %v", running.LastTransitionTime, w.Written.CompletionTime)
			}
			w.succeed("j-worker-0").counted("Worker 0/1/1")
		},
		"a restart of the controller repeats no event of an end": func(t *testing.T) {
			w := given(t, workers("replicas: 1")).run().exit("j-worker-0", 1)
			for range 3 {
				w.Crash()
				w.pass(1)
			}
			if w.told("ExitedWithCode") != 1 || w.told("TFJobFailed") != 1 {
				t.Errorf("events: %v", w.Events)
			}
		},
		"a quiet job writes nothing": func(t *testing.T) {
			w := given(t, w4ps2).run().pass(1)
			writes, version := w.Writes, w.Version()
			for range 5 {
				w.Crash()
				w.pass(60)
			}
			if w.Writes != writes || w.Version() != version {
				t.Errorf("%d statuses and %d objects were written", w.Writes-writes, w.Version()-version)
			}
		},
		"a job that was resumed starts over with its restarts and its deadline": func(t *testing.T) {
			w := given(t, withPolicy("backoffLimit: 2, activeDeadlineSeconds: 30", "restartPolicy: OnFailure")).run().exit("j-worker-0", 1).pass(20)
			w.suspend(true).pass(20).suspend(false).run().exit("j-worker-0", 1).run().pass(5).says("Created !Suspended(TFJobResumed) Running")
		},
		"a finished job of the last cluster is left as it is": func(t *testing.T) {
			w := given(t, withPolicy("cleanPodPolicy: All", "replicas: 1")).run().succeed("j-worker-0").has(KindPod)
			w.Crash()
			w.pass(3).has(KindPod).says("Created !Running(TFJobRunning) Succeeded").counted("Worker 0/1/0")
		},
		"an unknown phase of a Pod ends nothing": func(t *testing.T) {
			given(t, workers("replicas: 2")).run().set(corev1.PodUnknown, "j-worker-0", "j-worker-1").pass(5).says("Created Running").counted("Worker 0/0/0")
		},
	} {
		t.Run(name, story)
	}
}

// TestARestartIsCountedOnce kills the controller between any two writes of a restart.
func TestARestartIsCountedOnce(t *testing.T) {
	for crash := range 12 {
		w := given(t, workers("replicas: 2, restartPolicy: OnFailure")).run().restarted("j-worker-1", 2)
		before := w.uid("j-worker-1")
		w.Now = w.Now.Add(2 * time.Second)
		w.SetPhase("j-worker-1", corev1.PodFailed, 1)
		w.CrashAfter = crash
		w.settle()
		w.CrashAfter = -1
		w.run().says("Created Running")
		s := w.Written.ReplicaStatuses["Worker"]
		if s.Restarts != 3 || s.RestartingIndexes != "" || w.uid("j-worker-1") == before {
			t.Errorf("after a crash at write %d: %+v", crash, s)
		}
	}
}

// TestACountIsPersistedBeforeAPodGoes, and its successor comes after the Pod is gone by what is
// persisted.
func TestACountIsPersistedBeforeAPodGoes(t *testing.T) {
	w := given(t, workers("replicas: 1, restartPolicy: OnFailure")).run()
	w.OnAction = func(a plan.Action) {
		if a.Kind != KindPod {
			return
		}
		stored := w.Written.ReplicaStatuses["Worker"]
		switch goes := stored.RestartingIndexes == "0"; {
		case a.Verb == plan.Delete && (!goes || stored.Restarts != 1):
			t.Errorf("a Pod goes while %+v is persisted", stored)
		case a.Verb == plan.Create && goes:
			t.Errorf("a Pod is made while %+v is persisted", stored)
		}
	}
	w.exit("j-worker-0", 1).run().says("Created Running")
}

// TestAnOldStatusDeletesNothing has a controller begin with a status from before a restart.
func TestAnOldStatusDeletesNothing(t *testing.T) {
	w := given(t, workers("replicas: 1, restartPolicy: OnFailure")).run().exit("j-worker-0", 1).settle()
	w.run()
	before, old := w.uid("j-worker-0"), w.Written.DeepCopy()
	worker := old.ReplicaStatuses["Worker"]
	worker.RestartingIndexes = "0"
	old.ReplicaStatuses["Worker"] = worker
	w.Before = old
	w.Crash()
	w.BeginWithOldStatus()
	if w.pass(2); w.uid("j-worker-0") != before {
		t.Error("a Pod that runs was deleted")
	}
}

// TestAJobOfAnotherKindKeepsItsPods: a TFJob and a PyTorchJob of one name want the same Pods.
func TestAJobOfAnotherKindKeepsItsPods(t *testing.T) {
	w := given(t, workers("replicas: 1"))
	other := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "j-worker-0", UID: "theirs", OwnerReferences: []metav1.OwnerReference{{
		APIVersion: "kubeflow.org/v1", Kind: "PyTorchJob", Name: "j", UID: "other", Controller: ptr.To(true),
	}}}}
	w.Store(KindPod, other)
	w.pass(2).says("Created")
	if pod := w.Pod("j-worker-0"); pod.UID != "theirs" || w.told("NameTaken") != 1 {
		t.Errorf("the Pod is %s, events %v", pod.UID, w.Events)
	}
}

// TestAPodDoesNotWaitForTheServicesOfOthers: a thousand Services take a while, and the first Pods may
// begin. A request that fails holds up its own Pod alone.
func TestAPodDoesNotWaitForTheServicesOfOthers(t *testing.T) {
	w := given(t, w4ps2)
	refused := true
	w.Fate = func(a plan.Action) jobworld.Fate {
		if refused && a.Kind == KindService && a.Name == "j-worker-2" {
			return jobworld.Refused
		}
		return jobworld.Done
	}
	others := []string{"j-ps-0", "j-ps-1", "j-worker-0", "j-worker-1", "j-worker-3"}
	w.settle().has(KindService, others...).has(KindPod, others...)
	refused = false
	w.pass(60).has(KindService, sixPods...).has(KindPod, sixPods...)
}

// TestTheGangIsThereBeforeItsPods, so that none is placed alone.
func TestTheGangIsThereBeforeItsPods(t *testing.T) {
	w := given(t, withPolicy("schedulingPolicy: {}", "replicas: 2"))
	w.OnAction = func(a plan.Action) {
		if a.Kind == KindPod && a.Verb == plan.Create && len(w.Names(KindPodGroup)) == 0 {
			t.Errorf("%s comes before the gang", a)
		}
	}
	refused := 0
	w.Fate = func(a plan.Action) jobworld.Fate {
		if a.Kind == KindPodGroup && refused < 3 {
			refused++
			return jobworld.Refused
		}
		return jobworld.Done
	}
	w.pass(4).has(KindPod, "j-worker-0", "j-worker-1")
}

// TestAJobIsDeletedByAStatusThatIsCurrent: a job that was made to end by an old status must
// not go.
func TestAJobIsDeletedByAStatusThatIsCurrent(t *testing.T) {
	w := given(t, withPolicy("ttlSecondsAfterFinished: 0", "replicas: 1"))
	var before plan.Action
	w.OnAction = func(a plan.Action) {
		if a.Verb == plan.Delete && a.Kind == w.Owner.Kind && before.Verb != plan.CheckStatus {
			t.Errorf("the job is deleted after %s", before)
		}
		before = a
	}
	w.run().succeed("j-worker-0")
	if !w.Gone {
		t.Error("the job is still there")
	}
}

// TestAnEndCountsBeforeItIsWritten: the Pod of an index that has ended goes before that is stored.
func TestAnEndCountsBeforeItIsWritten(t *testing.T) {
	w := given(t, "{successPolicy: AllWorkers, tfReplicaSpecs: {Worker: {replicas: 2, @t}}}").run()
	w.WriteFrom = plan.PersistNow // All else waits.
	w.succeed("j-worker-1")
	w.Remove(KindPod, "j-worker-1")
	w.pass(2).has(KindPod, "j-worker-0")
}

// TestAnEndIsForgottenOnlyOnceItIsPersisted, and its index is run again only once that is.
func TestAnEndIsForgottenOnlyOnceItIsPersisted(t *testing.T) {
	w := given(t, "{successPolicy: AllWorkers, tfReplicaSpecs: {Worker: {replicas: 3, @t}}}").run()
	w.WriteFrom = plan.PersistNow // All else waits.
	w.succeed("j-worker-2")
	w.Remove(KindPod, "j-worker-2")
	w.scale("Worker", 2)
	if got := w.Run().Status.ReplicaStatuses["Worker"].CompletedIndexes; got != "2" {
		t.Errorf("completed are %q before that was written", got)
	}
	w.WriteFrom = plan.PersistLater
	w.scale("Worker", 3).settle()
	w.WriteFrom = plan.PersistNow
	if w.scale("Worker", 2).scale("Worker", 3); w.Pod("j-worker-2") != nil && w.Written.ReplicaStatuses["Worker"].CompletedIndexes != "" {
		t.Error("worker 2 is made while it has ended on record")
	}
	w.WriteFrom = plan.PersistLater
	w.has(KindPod, "j-worker-0", "j-worker-1", "j-worker-2")
}
