// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package volcano

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	batchv1alpha1 "github.com/lockstep-k8s/lockstep/apis/batch/v1alpha1"
	busv1alpha1 "github.com/lockstep-k8s/lockstep/apis/bus/v1alpha1"
	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/controller/engine/plan"
	"github.com/lockstep-k8s/lockstep/podgroup"
)

// givenPodsThatEndInTime is a Job with a limit of 30 seconds, whose Pods have run for five of the 20 seconds after which
// they succeed.
func givenPodsThatEndInTime(t *testing.T) *simulation {
	j := job(ofTask("a", 2))
	j.Annotations = map[string]string{schedulingv1alpha1.AnnotationMaxRuntime: "30"}
	return given(t, j, map[string]behaviour{"a": {seconds: 20}}).until(rr).after(5)
}

// TestStories are the lives that users know, on simulated nodes. A Pod that "ends with n"
// does so after some seconds; one of which nothing is said runs for ever.
func TestStories(t *testing.T) {
	type spec = batchv1alpha1.JobSpec
	tests := map[string]func(t *testing.T){
		"a Job whose Pods all succeed is Completed, and its Pods stay": func(t *testing.T) {
			s := given(t, job(ofTask("ps", 2), ofTask("worker", 5)), map[string]behaviour{"ps": {seconds: 3}, "worker": {seconds: 3}})
			s.until(cd).sees(pp, rr, cd)
			s.has(tally{s: 7})
			s.hasPods("j-ps-0", "j-ps-1", "j-worker-0", "j-worker-1", "j-worker-2", "j-worker-3", "j-worker-4")
			var entered []batchv1alpha1.JobPhase
			for _, condition := range s.written.Conditions {
				entered = append(entered, condition.Status)
			}
			if !slices.Equal(entered, []batchv1alpha1.JobPhase{pp, rr, cd}) {
				t.Errorf("conditions: %v", entered)
			}
		},
		"a Job that has run for as long as its limit is Terminated, and restarts of single Pods give no more time": func(t *testing.T) {
			j := job(ofTask("a", 2, batchv1alpha1.LifecyclePolicy{Event: busv1alpha1.EventPodFailed, Action: busv1alpha1.ActionRestartPod}))
			j.Annotations = map[string]string{schedulingv1alpha1.AnnotationMaxRuntime: "30"}
			j.Spec.MaxRetry = 100
			s := given(t, j, map[string]behaviour{"a": {seconds: 8, code: 1}})
			s.until(rr).after(25)
			j.Annotations[schedulingv1alpha1.AnnotationMaxRuntime] = "1000" // Too late.
			s.crash()
			s.until(td)
			if state := s.written.State; state.Reason != ReasonRuntimeLimitExceeded || !strings.Contains(state.Message, "30s") {
				t.Errorf("the state is %+v", state)
			}
		},
		"a Job whose Pods have succeeded in time is Completed, though no controller ran": func(t *testing.T) {
			s := givenPodsThatEndInTime(t)
			s.asleep = true
			s.after(60)
			s.asleep = false
			s.crash()
			s.until(cd)
		},
		"a Job whose Pods have succeeded in time is Completed, though their watch is behind": func(t *testing.T) {
			s := givenPodsThatEndInTime(t)
			s.prompt = false
			s.after(60)
			s.prompt = true
			s.deliverAll()
			s.until(cd)
		},
		"a Job that is restarted has the whole time again": func(t *testing.T) {
			j := job(ofTask("a", 2, batchv1alpha1.LifecyclePolicy{Event: busv1alpha1.EventPodFailed, Action: busv1alpha1.ActionRestartJob}))
			j.Annotations = map[string]string{schedulingv1alpha1.AnnotationMaxRuntime: "30"}
			j.Spec.MaxRetry = 2
			s := given(t, j, map[string]behaviour{"a": {seconds: 20, code: 1}})
			s.until(ff)
			if s.written.RetryCount != 2 {
				t.Errorf("it was restarted %d times", s.written.RetryCount)
			}
		},
		"the gang of a Job has its limit and its runningEstimate": func(t *testing.T) {
			j := withSpec(job(ofTask("a", 2)), func(s *spec) { s.RunningEstimate = ptr.To[batchv1alpha1.Duration]("90s") })
			j.Annotations = map[string]string{schedulingv1alpha1.AnnotationMaxRuntime: "60"}
			s := given(t, j, nil)
			s.until(rr)
			if spec := s.group(0).Spec; ptr.Deref(spec.MaxRuntimeSeconds, 0) != 60 || ptr.Deref(spec.ExpectedRuntimeSeconds, 0) != 60 {
				t.Errorf("the PodGroup has %v", spec)
			}
		},
		"a limit that makes no sense is told, and ends nothing": func(t *testing.T) {
			j := job(ofTask("a", 2))
			j.Annotations = map[string]string{schedulingv1alpha1.AnnotationMaxRuntime: "1h"}
			s := given(t, j, nil)
			s.until(rr).after(100).sees(pp, rr)
			if !s.told(podgroup.ReasonInvalidRuntime) {
				t.Errorf("events: %v", s.events)
			}
		},
		"a Job with one failed Pod runs to its end and is Failed": func(t *testing.T) {
			s := given(t, job(ofTask("a", 3), ofTask("b", 1)), map[string]behaviour{"a": {seconds: 4}, "b": {seconds: 1, code: 1}})
			s.until(ff).sees(pp, rr, ff)
			s.has(tally{s: 3, f: 1})
		},
		"a task that lacks its own minimum fails the Job": func(t *testing.T) {
			s := given(t, withSpec(job(ofTask("a", 2), ofTask("b", 1)), func(s *spec) {
				s.MinAvailable = 2
				s.Tasks[0].MinAvailable, s.Tasks[1].MinAvailable = ptr.To[int32](1), ptr.To[int32](1)
			}), map[string]behaviour{"a": {seconds: 2}, "b": {seconds: 2, code: 1}})
			s.until(ff).has(tally{s: 2, f: 1})
		},
		"minima of tasks that minAvailable has no room for don't count": func(t *testing.T) {
			s := given(t, withSpec(job(ofTask("a", 2), ofTask("b", 1)), func(s *spec) { s.MinAvailable = 2 }),
				map[string]behaviour{"a": {seconds: 2}, "b": {seconds: 2, code: 1}})
			s.until(cd).has(tally{s: 2, f: 1})
		},
		"minAvailable that is not set is the sum of the tasks' minima": func(t *testing.T) {
			s := given(t, withSpec(job(ofTask("a", 2), ofTask("b", 3)), func(s *spec) { s.Tasks[0].MinAvailable = ptr.To[int32](1) }), nil)
			s.until(rr)
			if s.written.MinAvailable != 4 || s.job.Spec.MinAvailable != 0 {
				t.Errorf("minAvailable: got %d in the status, %d in the spec, want 4 and 0", s.written.MinAvailable, s.job.Spec.MinAvailable)
			}
		},
		"a Pod that somebody deletes is made again, one that had ended is not": func(t *testing.T) {
			s := given(t, job(ofTask("a", 2), ofTask("b", 1)), map[string]behaviour{"b": {seconds: 1}})
			s.until(rr).after(3)
			before := s.uidOf("j-a-1")
			s.kill("j-a-1").kill("j-b-0").after(3)
			if after := s.uidOf("j-a-1"); after == "" || after == before {
				t.Errorf("Pod j-a-1 was %s and is %s", before, after)
			}
			s.hasPods("j-a-0", "j-a-1")
			s.has(tally{s: 1, r: 2})
		},
		"a Job that loses its minimum is Pending until it has it again": func(t *testing.T) {
			s := given(t, job(ofTask("a", 2)), nil)
			s.until(rr)
			s.cordoned = true
			s.kill("j-a-0").after(2).sees(pp, rr, pp)
			s.cordoned = false
			s.until(rr).has(tally{r: 2})
		},
		"a gang that has no room waits as a whole, and the user is told": func(t *testing.T) {
			s := given(t, job(ofTask("a", 4)), nil)
			s.room = 3
			s.after(5).sees(pp)
			s.has(tally{p: 4})
			if !s.told(ReasonPodGroupPending) || s.written.State.Reason != ReasonPodGroupPending {
				t.Errorf("events %v, state %+v", s.events, s.written.State)
			}
			s.room = 4
			s.until(rr).has(tally{r: 4})
			if s.written.State.Reason != ReasonEnoughPods {
				t.Errorf("state: %+v", s.written.State)
			}
		},
		"Pods above the minimum wait for room while the Job runs": func(t *testing.T) {
			s := given(t, withSpec(job(ofTask("a", 4)), func(s *spec) { s.MinAvailable = 2 }), nil)
			s.room = 3
			s.until(rr).after(1).has(tally{r: 3, p: 1})
		},
		"minSuccess completes the Job, and what still runs goes": func(t *testing.T) {
			s := given(t, withSpec(job(ofTask("short", 3), ofTask("long", 2)), func(s *spec) { s.MinSuccess = ptr.To[int32](2) }),
				map[string]behaviour{"short": {seconds: 3}})
			s.until(cd).after(2).sees(pp, rr, cd)
			s.hasPods("j-short-0", "j-short-1", "j-short-2")
			s.has(tally{s: 3})
		},
		"minSuccess that is not reached fails the Job": func(t *testing.T) {
			s := given(t, withSpec(job(ofTask("a", 2), ofTask("b", 1)), func(s *spec) { s.MinSuccess = ptr.To[int32](3) }),
				map[string]behaviour{"a": {seconds: 2}, "b": {seconds: 2, code: 1}})
			s.until(ff).has(tally{s: 2, f: 1})
		},
		"minSuccess that is reached at the end completes the Job, whatever failed": func(t *testing.T) {
			s := given(t, withSpec(job(ofTask("a", 2), ofTask("b", 1)), func(s *spec) { s.MinSuccess = ptr.To[int32](2) }),
				map[string]behaviour{"a": {seconds: 4}, "b": {seconds: 1, code: 1}})
			s.until(cd).has(tally{s: 2, f: 1})
		},
		"a Job with another scheduler is left alone, and so is its Command": func(t *testing.T) {
			s := given(t, withSpec(job(ofTask("a", 1)), func(s *spec) { s.SchedulerName = "another" }), nil)
			s.issue(busv1alpha1.ActionAbortJob).after(3)
			if s.written != nil || len(s.events) > 0 || len(s.names(KindCommand)) != 1 || len(s.names(KindPod)) > 0 {
				t.Errorf("status %+v, events %v, Commands %v, Pods %v", s.written, s.events, s.names(KindCommand), s.names(KindPod))
			}
		},
		"a Job that another controller serves is left alone after one warning": func(t *testing.T) {
			j := job(ofTask("a", 1))
			j.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "vc-controller-manager", Subresource: "status"}}
			s := given(t, j, nil)
			s.after(3)
			if s.written != nil || len(s.events) != 1 || !s.events[0].Warning {
				t.Errorf("status %+v, events %v", s.written, s.events)
			}
		},
		"more replicas are new indexes, and the old Pods are untouched": func(t *testing.T) {
			s := given(t, job(ofTask("a", 2)), nil)
			s.until(rr)
			before := s.uidOf("j-a-0") + s.uidOf("j-a-1")
			s.edit(func(j *batchv1alpha1.Job) { j.Spec.Tasks[0].Replicas = 4; j.Spec.MinAvailable = 4 })
			s.after(2).has(tally{r: 4})
			if after := s.uidOf("j-a-0") + s.uidOf("j-a-1"); after != before || s.phase() != rr {
				t.Errorf("Pods were %s and are %s, in phase %s", before, after, s.phase())
			}
		},
		"fewer replicas take the highest indexes, without event and retry": func(t *testing.T) {
			s := given(t, withSpec(job(ofTask("a", 4)), func(s *spec) {
				s.MinAvailable = 1
				s.Policies = []batchv1alpha1.LifecyclePolicy{on(busv1alpha1.EventPodEvicted, busv1alpha1.ActionTerminateJob)}
			}), nil)
			s.until(rr)
			s.edit(func(j *batchv1alpha1.Job) { j.Spec.Tasks[0].Replicas = 2 })
			s.after(3).sees(pp, rr)
			s.hasPods("j-a-0", "j-a-1")
			s.has(tally{r: 2})
		},
		"a Job that is scaled to nothing pauses": func(t *testing.T) {
			s := given(t, job(ofTask("a", 2)), nil)
			s.until(rr)
			scale := func(n int32) {
				s.edit(func(j *batchv1alpha1.Job) { j.Spec.Tasks[0].Replicas = n })
			}
			scale(0)
			s.after(10).hasPods()
			scale(2)
			s.after(2).has(tally{r: 2})
			if s.phase() != rr || slices.Contains(s.phases, cd) || slices.Contains(s.phases, ff) {
				t.Errorf("phases: %v", s.phases)
			}
		},
		"a Job that waits runs when its minima are lowered": func(t *testing.T) {
			s := given(t, job(ofTask("a", 4)), nil)
			s.room = 3
			s.after(3).sees(pp)
			s.edit(func(j *batchv1alpha1.Job) {
				j.Spec.MinAvailable = 3
				j.Spec.Tasks[0].MinAvailable = ptr.To[int32](3)
			})
			s.until(rr).after(1).has(tally{r: 3, p: 1})
		},
		"AbortJob and ResumeJob": func(t *testing.T) {
			s := given(t, job(ofTask("a", 2)), nil)
			s.until(rr)
			before := s.uidOf("j-a-0")
			s.issue(busv1alpha1.ActionAbortJob).until(abd).after(1).sees(pp, rr, ab, abd)
			s.hasPods()
			if len(s.names(KindCommand)) > 0 || !s.told(ReasonCommandIssued) || !s.told(ReasonExecuteAction) {
				t.Errorf("Commands %v, events %v", s.names(KindCommand), s.events)
			}
			s.issue(busv1alpha1.ActionResumeJob).until(rr).sees(pp, rr, ab, abd, rs, pp, rr)
			s.has(tally{r: 2})
			if after := s.uidOf("j-a-0"); after == before {
				t.Errorf("Pod j-a-0 is still %s", after)
			}
		},
		"a Job that waits is aborted without having run": func(t *testing.T) {
			s := given(t, job(ofTask("a", 4)), nil)
			s.room = 3
			s.after(2).issue(busv1alpha1.ActionAbortJob).until(abd).sees(pp, ab, abd)
			s.hasPods()
		},
		"what has succeeded is not run again when a Job is resumed": func(t *testing.T) {
			s := given(t, job(ofTask("a", 1), ofTask("b", 1)), map[string]behaviour{"a": {seconds: 2}})
			s.until(rr).after(3)
			before := s.uidOf("j-a-0")
			s.issue(busv1alpha1.ActionAbortJob).until(abd).issue(busv1alpha1.ActionResumeJob).until(rr).after(3)
			if after := s.uidOf("j-a-0"); after != before {
				t.Errorf("Pod j-a-0 was %s and is %s", before, after)
			}
			s.has(tally{s: 1, r: 1})
		},
		"RestartJob makes all Pods anew": func(t *testing.T) {
			s := given(t, job(ofTask("a", 2)), nil)
			s.until(rr)
			before, version := s.uidOf("j-a-0"), s.written.Version
			terminating := int32(0)
			s.onWrite = func(_, after *batchv1alpha1.JobStatus) {
				if after.State.Phase == rs {
					terminating = max(terminating, after.Terminating)
				}
			}
			s.issue(busv1alpha1.ActionRestartJob).until(rr).sees(pp, rr, rs, pp, rr)
			s.has(tally{r: 2, rc: 1})
			if terminating == 0 || s.written.Version <= version || s.uidOf("j-a-0") == before {
				t.Errorf("terminating %d, version %d after %d, Pod j-a-0 %s after %s", terminating, s.written.Version, version, s.uidOf("j-a-0"), before)
			}
		},
		"TerminateJob is for good": func(t *testing.T) {
			s := given(t, job(ofTask("a", 2)), nil)
			s.until(rr).issue(busv1alpha1.ActionTerminateJob).until(td).issue(busv1alpha1.ActionResumeJob).after(3).sees(pp, rr, tt, td)
			if len(s.names(KindCommand)) > 0 {
				t.Errorf("Commands: %v", s.names(KindCommand))
			}
		},
		"CompleteJob keeps the true numbers": func(t *testing.T) {
			s := given(t, job(ofTask("a", 1), ofTask("b", 1)), map[string]behaviour{"a": {seconds: 2}})
			s.until(rr).after(3).issue(busv1alpha1.ActionCompleteJob).until(cd).after(10).sees(pp, rr, cc, cd)
			s.hasPods("j-a-0")
			s.has(tally{s: 1})
		},
		"a Command for another kind is left alone": func(t *testing.T) {
			s := given(t, job(ofTask("a", 1)), nil)
			s.until(rr)
			c := s.command(busv1alpha1.ActionAbortJob)
			c.Target.Kind = "Queue"
			s.store(KindCommand, c)
			s.after(2).sees(pp, rr)
			if len(s.names(KindCommand)) != 1 {
				t.Errorf("Commands: %v", s.names(KindCommand))
			}
		},
		"a Command for an earlier Job of the name does nothing": func(t *testing.T) {
			s := given(t, job(ofTask("a", 1)), nil)
			s.until(rr)
			s.asleep = true
			c := s.command(busv1alpha1.ActionAbortJob)
			c.Target.UID = "earlier"
			s.store(KindCommand, c)
			s.asleep = false
			s.after(2).sees(pp, rr)
			if len(s.names(KindCommand)) != 0 || !s.events[len(s.events)-1].Warning {
				t.Errorf("Commands %v, events %v", s.names(KindCommand), s.events)
			}
		},
		"a Command that makes no sense is deleted with a warning": func(t *testing.T) {
			s := given(t, job(ofTask("a", 1)), nil)
			s.until(rr).issue("Foo").sees(pp, rr)
			s.issue(busv1alpha1.ActionRestartTask).sees(pp, rr)
			if len(s.names(KindCommand)) != 0 || !s.events[len(s.events)-1].Warning {
				t.Errorf("Commands %v, events %v", s.names(KindCommand), s.events)
			}
		},
		"a restart that waits for a Pod which does not go names the Pod": func(t *testing.T) {
			s := given(t, job(ofTask("a", 2, on(busv1alpha1.EventPodFailed, busv1alpha1.ActionRestartJob))), nil).until(rr)
			s.held = map[string]bool{"j-a-0": true}
			s.setPhase("j-a-1", corev1.PodFailed, 1)
			if s.after(80); s.told(ReasonWaiting) {
				t.Error("the user was warned while the Pod had time to end")
			}
			if s.after(20); !s.told(ReasonWaiting) || !strings.Contains(s.events[len(s.events)-1].Message, "Pod j-a-0 on node node-1 has been in deletion since ") {
				t.Errorf("the user was told %v", s.events)
			}
		},
		"a gang that waits loses its surplus Pods before its minimum": func(t *testing.T) {
			s := given(t, job(ofTask("a", 4)), nil)
			s.room = 2
			s.after(2)
			var done []string
			s.onAction = func(a plan.Action) {
				if a.Verb == plan.Delete && a.Kind == KindPod || a.Verb == plan.Update && a.Kind == KindPodGroup {
					done = append(done, string(a.Verb)+a.Kind)
				}
			}
			s.edit(func(j *batchv1alpha1.Job) { j.Spec.Tasks[0].Replicas, j.Spec.MinAvailable = 1, 1 })
			s.after(3).has(tally{r: 1})
			if want := []string{"DeletePod", "DeletePod", "DeletePod", "UpdatePodGroup"}; !slices.Equal(done, want) {
				t.Errorf("the controller did %v, want %v", done, want)
			}
		},
		"a Job may be resumed more often than maxRetry": func(t *testing.T) {
			s := given(t, withSpec(job(ofTask("a", 1)), func(s *spec) { s.MaxRetry = 2 }), nil)
			s.until(rr)
			for range 3 {
				s.issue(busv1alpha1.ActionAbortJob).until(abd).issue(busv1alpha1.ActionResumeJob).until(rr)
			}
			s.has(tally{r: 1})
			s.issue(busv1alpha1.ActionRestartJob).after(1).until(rr).issue(busv1alpha1.ActionRestartJob).until(ff)
		},
		"the last try keeps what has ended": func(t *testing.T) {
			s := given(t, withSpec(job(ofTask("a", 1), ofTask("b", 1)), func(s *spec) { s.MaxRetry = 1 }), map[string]behaviour{"a": {seconds: 1}})
			s.until(rr).after(2).issue(busv1alpha1.ActionRestartJob).until(ff).after(2).sees(pp, rr, rs, ff)
			s.hasPods("j-a-0")
			s.has(tally{s: 1, rc: 1})
		},
		"RestartTask makes the Pods of the task anew, and no others": func(t *testing.T) {
			s := given(t, job(ofTask("a", 2), ofTask("b", 2, on(busv1alpha1.EventPodEvicted, busv1alpha1.ActionRestartTask))), nil)
			s.until(rr)
			a, b0, b1 := s.uidOf("j-a-0")+s.uidOf("j-a-1"), s.uidOf("j-b-0"), s.uidOf("j-b-1")
			s.kill("j-b-0").until(rr).sees(pp, rr, rs, pp, rr)
			s.has(tally{r: 4, rc: 1})
			if s.uidOf("j-a-0")+s.uidOf("j-a-1") != a || s.uidOf("j-b-0") == b0 || s.uidOf("j-b-1") == b1 {
				t.Errorf("Pods: %s, %s, %s; were %s, %s, %s", s.uidOf("j-a-0")+s.uidOf("j-a-1"), s.uidOf("j-b-0"), s.uidOf("j-b-1"), a, b0, b1)
			}
		},
		"RestartPod makes one Pod anew": func(t *testing.T) {
			s := given(t, job(ofTask("a", 2, on(busv1alpha1.EventPodFailed, busv1alpha1.ActionRestartPod)), ofTask("b", 1)), nil)
			s.until(rr)
			a0, a1 := s.uidOf("j-a-0"), s.uidOf("j-a-1")
			s.setPhase("j-a-1", corev1.PodFailed, 1)
			s.after(2).sees(pp, rr, rs, pp, rr)
			s.has(tally{r: 3, rc: 1})
			if s.uidOf("j-a-0") != a0 || s.uidOf("j-a-1") == a1 {
				t.Errorf("Pods: %s, %s; were %s, %s", s.uidOf("j-a-0"), s.uidOf("j-a-1"), a0, a1)
			}
		},
		"RestartPartition makes the Pods of the partition anew": func(t *testing.T) {
			s := given(t, withSpec(job(ofTask("a", 4, on(busv1alpha1.EventPodEvicted, busv1alpha1.ActionRestartPartition))), func(s *spec) {
				s.Tasks[0].PartitionPolicy = &batchv1alpha1.PartitionPolicySpec{TotalPartitions: 2, PartitionSize: 2}
			}), nil)
			s.until(rr)
			var before []string
			for _, name := range s.ownPods() {
				before = append(before, s.uidOf(name))
			}
			s.kill("j-a-3").until(rr).has(tally{r: 4, rc: 1})
			for i, name := range s.ownPods() {
				if anew := s.uidOf(name) != before[i]; anew != (i >= 2) {
					t.Errorf("Pod %s was made anew: %v", name, anew)
				}
			}
		},
		"a Pod that stays pending for too long terminates the Job": func(t *testing.T) {
			s := given(t, job(ofTask("a", 1, in("5s", on(busv1alpha1.EventPodPending, busv1alpha1.ActionTerminateJob)))), map[string]behaviour{"a": {large: true}})
			s.after(4).sees(pp)
			s.after(2).sees(pp, tt, td)
		},
		"a policy for pending Pods without timeout does nothing": func(t *testing.T) {
			s := given(t, job(ofTask("a", 1, on(busv1alpha1.EventPodPending, busv1alpha1.ActionTerminateJob))), map[string]behaviour{"a": {large: true}})
			s.after(10).sees(pp)
		},
		"a Pod that runs in time is no pending one": func(t *testing.T) {
			s := given(t, job(ofTask("a", 1, in("5s", on(busv1alpha1.EventPodPending, busv1alpha1.ActionTerminateJob)))), nil)
			s.room = 0
			s.after(2)
			s.room = 1
			s.after(10).sees(pp, rr)
		},
		"the first policy that matches decides": func(t *testing.T) {
			for code, want := range map[int32][]batchv1alpha1.JobPhase{7: {pp, rr, cc, cd}, 3: {pp, rr, ab, abd}} {
				s := given(t, job(ofTask("a", 1, onCode(3, busv1alpha1.ActionAbortJob), on(busv1alpha1.EventPodFailed, busv1alpha1.ActionCompleteJob)), ofTask("b", 1)),
					map[string]behaviour{"a": {seconds: 2, code: code}})
				s.until(want[len(want)-1]).sees(want...)
			}
		},
		"policies of the Job count where those of the task don't match": func(t *testing.T) {
			s := given(t, withSpec(job(ofTask("a", 1, on(busv1alpha1.EventTaskCompleted, busv1alpha1.ActionCompleteJob)), ofTask("b", 1)), func(s *spec) {
				s.Policies = []batchv1alpha1.LifecyclePolicy{onCode(5, busv1alpha1.ActionAbortJob)}
			}), map[string]behaviour{"a": {seconds: 2, code: 5}})
			s.until(abd).sees(pp, rr, ab, abd)
		},
		"a delay survives the controller": func(t *testing.T) {
			s := given(t, withSpec(job(ofTask("a", 1), ofTask("b", 1)), func(s *spec) {
				s.Policies = []batchv1alpha1.LifecyclePolicy{in("10s", onCode(5, busv1alpha1.ActionTerminateJob))}
			}), map[string]behaviour{"a": {seconds: 1, code: 5}})
			begin := s.now
			s.after(5)
			s.crash()
			s.until(td)
			if took := s.now.Sub(begin); took < 11*time.Second || took > 13*time.Second {
				t.Errorf("Terminated after %v, want about 11 s", took)
			}
		},
		"what happens while no controller runs is seen by the next one": func(t *testing.T) {
			s := given(t, job(ofTask("a", 1, on(busv1alpha1.EventPodFailed, busv1alpha1.ActionCompleteJob)), ofTask("b", 1)), map[string]behaviour{"a": {seconds: 3, code: 1}})
			s.until(rr)
			s.asleep = true
			s.after(5)
			s.crash()
			s.asleep = false
			s.until(cd).sees(pp, rr, cc, cd)
		},
		"a Pod that vanishes while no controller runs was evicted": func(t *testing.T) {
			s := given(t, job(ofTask("a", 2, on(busv1alpha1.EventPodEvicted, busv1alpha1.ActionAbortJob))), nil)
			s.until(rr)
			s.asleep = true
			s.remove(KindPod, "j-a-1")
			s.crash()
			s.asleep = false
			s.until(abd).sees(pp, rr, ab, abd)
		},
		"any event completes the Job, the end of a task too": func(t *testing.T) {
			s := given(t, withSpec(job(ofTask("a", 1), ofTask("b", 1)), func(s *spec) {
				s.Policies = []batchv1alpha1.LifecyclePolicy{on(busv1alpha1.EventAny, busv1alpha1.ActionCompleteJob)}
			}), map[string]behaviour{"a": {seconds: 4}})
			s.after(2).sees(pp, rr)
			s.until(cd).sees(pp, rr, cc, cd)
		},
		"a Job that fails again and again ends Failed, and keeps the failed Pod": func(t *testing.T) {
			s := given(t, withSpec(job(ofTask("a", 1), ofTask("b", 1)), func(s *spec) {
				s.MinSuccess, s.MaxRetry = ptr.To[int32](2), 2
				s.Policies = []batchv1alpha1.LifecyclePolicy{{Events: []busv1alpha1.Event{busv1alpha1.EventPodFailed, busv1alpha1.EventPodEvicted}, Action: busv1alpha1.ActionRestartJob}}
			}), map[string]behaviour{"b": {seconds: 2, code: 1}})
			s.until(ff).after(2).sees(pp, rr, rs, pp, rr, rs, ff)
			s.hasPods("j-b-0")
			s.has(tally{f: 1, rc: 2})
		},
		"a task that depends on another waits until that is ready": func(t *testing.T) {
			s := given(t, withSpec(job(ofTask("master", 1), ofTask("worker", 2)), func(s *spec) {
				s.MinAvailable = 3
				s.Tasks[0].DependsOn = &batchv1alpha1.DependsOn{Name: []string{"worker"}}
			}), map[string]behaviour{"worker": {unready: true}, "master": {seconds: 3}})
			s.after(3).hasPods("j-worker-0", "j-worker-1")
			for _, name := range s.ownPods() {
				s.setPhase(name, corev1.PodRunning, 0)
			}
			s.until(rr).hasPods("j-master-0", "j-worker-0", "j-worker-1")
		},
		"a task that depends on any of two starts with the first, on all with neither": func(t *testing.T) {
			for _, iteration := range []batchv1alpha1.Iteration{batchv1alpha1.IterationAny, batchv1alpha1.IterationAll} {
				s := given(t, withSpec(job(ofTask("a", 1), ofTask("b", 1), ofTask("c", 1)), func(s *spec) {
					s.MinAvailable = 1
					s.Tasks[2].DependsOn = &batchv1alpha1.DependsOn{Name: []string{"a", "b"}, Iteration: iteration}
				}), map[string]behaviour{"a": {large: true}, "b": {seconds: 1}})
				s.after(4)
				if made := s.uidOf("j-c-0") != ""; made != (iteration == batchv1alpha1.IterationAny) {
					t.Errorf("%s: Pod of c was made: %v", iteration, made)
				}
			}
		},
		"a finished Job goes after its time to live": func(t *testing.T) {
			for ttl, want := range map[int32]int{5: 5, 0: 0} {
				s := given(t, withSpec(job(ofTask("a", 1)), func(s *spec) { s.TTLSecondsAfterFinished = ptr.To(ttl) }), map[string]behaviour{"a": {seconds: 2}})
				for s.phase() != cd && !s.deleted {
					s.after(1)
				}
				begin := s.now
				for range 20 {
					if s.deleted {
						break
					}
					s.after(1)
				}
				if took := int(s.now.Sub(begin).Seconds()); !s.deleted || took < want-1 || took > want+1 {
					t.Errorf("ttl %d: gone %v after %d s", ttl, s.deleted, took)
				}
			}
		},
		"a terminated Job goes, an aborted one stays": func(t *testing.T) {
			for action, gone := range map[busv1alpha1.Action]bool{busv1alpha1.ActionTerminateJob: true, busv1alpha1.ActionAbortJob: false} {
				s := given(t, withSpec(job(ofTask("b", 1)), func(s *spec) { s.TTLSecondsAfterFinished = ptr.To[int32](5) }), nil)
				s.until(rr).issue(action).after(10)
				if s.deleted != gone {
					t.Errorf("after %s it is gone: %v", action, s.deleted)
				}
			}
		},
		"a foreign Pod of a needed name is left alone, and waited for": func(t *testing.T) {
			s := given(t, job(ofTask("a", 2)), nil)
			foreign := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "j-a-1", UID: "foreign"}, Status: corev1.PodStatus{Phase: corev1.PodRunning}}
			s.store(KindPod, foreign)
			s.after(5).sees(pp)
			if s.uidOf("j-a-1") != "foreign" || !s.told(ReasonFailedCreate) || !strings.Contains(s.written.State.Message, "j-a-1") {
				t.Errorf("Pod %s, events %v, state %+v", s.uidOf("j-a-1"), s.events, s.written.State)
			}
			s.remove(KindPod, "j-a-1")
			s.until(rr).has(tally{r: 2})
		},
		"an invalid Job is Pending and says why": func(t *testing.T) {
			s := given(t, job(), nil)
			s.after(3).sees(pp)
			if s.written.State.Reason != ReasonInvalidJob || !s.told(ReasonInvalidJob) {
				t.Errorf("state %+v, events %v", s.written.State, s.events)
			}
		},
		"a template that changes is made into no Pod": func(t *testing.T) {
			s := given(t, job(ofTask("a", 2)), nil)
			s.until(rr)
			s.edit(func(j *batchv1alpha1.Job) {
				j.Spec.Tasks[0].Template.Raw = []byte(`{"spec":{"containers":[{"name":"c","image":"other"}]}}`)
			})
			s.kill("j-a-1").after(3).hasPods("j-a-0")
			if !s.told(ReasonSpecChanged) {
				t.Errorf("events: %v", s.events)
			}
		},
		"a template that changes is made into no Pod, though no gang tells of the one that was": func(t *testing.T) {
			s := given(t, job(ofTask("a", 2)), nil)
			s.job.Spec.Tasks[0].Template.Raw = []byte(`{"spec":{"schedulerName":"another","containers":[{"name":"c","image":"i"}]}}`)
			s.job.Spec.SchedulerName = "volcano"
			s.after(2).hasPods("j-a-0", "j-a-1")
			if groups := s.names(KindPodGroup); len(groups) > 0 {
				t.Fatalf("there are PodGroups: %v", groups)
			}
			s.edit(func(j *batchv1alpha1.Job) {
				j.Spec.Tasks[0].Template.Raw = []byte(`{"spec":{"schedulerName":"another","containers":[{"name":"c","image":"other"}]}}`)
			})
			s.crash()
			s.kill("j-a-1").after(3).hasPods("j-a-0")
			if !s.told(ReasonSpecChanged) {
				t.Errorf("events: %v", s.events)
			}
		},
		"nor if somebody has deleted the gang": func(t *testing.T) {
			s := given(t, job(ofTask("a", 2)), nil)
			s.until(rr)
			s.asleep = true
			s.edit(func(j *batchv1alpha1.Job) {
				j.Spec.Tasks[0].Template.Raw = []byte(`{"spec":{"containers":[{"name":"c","image":"other"}]}}`)
			})
			for _, group := range s.names(KindPodGroup) {
				s.remove(KindPodGroup, group)
			}
			s.asleep = false
			s.crash()
			s.kill("j-a-1").after(3).hasPods("j-a-0")
			if !s.told(ReasonSpecChanged) {
				t.Errorf("events: %v", s.events)
			}
		},
		"a Job of which nothing was made may be mended": func(t *testing.T) {
			s := given(t, withSpec(job(ofTask("a", 1)), func(s *spec) {
				s.Volumes = []batchv1alpha1.VolumeSpec{{MountPath: "/in", VolumeClaimName: "missing"}}
			}), nil)
			s.job.Spec.SchedulerName = "volcano"
			s.job.Spec.Tasks[0].Template.Raw = []byte(`{"spec":{"schedulerName":"another","containers":[{"name":"c","image":"i"}]}}`)
			s.after(3).sees(pp)
			s.hasPods()
			s.edit(func(j *batchv1alpha1.Job) { j.Spec.Volumes = nil })
			s.after(3).hasPods("j-a-0")
		},
		"objects of plugins are there before Pods, go with the end, and claims stay": func(t *testing.T) {
			s := given(t, withSpec(job(ofTask("a", 1)), func(s *spec) {
				s.Plugins = map[string]batchv1alpha1.PluginFlags{"svc": nil, "ssh": nil}
				s.Volumes = []batchv1alpha1.VolumeSpec{{MountPath: "/out", VolumeClaim: &kruntime.RawExtension{Raw: []byte("{}")}}}
			}), nil)
			s.onAction = func(a plan.Action) {
				if a.Verb == plan.Create && a.Kind == KindPod && (s.objects[ObjectKey{KindService, "j"}] == nil || s.objects[ObjectKey{KindConfigMap, "j-svc"}] == nil ||
					s.objects[ObjectKey{KindSecret, "j-ssh"}] == nil || len(s.names(KindClaim)) == 0 || s.group(s.written.Version) == nil) {
					t.Errorf("a Pod is made before what it needs")
				}
			}
			s.until(rr).after(1)
			claim := s.names(KindClaim)[0]
			for key, want := range map[string]string{"plugin-svc": "svc", "plugin-ssh": "ssh", "volume-pvc-" + claim: claim} {
				if got := s.written.ControlledResources[key]; got != want {
					t.Errorf("controlledResources[%s]: got %q, want %q", key, got, want)
				}
			}
			s.issue(busv1alpha1.ActionAbortJob).until(abd).after(2)
			if left := len(s.names(KindService)) + len(s.names(KindConfigMap)) + len(s.names(KindSecret)) + len(s.names(KindNetworkPolicy)); left > 0 {
				t.Errorf("%d objects of plugins are left", left)
			}
			if s.written.ControlledResources["plugin-svc"] != "" || s.written.ControlledResources["volume-pvc-"+claim] != claim {
				t.Errorf("controlledResources: %v", s.written.ControlledResources)
			}
			s.issue(busv1alpha1.ActionResumeJob).until(rr)
			if len(s.names(KindService)) == 0 || s.names(KindClaim)[0] != claim {
				t.Errorf("Services %v, claims %v", s.names(KindService), s.names(KindClaim))
			}
		},
		"a claim that is missing is waited for": func(t *testing.T) {
			s := given(t, withSpec(job(ofTask("a", 1)), func(s *spec) {
				s.Volumes = []batchv1alpha1.VolumeSpec{{MountPath: "/in", VolumeClaimName: "named"}}
			}), nil)
			s.after(5).hasPods()
			if !s.told(ReasonPVCError) || s.written.State.Reason != ReasonPVCError || s.phase() != pp {
				t.Errorf("events %v, state %+v", s.events, s.written.State)
			}
			s.store(KindClaim, &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "named", UID: "claim"}})
			s.until(rr)
		},
		"the hosts of a rescaled Job are those of a new one": func(t *testing.T) {
			hosts := func(s *simulation) map[string]string {
				return s.objects[ObjectKey{KindConfigMap, "j-svc"}].(*corev1.ConfigMap).Data
			}
			withSvc := func(replicas int32) *simulation {
				return given(t, withSpec(job(ofTask("a", replicas)), func(s *spec) { s.Plugins = map[string]batchv1alpha1.PluginFlags{"svc": nil} }), nil).until(rr)
			}
			s := withSvc(2)
			s.edit(func(j *batchv1alpha1.Job) { j.Spec.Tasks[0].Replicas = 4 })
			s.after(2)
			if diff := cmp.Diff(hosts(withSvc(4)), hosts(s)); diff != "" {
				t.Errorf("hosts (-want +got):\n%s", diff)
			}
			s.edit(func(j *batchv1alpha1.Job) { j.Spec.Tasks[0].Replicas = 0 })
			s.after(2)
			if got := hosts(s)["VC_A_NUM"]; got != "0" {
				t.Errorf("VC_A_NUM is %q without Pods", got)
			}
		},
		"a tier that no label stands for keeps a strict Job Pending, and not another": func(t *testing.T) {
			for mode, want := range map[batchv1alpha1.NetworkTopologyMode]batchv1alpha1.JobPhase{
				batchv1alpha1.NetworkTopologyHard: pp, batchv1alpha1.NetworkTopologySoft: rr,
			} {
				s := given(t, withSpec(job(ofTask("a", 1)), func(s *spec) {
					s.NetworkTopology = &batchv1alpha1.NetworkTopologySpec{Mode: mode, HighestTierAllowed: ptr.To[int32](1)}
				}), nil)
				s.after(3)
				if s.phase() != want || !s.told(ReasonTopologyUnmapped) {
					t.Errorf("%s: %v, events %v", mode, s.phases, s.events)
				}
			}
		},
		"a Pod of a newer version that somebody has made up does not hold the Job up": func(t *testing.T) {
			s := given(t, job(ofTask("a", 2)), nil)
			s.until(rr)
			pod := s.pod("j-a-1")
			pod.Annotations[batchv1alpha1.KeyJobVersion] = "99"
			s.store(KindPod, pod)
			s.after(3).has(tally{r: 2})
		},
		"the minimum of a gang is lower before Pods of a rescale go": func(t *testing.T) {
			s := given(t, job(ofTask("a", 4)), nil)
			s.until(rr)
			s.fate = func(a plan.Action) fate {
				return map[bool]fate{true: refused, false: done}[a.Kind == KindPodGroup]
			}
			s.edit(func(j *batchv1alpha1.Job) { j.Spec.Tasks[0].Replicas = 2 })
			s.after(3).hasPods("j-a-0", "j-a-1", "j-a-2", "j-a-3")
			s.fate = func(plan.Action) fate { return done }
			s.after(2).hasPods("j-a-0", "j-a-1")
		},
		"an index that had ended, was scaled away and comes back is a new one for every controller": func(t *testing.T) {
			s := given(t, withSpec(job(ofTask("a", 2)), func(s *spec) { s.MinAvailable = 1 }), nil)
			s.until(rr)
			s.setPhase("j-a-1", corev1.PodSucceeded, 0)
			s.after(1)
			s.remove(KindPod, "j-a-1")
			s.writeFrom = plan.PersistSoon // What gates nothing waits.
			for _, replicas := range []int32{1, 2} {
				s.edit(func(j *batchv1alpha1.Job) { j.Spec.Tasks[0].Replicas = replicas })
				s.run()
			}
			s.crash()
			s.after(2).hasPods("j-a-0", "j-a-1")
			s.writeFrom = plan.PersistLater
			s.after(1).has(tally{r: 2})
		},
		"what a rescale removed is not missed by the next controller": func(t *testing.T) {
			s := given(t, withSpec(job(ofTask("a", 2, on(busv1alpha1.EventPodEvicted, busv1alpha1.ActionTerminateJob))), func(s *spec) { s.MinAvailable = 1 }), nil)
			s.until(rr).after(1)
			s.writeFrom = plan.PersistSoon // What gates nothing waits.
			s.edit(func(j *batchv1alpha1.Job) { j.Spec.Tasks[0].Replicas = 1 })
			s.onAction = func(a plan.Action) { s.asleep = s.asleep || a.Verb == plan.Delete && a.Kind == KindPod }
			s.after(1).hasPods("j-a-0")
			s.crash()
			s.edit(func(j *batchv1alpha1.Job) { j.Spec.Tasks[0].Replicas = 2 })
			s.asleep = false
			s.onAction = func(plan.Action) {}
			s.after(3).sees(pp, rr)
			s.hasPods("j-a-0", "j-a-1")
		},
		"a stop that comes in a restart is honoured": func(t *testing.T) {
			s := given(t, job(ofTask("a", 2)), nil)
			s.until(rr)
			s.command(busv1alpha1.ActionRestartJob)
			s.run() // The Pods are still ending.
			s.command(busv1alpha1.ActionTerminateJob)
			s.until(td).sees(pp, rr, rs, tt, td)
			s.has(tally{rc: 1})
		},
		"containers that are restarted too often fail their task": func(t *testing.T) {
			s := given(t, job(ofTask("a", 2, on(busv1alpha1.EventTaskFailed, busv1alpha1.ActionTerminateJob))), nil)
			s.until(rr)
			for i, name := range s.ownPods() {
				pod := s.pod(name)
				pod.Status.ContainerStatuses[0].RestartCount = int32(1 + i)
				if i == 0 {
					s.store(KindPod, pod)
					s.after(1).sees(pp, rr)
					continue
				}
				s.store(KindPod, pod)
			}
			s.until(td).sees(pp, rr, tt, td)
		},
		"a gang that loses its place is an event": func(t *testing.T) {
			s := given(t, withSpec(job(ofTask("a", 2)), func(s *spec) {
				s.Policies = []batchv1alpha1.LifecyclePolicy{on(busv1alpha1.EventUnknown, busv1alpha1.ActionAbortJob)}
			}), nil)
			s.until(rr)
			group := s.group(s.written.Version)
			group.Status.Phase = "Unknown"
			s.store(KindPodGroup, group)
			s.until(abd).sees(pp, rr, ab, abd)
		},
		"an evicted Pod that does not run again in time is acted on": func(t *testing.T) {
			s := given(t, job(ofTask("a", 2, in("5s", on(busv1alpha1.EventPodEvicted, busv1alpha1.ActionTerminateJob)))), nil)
			s.until(rr)
			s.cordoned = true
			s.kill("j-a-1")
			s.crash()
			s.after(3)
			if slices.Contains(s.phases, tt) {
				t.Fatalf("too early: %v", s.phases)
			}
			s.until(td)
		},
		"an evicted Pod that runs again in time is not acted on": func(t *testing.T) {
			s := given(t, job(ofTask("a", 2, in("5s", on(busv1alpha1.EventPodEvicted, busv1alpha1.ActionTerminateJob)))), nil)
			s.until(rr)
			s.kill("j-a-1").after(10)
			if s.phase() != rr {
				t.Errorf("phases: %v", s.phases)
			}
		},
	}
	for name, story := range tests {
		t.Run(name, story)
	}
}
