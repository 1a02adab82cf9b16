// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package volcano

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	batchv1alpha1 "github.com/lockstep-k8s/lockstep/apis/batch/v1alpha1"
	busv1alpha1 "github.com/lockstep-k8s/lockstep/apis/bus/v1alpha1"
	"github.com/lockstep-k8s/lockstep/controller/jobpods"
)

// decisionFor is a decision about a Job that runs.
func decisionFor(t *testing.T, j *batchv1alpha1.Job) *decision {
	t.Helper()
	w := newWorld(t, j)
	d := newDecision(Snapshot{Job: j, Options: w.options}, w.now)
	d.next.State.Phase = rr
	return d
}

func TestThePolicyThatDecides(t *testing.T) {
	const (
		restart  = busv1alpha1.ActionRestartJob
		abort    = busv1alpha1.ActionAbortJob
		complete = busv1alpha1.ActionCompleteJob
	)
	type list = []batchv1alpha1.LifecyclePolicy
	failed := func(codes ...int32) happening { return happening{event: busv1alpha1.EventPodFailed, codes: codes} }
	of := func(event busv1alpha1.Event) happening { return happening{event: event} }
	tests := map[string]struct {
		ofTask, ofJob list
		event         happening
		noTask        bool
		want          busv1alpha1.Action
		wantDelay     time.Duration
	}{
		"none matches":                          {ofTask: list{on(busv1alpha1.EventPodEvicted, abort)}, event: failed(1)},
		"the first of the task":                 {ofTask: list{on("PodFailed", abort), on("*", restart)}, event: failed(1), want: abort},
		"the task before the Job":               {ofTask: list{on("*", restart)}, ofJob: list{on("PodFailed", abort)}, event: failed(1), want: restart},
		"the Job where the task has none":       {ofTask: list{on("PodEvicted", restart)}, ofJob: list{on("PodFailed", abort)}, event: failed(1), want: abort},
		"one without action decides too":        {ofTask: list{on("PodFailed", "")}, ofJob: list{on("PodFailed", abort)}, event: failed(1), want: ""},
		"one of several events":                 {ofTask: list{{Events: []busv1alpha1.Event{"PodEvicted", "PodFailed"}, Action: abort}}, event: failed(1), want: abort},
		"event and events are both meant":       {ofTask: list{{Event: "PodFailed", Events: []busv1alpha1.Event{"PodEvicted"}, Action: abort}}, event: failed(1), want: abort},
		"any event":                             {ofJob: list{on("*", abort)}, event: of("TaskCompleted"), want: abort},
		"the exit code":                         {ofTask: list{onCode(3, abort), on("PodFailed", complete)}, event: failed(3), want: abort},
		"another exit code":                     {ofTask: list{onCode(3, abort), on("PodFailed", complete)}, event: failed(7), want: complete},
		"the exit code of any container":        {ofTask: list{onCode(3, abort)}, event: failed(7, 3), want: abort},
		"an exit code of an evicted Pod":        {ofTask: list{onCode(3, abort)}, event: happening{event: "PodEvicted", codes: []int32{3}}},
		"a pending Pod without timeout":         {ofTask: list{on("PodPending", abort)}, event: of("PodPending")},
		"a pending Pod, and any event":          {ofTask: list{on("*", abort)}, event: of("PodPending")},
		"a pending Pod with timeout":            {ofTask: list{in("5s", on("PodPending", abort))}, event: of("PodPending"), want: abort, wantDelay: 5 * time.Second},
		"a pending Pod, any event with timeout": {ofTask: list{in("1m30s", on("*", abort))}, event: of("PodPending"), want: abort, wantDelay: 90 * time.Second},
		"the gang's are the Job's":              {ofTask: list{on("*", restart)}, ofJob: list{on("Unknown", abort)}, event: of("Unknown"), noTask: true, want: abort},
		"a timeout that can't be read is none":  {ofTask: list{in("soon", on("PodFailed", abort))}, event: failed(1), want: abort},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			d := decisionFor(t, withSpec(job(ofTask("a", 1, tc.ofTask...)), func(s *batchv1alpha1.JobSpec) { s.Policies = tc.ofJob }))
			if !tc.noTask {
				tc.event.task = d.tasks[0]
			}
			got := d.policyFor(tc.event)
			switch {
			case got == nil && tc.want != "":
				t.Errorf("no policy, want %s", tc.want)
			case got != nil && (got.Action != tc.want || got.delay != tc.wantDelay):
				t.Errorf("got %q after %v, want %q after %v", got.Action, got.delay, tc.want, tc.wantDelay)
			}
		})
	}
}

