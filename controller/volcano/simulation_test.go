// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package volcano

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	batchv1alpha1 "github.com/lockstep-k8s/lockstep/apis/batch/v1alpha1"
	busv1alpha1 "github.com/lockstep-k8s/lockstep/apis/bus/v1alpha1"
	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
)

// behaviour is what Pods of a task do: they run for a number of seconds and exit with a code.
// No seconds mean for ever.
type behaviour struct {
	seconds int
	code    int32
	// large Pods fit nowhere.
	large bool
	// unready Pods run without being ready.
	unready bool
	// gated Pods are not scheduled.
	gated bool
}

// simulation is a world with a scheduler and kubelets, for a Job that is watched second by
// second.
type simulation struct {
	*world
	behaves map[string]behaviour
	// room is how many Pods the nodes hold.
	room int
	// held Pods do not go when they are deleted.
	held map[string]bool
	// cordoned nodes take no Pods.
	cordoned bool
	// asleep says that no controller runs.
	asleep bool
}

// given is a Job and what its Pods do.
func given(t *testing.T, job *batchv1alpha1.Job, behaves map[string]behaviour) *simulation {
	t.Helper()
	s := &simulation{world: newWorld(t, job), behaves: behaves, room: 100}
	s.pendingGoAtOnce = true
	return s
}

// after lets a number of seconds pass.
func (s *simulation) after(seconds int) *simulation {
	s.t.Helper()
	s.settle()
	for range seconds {
		s.now = s.now.Add(time.Second)
		s.settle()
	}
	return s
}

// until lets time pass until the Job is in a phase.
func (s *simulation) until(phase batchv1alpha1.JobPhase) *simulation {
	s.t.Helper()
	for range 120 {
		s.settle()
		if s.phase() == phase {
			return s
		}
		s.now = s.now.Add(time.Second)
	}
	s.t.Fatalf("the Job has not become %s, but %v: %+v", phase, s.phases, s.written.State)
	return s
}

// settle lets controller, scheduler and kubelets do what they can at this time.
func (s *simulation) settle() {
	s.t.Helper()
	for range 20 {
		before := s.rv
		if !s.asleep {
			s.run()
		}
		s.schedule()
		s.runPods()
		if s.job.DeletionTimestamp != nil {
			s.collect()
		}
		if s.rv == before {
			return
		}
	}
}

// collect is the garbage collector.
func (s *simulation) collect() {
	for key := range s.objects {
		s.remove(key.Kind, key.Name)
	}
	s.deleted = true
	s.cache.gone = true
}

// schedule binds gangs as a whole, and what is above their minimum as far as it fits.
func (s *simulation) schedule() {
	groups := map[string][]*corev1.Pod{}
	used := map[string]int{}
	taken := 0
	for _, name := range s.names(KindPod) {
		pod := s.pod(name)
		group := pod.Labels[schedulingv1alpha1.LabelPodGroup]
		ended := pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
		b := s.behaves[pod.Labels[batchv1alpha1.KeyTaskName]]
		switch {
		case pod.Spec.NodeName != "" && !ended:
			taken++
			used[group]++
		case pod.Status.Phase == corev1.PodSucceeded:
			used[group]++
		case pod.Spec.NodeName == "" && pod.DeletionTimestamp == nil && !b.large && !b.gated:
			groups[group] = append(groups[group], pod)
		}
	}
	for _, name := range s.names(KindPodGroup) {
		group := s.objects[ObjectKey{KindPodGroup, name}].(*schedulingv1alpha1.PodGroup)
		waiting := groups[name]
		if s.cordoned || len(waiting) == 0 && used[name] >= int(group.Spec.MinMember) {
			s.judge(group, used[name])
			continue
		}
		fits := min(len(waiting), s.room-taken)
		if used[name]+fits >= int(group.Spec.MinMember) {
			for _, pod := range waiting[:fits] {
				pod.Spec.NodeName = "node-1"
				s.store(KindPod, pod)
				taken++
				used[name]++
			}
		}
		s.judge(group, used[name])
	}
}

// judge says in the PodGroup whether it is placed.
func (s *simulation) judge(group *schedulingv1alpha1.PodGroup, placed int) {
	status := metav1.ConditionFalse
	if placed < int(group.Spec.MinMember) {
		status = metav1.ConditionTrue
	}
	if len(group.Status.Conditions) > 0 && group.Status.Conditions[0].Status == status {
		return
	}
	group.Status.Conditions = []schedulingv1alpha1.PodGroupCondition{{
		Type: schedulingv1alpha1.ConditionUnschedulable, Status: status,
		Reason: schedulingv1alpha1.ReasonNotEnoughResources, Message: "there is no room",
		LastTransitionTime: metav1.NewTime(s.now.Truncate(time.Second)),
	}}
	s.store(KindPodGroup, group)
}

