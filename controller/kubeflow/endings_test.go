// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package kubeflow

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kubeflowv1 "github.com/lockstep-k8s/lockstep/apis/kubeflow/v1"
	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/controller/engine/plan"
	"github.com/lockstep-k8s/lockstep/internal/testing/jobworld"
)

// TestPodsThatFailTogetherAreOneEventForEachWay in which they have, after that of the end: client-go lets
// but 25 through, and all jobs share the queue behind it.
func TestPodsThatFailTogetherAreOneEventForEachWay(t *testing.T) {
	w := given(t, workers("replicas: 1000")).run()
	for i, name := range w.OwnPods() {
		w.SetPhase(name, corev1.PodFailed, int32(1+i%20))
	}
	w.Events = nil
	w.says("Created !Running(TFJobRunning) Failed")
	end := slices.IndexFunc(w.Events, func(e plan.Event) bool { return e.Reason == "TFJobFailed" })
	exit := slices.IndexFunc(w.Events, func(e plan.Event) bool { return e.Reason == "ExitedWithCode" })
	if n := w.told("ExitedWithCode"); n != 6 || end > exit {
		t.Fatalf("%d events of ends, the first of them is number %d, and the end of the job number %d: %v", n, exit, end, w.Events)
	}
	if got, want := w.Events[exit].Message, "Pods j-worker-0, j-worker-116, j-worker-134, j-worker-152, j-worker-170 and 45 more: each failed: container tensorflow exited with code 1"; got != want {
		t.Errorf("the user reads %q, want %q", got, want)
	}
	if last := w.Events[len(w.Events)-1].Message; !strings.HasSuffix(last, "and 745 more: each has failed in another way") {
		t.Errorf("the last one reads %q", last)
	}
}

// TestAnEndIsKnownThoughTheSpecMakesNoSense: the Pod may be gone when the spec is mended.
func TestAnEndIsKnownThoughTheSpecMakesNoSense(t *testing.T) {
	for version, of := range map[string]func(*testing.T, string) *world{"v1": given, "v1alpha2": givenDesigned} {
		t.Run(version, func(t *testing.T) {
			w := of(t, "{tfReplicaSpecs: {Worker: {replicas: 2, template: {spec: {containers: [{name: tensorflow, image: i}]}}}}}").run()
			pods := w.OwnPods()
			w.edit(func(s *Spec) { s.SuccessPolicy = "Some" }).succeed(pods...)
			if w.pass(2); isFinished(w.Written) {
				t.Fatalf("it ends by a spec that makes no sense: %s", transcript(w.Written))
			}
			for _, name := range pods {
				w.Remove(KindPod, name)
			}
			w.Crash()
			w.edit(func(s *Spec) { s.SuccessPolicy = "" }).inPhase("Succeeded").has(KindPod)
		})
	}
}

// TestADeadlineThatMakesNoSenseEndsNoJob: the CRD of somebody else lets it in.
func TestADeadlineThatMakesNoSenseEndsNoJob(t *testing.T) {
	w := given(t, workers("replicas: 1")).run()
	never := int64(-1)
	w.edit(func(s *Spec) { s.RunPolicy.ActiveDeadlineSeconds = &never }).pass(2).says("Created Running")
}

// TestAServiceThatIsRefusedEndsNoPodThatRuns: it was there when the Pod began.
func TestAServiceThatIsRefusedEndsNoPodThatRuns(t *testing.T) {
	for version, of := range map[string]func(*testing.T, string) *world{"v1": given, "v1alpha2": givenDesigned} {
		t.Run(version, func(t *testing.T) {
			w := of(t, "{tfReplicaSpecs: {Worker: {replicas: 2, @t}}}").run()
			pods := w.OwnPods()
			before := w.uid(pods[0])
			w.Refuses = func(object metav1.Object) error {
				if _, isPod := object.(*corev1.Pod); isPod {
					return nil
				}
				return errors.New("never")
			}
			tried := 0
			w.Fate = func(a plan.Action) jobworld.Fate {
				if a.Verb == plan.Create && a.Tag == TriedAgain {
					tried++
					return jobworld.Refused
				}
				return jobworld.Done
			}
			w.Remove(KindService, pods[0])
			w.pass(2)
			if w.uid(pods[0]) != before || isFinished(w.Written) || is(w.Written, kubeflowv1.JobConditionFailed) || tried < 2 {
				t.Errorf("tried %d times, the status is %s, the Pod %s was %s", tried, transcript(w.Written), w.uid(pods[0]), before)
			}
		})
	}
}