func TestTimesOfPods(t *testing.T) {
	at := func(seconds int) metav1.Time { return metav1.NewTime(time.Unix(1_000_000+int64(seconds), 0)) }
	ended := func(code int32, seconds int) corev1.ContainerStatus {
		return corev1.ContainerStatus{State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code, FinishedAt: at(seconds)}}}
	}
	deleted := at(40)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{CreationTimestamp: at(0), DeletionTimestamp: &deleted, DeletionGracePeriodSeconds: ptr.To[int64](30)},
		Status: corev1.PodStatus{
			InitContainerStatuses: []corev1.ContainerStatus{ended(0, 3)},
			ContainerStatuses:     []corev1.ContainerStatus{ended(3, 9), ended(0, 7), ended(3, 8), ended(5, 1)},
			Conditions:            []corev1.PodCondition{{LastTransitionTime: at(20)}},
		},
	}
	if got := jobpods.FinishTime(pod); !got.Equal(at(9).Time) {
		t.Errorf("it has finished at %v, want when the last container did", got)
	}
	if got := jobpods.DeletionTime(pod); !got.Equal(at(10).Time) {
		t.Errorf("its deletion was asked for at %v, want before its grace", got)
	}
	if got := jobpods.ExitCodes(pod); len(got) != 2 || got[0] != 3 || got[1] != 5 {
		t.Errorf("exit codes %v, want 3 and 5", got)
	}
	pod.Status.ContainerStatuses, pod.Status.InitContainerStatuses = nil, nil
	if got := jobpods.FinishTime(pod); !got.Equal(at(20).Time) {
		t.Errorf("without containers it has finished at %v, want when a condition changed", got)
	}
	pod.Status.Conditions = nil
	if got := jobpods.FinishTime(pod); !got.Equal(at(0).Time) {
		t.Errorf("without anything it has finished at %v, want at its creation", got)
	}
}

func TestWhatADyingPodComesToIsNoEnd(t *testing.T) {
	container := func(s *simulation, code int32, finished time.Duration) corev1.ContainerStatus {
		return corev1.ContainerStatus{State: corev1.ContainerState{
			Terminated: &corev1.ContainerStateTerminated{ExitCode: code, FinishedAt: metav1.NewTime(s.now.Add(finished))},
		}}
	}
	ways := map[string]func(*simulation, *corev1.Pod){
		"it fails when it is asked to end": func(s *simulation, pod *corev1.Pod) {
			pod.Status.Phase = corev1.PodFailed
			pod.Status.ContainerStatuses = []corev1.ContainerStatus{container(s, 143, 3*time.Second)}
		},
		"it succeeds when it is asked to end": func(s *simulation, pod *corev1.Pod) {
			pod.Status.Phase = corev1.PodSucceeded
			pod.Status.ContainerStatuses = []corev1.ContainerStatus{container(s, 0, 3*time.Second)}
		},
		"the clock of its node is behind": func(s *simulation, pod *corev1.Pod) {
			pod.Status.Phase = corev1.PodSucceeded
			pod.Status.ContainerStatuses = []corev1.ContainerStatus{container(s, 0, -3*time.Second)}
		},
		"its containers had not started": func(s *simulation, pod *corev1.Pod) {
			pod.Status.Phase = corev1.PodFailed
			pod.Status.ContainerStatuses = nil
			pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: pod.CreationTimestamp}}
		},
	}
	for name, die := range ways {
		t.Run(name, func(t *testing.T) {
			s := given(t, job(ofTask("a", 2, on(busv1alpha1.EventPodEvicted, busv1alpha1.ActionRestartPod))), nil)
			s.until(rr)
			s.now = s.now.Add(10 * time.Second)
			pod := s.pod("j-a-0")
			before := pod.UID
			at := metav1.NewTime(s.now.Add(30 * time.Second))
			pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = &at, ptr.To[int64](30)
			die(s, pod)
			s.store(KindPod, pod)
			s.run()
			s.has(tally{r: 1, t: 1, rc: 1})
			s.after(3).has(tally{r: 2, rc: 1})
			if s.pod("j-a-0").UID == before {
				t.Errorf("the Pod is not made again")
			}
		})
	}
}