// runPods starts, ends and removes Pods.
func (s *simulation) runPods() {
	for _, name := range s.names(KindPod) {
		pod := s.pod(name)
		b := s.behaves[pod.Labels[batchv1alpha1.KeyTaskName]]
		switch {
		case pod.DeletionTimestamp != nil && s.held[name]:
		case pod.DeletionTimestamp != nil:
			s.endPod(name)
		case pod.Spec.NodeName == "":
		case pod.Status.Phase == corev1.PodPending:
			now := metav1.NewTime(s.now)
			pod.Status.StartTime = &now
			s.setPhase(name, corev1.PodRunning, 0)
			if b.unready {
				s.pod(name).Status.ContainerStatuses[0].Ready = false
				s.store(KindPod, s.pod(name))
			}
		case pod.Status.Phase == corev1.PodRunning && b.seconds > 0 && !s.now.Before(pod.Status.StartTime.Add(time.Duration(b.seconds)*time.Second)):
			phase := corev1.PodSucceeded
			if b.code != 0 {
				phase = corev1.PodFailed
			}
			s.setPhase(name, phase, b.code)
		}
	}
}

// kill is a user who deletes a Pod.
func (s *simulation) kill(name string) *simulation {
	s.deletePod(name, 30)
	return s.after(1)
}

// issue is a user who issues a Command.
func (s *simulation) issue(action busv1alpha1.Action) *simulation {
	s.command(action)
	return s.after(1)
}

// uidOf is the UID of a Pod, empty if it is not there.
func (s *simulation) uidOf(name string) string {
	if pod := s.pod(name); pod != nil {
		return string(pod.UID)
	}
	return ""
}

const (
	pp  = batchv1alpha1.JobPending
	rr  = batchv1alpha1.JobRunning
	rs  = batchv1alpha1.JobRestarting
	ab  = batchv1alpha1.JobAborting
	abd = batchv1alpha1.JobAborted
	tt  = batchv1alpha1.JobTerminating
	td  = batchv1alpha1.JobTerminated
	cc  = batchv1alpha1.JobCompleting
	cd  = batchv1alpha1.JobCompleted
	ff  = batchv1alpha1.JobFailed
)

// sees checks the phases that a watch has seen.
func (s *simulation) sees(want ...batchv1alpha1.JobPhase) {
	s.t.Helper()
	if diff := cmp.Diff(want, s.phases); diff != "" {
		s.t.Errorf("phases (-want +got):\n%s", diff)
	}
}

// tally is what the numbers of a status have to be.
type tally struct{ s, f, r, p, t, rc int32 }

func (s *simulation) has(want tally) {
	s.t.Helper()
	st := s.written
	got := tally{st.Succeeded, st.Failed, st.Running, st.Pending, st.Terminating, st.RetryCount}
	if got != want {
		s.t.Errorf("counters: got %+v, want %+v", got, want)
	}
}

// hasPods checks which Pods are there.
func (s *simulation) hasPods(want ...string) {
	s.t.Helper()
	if got := s.ownPods(); !slices.Equal(got, want) {
		s.t.Errorf("Pods: got %v, want %v", got, want)
	}
}

// told says whether the user was told something for a reason.
func (s *simulation) told(reason string) bool {
	for _, event := range s.events {
		if event.Reason == reason {
			return true
		}
	}
	return false
}

// job is a Job j of tasks.
func job(tasks ...batchv1alpha1.TaskSpec) *batchv1alpha1.Job {
	return &batchv1alpha1.Job{
		TypeMeta:   metav1.TypeMeta{APIVersion: "batch.volcano.sh/v1alpha1", Kind: "Job"},
		ObjectMeta: metav1.ObjectMeta{Name: "j", Namespace: "ns"},
		Spec:       batchv1alpha1.JobSpec{Tasks: tasks},
	}
}

func ofTask(name string, replicas int32, policies ...batchv1alpha1.LifecyclePolicy) batchv1alpha1.TaskSpec {
	return batchv1alpha1.TaskSpec{
		Name: name, Replicas: replicas, Policies: policies,
		Template: runtime.RawExtension{Raw: []byte(`{"spec":{"restartPolicy":"Never","containers":[{"name":"c","image":"i"}]}}`)},
	}
}

// withSpec changes a Job.
func withSpec(job *batchv1alpha1.Job, change func(*batchv1alpha1.JobSpec)) *batchv1alpha1.Job {
	change(&job.Spec)
	return job
}

func on(event busv1alpha1.Event, action busv1alpha1.Action) batchv1alpha1.LifecyclePolicy {
	return batchv1alpha1.LifecyclePolicy{Event: event, Action: action}
}

func onCode(code int32, action busv1alpha1.Action) batchv1alpha1.LifecyclePolicy {
	return batchv1alpha1.LifecyclePolicy{ExitCode: &code, Action: action}
}

func in(timeout batchv1alpha1.Duration, policy batchv1alpha1.LifecyclePolicy) batchv1alpha1.LifecyclePolicy {
	policy.Timeout = &timeout
	return policy
}
