// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package volcano

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	batchv1alpha1 "github.com/lockstep-k8s/lockstep/apis/batch/v1alpha1"
	busv1alpha1 "github.com/lockstep-k8s/lockstep/apis/bus/v1alpha1"
	"github.com/lockstep-k8s/lockstep/controller/engine/plan"
)

// TestAJobThatFailsAtOnceIsRestartedLaterAndLater, whatever becomes of its controllers, and one
// that has run for long at once.
func TestAJobThatFailsAtOnceIsRestartedLaterAndLater(t *testing.T) {
	for name, tc := range map[string]struct {
		seconds, code   int
		crashes         bool
		atLeast, atMost int32
	}{
		"a Job that fails at once":                  {seconds: 1, code: 1, atLeast: 8, atMost: 11},
		"the same, while controllers are replaced":  {seconds: 1, code: 1, crashes: true, atLeast: 8, atMost: 11},
		"a Job that fails after more than a minute": {seconds: 65, code: 1, atLeast: 2, atMost: 3},
	} {
		t.Run(name, func(t *testing.T) {
			s := given(t, withSpec(job(ofTask("a", 2, on(busv1alpha1.EventPodFailed, busv1alpha1.ActionRestartJob))), func(s *batchv1alpha1.JobSpec) {
				s.MaxRetry = 1000
			}), map[string]behaviour{"a": {seconds: tc.seconds, code: int32(tc.code)}})
			for range 200 {
				s.after(1)
				if tc.crashes {
					s.crash()
				}
			}
			if n := s.written.RetryCount; n < tc.atLeast || n > tc.atMost {
				t.Errorf("it was restarted %d times in 200 s, want %d to %d times: %+v", n, tc.atLeast, tc.atMost, s.written.State)
			}
		})
	}
}

func TestRunsBeginFartherApartTheMorePodsThereAre(t *testing.T) {
	for restarts, want := range map[int32]time.Duration{0: 0, 1: 0, 2: time.Second, 3: 2 * time.Second, 7: 32 * time.Second, 8: time.Minute, 1 << 30: time.Minute} {
		if got := distance(restarts, 100); got != want {
			t.Errorf("after %d restarts: %s, want %s", restarts, got, want)
		}
	}
	if got := distance(1000, 10_000); got != 50*time.Minute {
		t.Errorf("of 10,000 Pods: %s, want 50m", got)
	}
}

// TestTheRestartOfAPartWaitsForWhatItMakesAnew: one Pod of a large Job that fails again and again
// waits no longer than one of a small Job.
func TestTheRestartOfAPartWaitsForWhatItMakesAnew(t *testing.T) {
	const pods = 800
	for name, tc := range map[string]struct {
		action  busv1alpha1.Action
		fail    []string
		minutes int
	}{
		"a Pod":                       {busv1alpha1.ActionRestartPod, []string{"j-a-0"}, 1},
		"two Pods of different tasks": {busv1alpha1.ActionRestartPod, []string{"j-a-0", "j-b-0"}, 1},
		"a partition":                 {busv1alpha1.ActionRestartPartition, []string{"j-a-0"}, 2},
		"a task":                      {busv1alpha1.ActionRestartTask, []string{"j-b-0"}, 1},
		"a large task":                {busv1alpha1.ActionRestartTask, []string{"j-a-0"}, 4},
		"two tasks":                   {busv1alpha1.ActionRestartTask, []string{"j-a-0", "j-c-0"}, 6},
		"the Job":                     {busv1alpha1.ActionRestartJob, []string{"j-b-0"}, 7},
	} {
		t.Run(name, func(t *testing.T) {
			s := given(t, withSpec(job(ofTask("a", pods), ofTask("b", 200), ofTask("c", 400)), func(s *batchv1alpha1.JobSpec) {
				s.Policies = []batchv1alpha1.LifecyclePolicy{on(busv1alpha1.EventPodFailed, tc.action)}
				s.Tasks[0].PartitionPolicy = &batchv1alpha1.PartitionPolicySpec{TotalPartitions: 2, PartitionSize: pods / 2}
				s.MaxRetry, s.MinAvailable = 1000, 1
			}), nil)
			s.room = 2 * pods
			s.until(rr)
			s.written.RetryCount = 100 // It was restarted often.
			s.crash()
			began := s.now
			for _, name := range tc.fail {
				s.setPhase(name, corev1.PodFailed, 1)
			}
			s.after(1)
			if s.phase() != rs {
				t.Fatalf("the Job is %s", s.phase())
			}
			for s.phase() == rs && s.now.Sub(began) < time.Hour {
				s.now = s.now.Add(20 * time.Second)
				s.settle()
			}
			if got := s.now.Sub(began).Round(time.Minute); got != time.Duration(tc.minutes)*time.Minute {
				t.Errorf("it is restarted after %s, want %d minutes", got, tc.minutes)
			}
		})
	}
}