func TestAnEndThatWasSeenCountsWhateverBecomesOfThePod(t *testing.T) {
	for _, phase := range []corev1.PodPhase{corev1.PodSucceeded, corev1.PodFailed} {
		s := given(t, job(ofTask("a", 2, on(busv1alpha1.EventPodEvicted, busv1alpha1.ActionTerminateJob))), nil)
		s.until(rr)
		s.setPhase("j-a-0", phase, 0)
		s.run()
		pod := s.pod("j-a-0")
		at := metav1.NewTime(s.now)
		pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = &at, ptr.To[int64](0) // A finalizer holds it.
		s.store(KindPod, pod)
		s.run()
		s.crash()
		s.after(3).sees(pp, rr)
		s.hasPods("j-a-1")
		if got := s.written.Succeeded + s.written.Failed; got != 1 {
			t.Errorf("%s: %d ends are counted, want 1", phase, got)
		}
	}
}

// TestAPodOfALostNodeIsEvicted: the garbage collector of Pods makes it Failed before it deletes
// it. Which of the two is seen is left to chance, and must not decide.
func TestAPodOfALostNodeIsEvicted(t *testing.T) {
	for _, seen := range []bool{true, false} {
		s := given(t, job(ofTask("a", 2,
			on(busv1alpha1.EventPodFailed, busv1alpha1.ActionTerminateJob), on(busv1alpha1.EventPodEvicted, busv1alpha1.ActionRestartPod))), nil)
		s.until(rr)
		pod := s.pod("j-a-0")
		pod.Status.Phase = corev1.PodFailed
		pod.Status.Conditions = []corev1.PodCondition{{
			Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: "DeletionByPodGC", LastTransitionTime: metav1.NewTime(s.now),
		}}
		s.store(KindPod, pod)
		if seen {
			s.run()
		}
		if s.uidOf("j-a-0") == string(pod.UID) {
			s.remove(KindPod, "j-a-0")
		}
		s.after(3).sees(pp, rr, rs, pp, rr)
		s.has(tally{r: 2, rc: 1})
	}
}

// TestAPodThatNobodyDeletesAfterAllIsMadeAnew: the garbage collector of Pods has made it Failed,
// its deletion has failed, and the node has come back.
func TestAPodThatNobodyDeletesAfterAllIsMadeAnew(t *testing.T) {
	s := given(t, job(ofTask("a", 2)), nil)
	s.until(rr)
	pod, before := s.pod("j-a-0"), s.uidOf("j-a-0")
	pod.Status.Phase = corev1.PodFailed
	pod.Status.Conditions = []corev1.PodCondition{{
		Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: "DeletionByPodGC", LastTransitionTime: metav1.NewTime(s.now),
	}}
	s.store(KindPod, pod)
	s.after(5)
	if s.uidOf("j-a-0") != before {
		t.Errorf("the Pod is not left to the garbage collector")
	}
	s.after(20)
	if s.uidOf("j-a-0") == before {
		t.Errorf("the Pod is there for ever: %+v", s.written)
	}
	s.has(tally{r: 2})
}

func TestAPodThatIsOnlyOutOfSightIsNotEvicted(t *testing.T) {
	s := given(t, job(ofTask("a", 2, on(busv1alpha1.EventPodEvicted, busv1alpha1.ActionTerminateJob))), nil)
	s.until(rr)
	clear(s.controller.own)
	delete(s.cache.objects, ObjectKey{KindPod, "j-a-1"})
	s.after(2).sees(pp, rr)
	s.has(tally{r: 2})
}

// TestATaskThatFailsIsRestartedOnce lets containers be restarted too often, while the Pods
// that are restarted for it take their time to end.
func TestATaskThatFailsIsRestartedOnce(t *testing.T) {
	s := given(t, withSpec(job(ofTask("a", 2, on(busv1alpha1.EventTaskFailed, busv1alpha1.ActionRestartPod)), ofTask("b", 1)), func(s *batchv1alpha1.JobSpec) {
		s.MinAvailable, s.MaxRetry = 1, 100
		s.Tasks[0].MaxRetry = 2
	}), nil)
	s.until(rr)
	for i, name := range []string{"j-a-0", "j-a-1"} {
		pod := s.pod(name)
		pod.Status.ContainerStatuses[0].RestartCount = int32(2 + i)
		s.store(KindPod, pod)
	}
	for range 5 {
		s.run() // No kubelet confirms that the Pod has ended.
	}
	s.has(tally{r: 2, t: 1, rc: 1})
	if s.pod("j-a-1").DeletionTimestamp == nil || s.pod("j-a-0").DeletionTimestamp != nil {
		t.Errorf("the Pod with most restarts is not the one that goes")
	}
}