// TestAnUpdateThatIsRefusedIsToldAsOne, not as a creation.
func TestAnUpdateThatIsRefusedIsToldAsOne(t *testing.T) {
	d := newDecision(Snapshot{Known: plan.Known[kubeflowv1.JobStatus]{Blocked: []plan.Block{{Verb: plan.Update, Kind: KindPodGroup, Name: "g", Reason: plan.ReasonCreationRefused}}}}, time.Unix(100, 0), steady{})
	d.explain()
	if d.Plan.Events[0].Reason != "FailedUpdatePodGroup" {
		t.Errorf("the user is told %v", d.Plan.Events)
	}
}

// TestAGangThatIsTakenAwayWaitsForNoMoreThanItsPods, and stays whole: what is made anew belongs to it.
func TestAGangThatIsTakenAwayWaitsForNoMoreThanItsPods(t *testing.T) {
	w := given(t, withPolicy("schedulingPolicy: {minAvailable: 10}", "replicas: 3, restartPolicy: OnFailure")).settle()
	if got := w.group().Spec.MinMember; got != 10 {
		t.Fatalf("minMember is %d", got)
	}
	w.edit(func(s *Spec) { s.RunPolicy.SchedulingPolicy = nil })
	if got := w.group().Spec.MinMember; got != 3 {
		t.Errorf("minMember is %d, want all replicas", got)
	}
	w.exit("j-worker-1", 1)
	pod := w.Pod("j-worker-1")
	if pod.Labels[schedulingv1alpha1.LabelPodGroup] != "j-tfjob-1" || pod.Spec.SchedulerName != gangScheduler {
		t.Errorf("what is made anew is of the group %q and the scheduler %q", pod.Labels[schedulingv1alpha1.LabelPodGroup], pod.Spec.SchedulerName)
	}
	w.suspend(true).suspend(false).has(KindPodGroup)
}

// TestAGangThatIsTakenAwayEndsWithItsStart, though its PodGroup is still there when the job is resumed.
func TestAGangThatIsTakenAwayEndsWithItsStart(t *testing.T) {
	w := given(t, withPolicy("schedulingPolicy: {}", "replicas: 2")).run()
	w.edit(func(s *Spec) { s.RunPolicy.SchedulingPolicy = nil })
	w.Fate = func(a plan.Action) jobworld.Fate {
		if a.Verb == plan.Delete && a.Kind == KindPodGroup {
			return jobworld.Refused
		}
		return jobworld.Done
	}
	w.suspend(true).suspend(false).has(KindPodGroup, "j-tfjob-1")
	w.Fate = func(plan.Action) jobworld.Fate { return jobworld.Done }
	if w.has(KindPodGroup).run(); w.Pod("j-worker-0").Labels[schedulingv1alpha1.LabelPodGroup] != "" {
		t.Error("the next start is a gang, too")
	}
}

// TestAJobOfV1alpha2KeepsNoGangWhenItHasEnded, though all else of it stays.
func TestAJobOfV1alpha2KeepsNoGangWhenItHasEnded(t *testing.T) {
	w := givenDesigned(t, "{tfReplicaSpecs: {Worker: {replicas: 2, template: {spec: {schedulerName: "+gangScheduler+", containers: [{name: tensorflow, image: i}]}}}}}").run()
	pods := w.OwnPods()
	w.group()
	w.succeed(pods...).inPhase("Succeeded").has(KindPodGroup).has(KindPod, pods...).has(KindService, pods...)
}