// TestWhatIsMadeAgainSaysWhatItWas, so that who deletes it again and again waits for it longer and
// longer, and no restart has to wait.
func TestWhatIsMadeAgainSaysWhatItWas(t *testing.T) {
	s := given(t, withSpec(job(ofTask("a", 1)), func(s *batchv1alpha1.JobSpec) {
		s.Plugins = map[string]batchv1alpha1.PluginFlags{"svc": nil, "ssh": nil}
	}), nil)
	made := map[ObjectKey][]string{}
	s.onAction = func(a plan.Action) {
		if a.Verb == plan.Create {
			made[ObjectKey{a.Kind, a.Name}] = append(made[ObjectKey{a.Kind, a.Name}], a.Content)
		}
	}
	s.until(rr)
	for _, key := range []ObjectKey{{KindPod, "j-a-0"}, {KindService, "j"}, {KindConfigMap, "j-svc"}, {KindSecret, "j-ssh"}, {KindNetworkPolicy, "j"}} {
		s.remove(key.Kind, key.Name)
		s.after(2)
		if said := made[key]; len(said) != 2 || said[0] == "" || said[0] != said[1] {
			t.Errorf("%v was made %d times, saying %q", key, len(said), said)
		}
	}
	s.issue(busv1alpha1.ActionRestartJob).after(3)
	if said := made[ObjectKey{KindPod, "j-a-0"}]; len(said) != 3 || said[2] == said[1] {
		t.Errorf("after a restart the Pod says %q", said)
	}
}

// TestTheUserIsToldThatKeysAreLost with a Secret that somebody deletes while Pods run with them.
func TestTheUserIsToldThatKeysAreLost(t *testing.T) {
	for name, flags := range map[string]batchv1alpha1.PluginFlags{"keys of its own": nil, "keys of the user": {"--ssh-private-key=x", "--ssh-public-key=y"}} {
		s := given(t, withSpec(job(ofTask("a", 2)), func(s *batchv1alpha1.JobSpec) {
			s.Plugins = map[string]batchv1alpha1.PluginFlags{"ssh": flags}
		}), nil)
		s.until(rr)
		before := s.told(ReasonPluginError)
		s.remove(KindSecret, "j-ssh")
		s.after(2)
		if told := s.told(ReasonPluginError); before || told != (flags == nil) || len(s.names(KindSecret)) != 1 {
			t.Errorf("%s: told %t and %t, Secrets %v", name, before, told, s.names(KindSecret))
		}
	}
}

// TestEachEditOfAClaimLeavesNothingBehind in the status, where the CRD lets them be edited.
func TestEachEditOfAClaimLeavesNothingBehind(t *testing.T) {
	s := given(t, withSpec(job(ofTask("a", 1)), func(s *batchv1alpha1.JobSpec) {
		s.Volumes = []batchv1alpha1.VolumeSpec{{MountPath: "/a", VolumeClaimName: "c0", VolumeClaim: &runtime.RawExtension{Raw: []byte("{}")}}}
	}), nil)
	s.until(rr)
	entries := len(s.written.ControlledResources)
	for _, claim := range []string{"c1", "c2", "c3"} {
		s.edit(func(j *batchv1alpha1.Job) {
			j.Spec.Volumes = []batchv1alpha1.VolumeSpec{{MountPath: "/a", VolumeClaimName: claim, VolumeClaim: &runtime.RawExtension{Raw: []byte("{}")}}}
		})
		s.after(2)
		if !s.told(ReasonSpecChanged) {
			t.Errorf("the user is told nothing of the change to %s", claim)
		}
	}
	if got := s.written.ControlledResources; len(got) != entries || got[claimPrefix+"c0"] != "c0" || len(s.names(KindClaim)) != 1 {
		t.Errorf("controlledResources %v, claims %v", got, s.names(KindClaim))
	}
}
