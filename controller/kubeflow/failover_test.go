// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package kubeflow

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	kubeflowv1 "github.com/lockstep-k8s/lockstep/apis/kubeflow/v1"
	"github.com/lockstep-k8s/lockstep/controller/engine/plan"
)

// TestAFormerLeader that thaws takes nothing of what its successor has made.
func TestAFormerLeader(t *testing.T) {
	t.Run("deletes no successor of a Pod that it has counted", func(t *testing.T) {
		w := given(t, workers("restartPolicy: OnFailure")).run()
		w.Prompt = false
		w.DeletePod("j-worker-0", 30) // It is counted, and its node takes its time.
		w.DeliverAll()
		w.Run()
		thaw := w.TakeOver()
		w.Prompt = true
		w.DeliverAll()
		w.run()
		before := w.uid("j-worker-0")
		thaw()
		if w.pass(2).says("Created Running"); w.uid("j-worker-0") != before {
			t.Error("the Pod that runs was deleted")
		}
	})
	t.Run("deletes no Pod of a start that it has not heard of", func(t *testing.T) {
		w := given(t, workers("replicas: 1")).run()
		thaw := w.TakeOver()
		w.suspend(true).suspend(false).run()
		before := w.uid("j-worker-0")
		thaw()
		if w.pass(2); w.uid("j-worker-0") != before {
			t.Error("the Pod that runs was deleted")
		}
	})
	t.Run("deletes nothing of a job that was resumed", func(t *testing.T) {
		w := givenTorch(t, torch("1", "", "runPolicy: {schedulingPolicy: {}}, ")).run().suspend(true)
		thaw := w.TakeOver()
		w.suspend(false).run()
		w.Remove(KindPod, "j-master-0") // Nothing but Services and the gang tells of the new start.
		w.Remove(KindPod, "j-worker-0")
		w.Edit(func(j *Job) { suspended := true; j.Spec.RunPolicy.Suspend = &suspended })
		isFirst := true
		w.OnPlan = func(_ *view, p plan.Plan[status]) {
			for _, action := range p.Actions {
				if isFirst && action.Verb != plan.CheckStatus {
					t.Errorf("%s before it has looked", action)
				}
			}
			isFirst = false
		}
		thaw()
		w.Run()
	})
}

// TestNothingIsTakenByAStatusThatNobodyHasChecked: a controller that begins looks first.
func TestNothingIsTakenByAStatusThatNobodyHasChecked(t *testing.T) {
	w := given(t, withPolicy("cleanPodPolicy: All, schedulingPolicy: {}", "replicas: 2")).run()
	checked := false
	w.OnAction = func(a plan.Action) {
		checked = checked || a.Verb == plan.CheckStatus
		if a.Verb == plan.Delete && !checked {
			t.Errorf("%s before the status was checked", a)
		}
	}
	w.CrashAfter = 1 // The end is written, and nothing done.
	w.succeed("j-worker-0").has(KindPod).has(KindService).has(KindPodGroup)
}

// TestAPodOfAnIndexThatHasEndedGoes: another controller has made it too late.
func TestAPodOfAnIndexThatHasEndedGoes(t *testing.T) {
	for name, policy := range map[string]string{"while the job runs": "AllWorkers", "when the job has ended": ""} {
		t.Run(name, func(t *testing.T) {
			w := given(t, "{successPolicy: '"+policy+"', tfReplicaSpecs: {Worker: {replicas: 2, @t}}}").run()
			late := w.Pod("j-worker-0").DeepCopy()
			w.succeed("j-worker-0")
			w.Remove(KindPod, "j-worker-0")
			w.settle()
			late.UID, late.Status = w.NewUID(), corev1.PodStatus{Phase: corev1.PodRunning}
			w.Store(KindPod, late)
			w.pass(2).has(KindPod, "j-worker-1")
		})
	}
}

// TestAPodThatHasEndedMeanwhileStays where those stay that have ended.
func TestAPodThatHasEndedMeanwhileStays(t *testing.T) {
	w := given(t, "{runPolicy: {cleanPodPolicy: Running}, tfReplicaSpecs: {Chief: {@t}, Worker: {@t}}}").run()
	w.Prompt = false
	w.SetPhase("j-chief-0", corev1.PodSucceeded, 0)
	w.DeliverAll()
	w.SetPhase("j-worker-0", corev1.PodSucceeded, 0) // The cache does not show it.
	w.Run()
	w.Prompt = true
	w.DeliverAll()
	w.has(KindPod, "j-chief-0", "j-worker-0")
}

// TestAForcedDeletionWaitsForTheRecord: the end of a Pod that goes at once is known by it alone.
func TestAForcedDeletionWaitsForTheRecord(t *testing.T) {
	w := given(t, workers("restartPolicy: OnFailure")).run().restarted("j-worker-0", 3)
	w.Edit(func(j *Job) { j.Annotations = map[string]string{KeyForceDeletion: "0"} })
	w.WriteFrom = plan.PersistNow // All else waits.
	w.OnAction = func(a plan.Action) {
		if a.Verb == plan.ForceDelete && w.Written.ReplicaStatuses["Worker"].Restarts != 3 {
			t.Errorf("%s while %+v is persisted", a, w.Written.ReplicaStatuses["Worker"])
		}
	}
	w.DeletePod("j-worker-0", 30)
	w.Run()
	w.WriteFrom = plan.PersistLater
	w.run().says("Created Running")
}

// TestASpecThatMakesNoSenseTakesNothingOfAJobThatHasEnded, nor the job.
func TestASpecThatMakesNoSenseTakesNothingOfAJobThatHasEnded(t *testing.T) {
	w := given(t, withPolicy("cleanPodPolicy: None, ttlSecondsAfterFinished: 100", "replicas: 1")).run().succeed("j-worker-0")
	w.scale("Worker", -1)
	w.edit(func(s *Spec) {
		all, now := kubeflowv1.CleanPodPolicyAll, int32(0)
		s.RunPolicy.CleanPodPolicy, s.RunPolicy.TTLSecondsAfterFinished = &all, &now
	})
	if w.pass(3).has(KindPod, "j-worker-0"); w.Gone {
		t.Error("the job was deleted")
	}
	if w.scale("Worker", 1).pass(1); !w.Gone {
		t.Error("the job is still there, though its spec was mended")
	}
}

// TestAJobWhoseTimeToLiveWasRaisedStays, though the cache does not show that yet.
func TestAJobWhoseTimeToLiveWasRaisedStays(t *testing.T) {
	w := given(t, withPolicy("ttlSecondsAfterFinished: 60", "replicas: 1")).run().succeed("j-worker-0").pass(50)
	w.Prompt = false
	later := int32(3600)
	w.Edit(func(j *Job) { j.Spec.RunPolicy.TTLSecondsAfterFinished = &later })
	w.Now = w.Now.Add(20 * time.Second)
	w.Run()
	w.Prompt = true
	w.DeliverAll()
	if w.pass(2); w.Gone {
		t.Error("the job was deleted")
	}
}
