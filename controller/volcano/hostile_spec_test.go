// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package volcano

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	batchv1alpha1 "github.com/lockstep-k8s/lockstep/apis/batch/v1alpha1"
	busv1alpha1 "github.com/lockstep-k8s/lockstep/apis/bus/v1alpha1"
)

// TestASpecThatMakesNoSenseIsNotJudged edits a Job that runs, as the CRD of somebody else
// may let users do, and back again.
func TestASpecThatMakesNoSenseIsNotJudged(t *testing.T) {
	for name, edit := range map[string]func(*batchv1alpha1.JobSpec){
		"negative replicas":               func(s *batchv1alpha1.JobSpec) { s.Tasks[0].Replicas = -1 },
		"too many replicas":               func(s *batchv1alpha1.JobSpec) { s.Tasks[1].Replicas = 1 << 30 },
		"too many replicas in front":      func(s *batchv1alpha1.JobSpec) { s.Tasks[0].Replicas = 1 << 30 },
		"minSuccess below 1":              func(s *batchv1alpha1.JobSpec) { s.MinSuccess = ptr.To[int32](-5) },
		"a minimum that nobody can count": func(s *batchv1alpha1.JobSpec) { s.MinAvailable = -1 << 31 },
		"no tasks":                        func(s *batchv1alpha1.JobSpec) { s.Tasks = nil },
		"a task less":                     func(s *batchv1alpha1.JobSpec) { s.Tasks = s.Tasks[:1] },
		"a task renamed":                  func(s *batchv1alpha1.JobSpec) { s.Tasks[0].Name = "z" },
		"the other way round":             func(s *batchv1alpha1.JobSpec) { s.Tasks[0], s.Tasks[1] = s.Tasks[1], s.Tasks[0] },
		"a task more":                     func(s *batchv1alpha1.JobSpec) { s.Tasks = append(s.Tasks, ofTask("c", 1)) },
		"two tasks of one name":           func(s *batchv1alpha1.JobSpec) { s.Tasks[1].Name = "a" },
	} {
		t.Run(name, func(t *testing.T) {
			s := given(t, job(ofTask("a", 2), ofTask("b", 2)), nil)
			s.until(rr)
			s.setPhase("j-a-0", corev1.PodSucceeded, 0)
			s.after(2).has(tally{s: 1, r: 3})
			s.remove(KindPod, "j-a-0")
			before := s.uidOf("j-a-1") + s.uidOf("j-b-0") + s.uidOf("j-b-1")
			good := s.job.Spec
			s.edit(func(j *batchv1alpha1.Job) { j.Spec = *good.DeepCopy(); edit(&j.Spec) })
			s.after(3)
			if isFinal(s.phase()) {
				t.Errorf("it has ended: %+v", s.written.State)
			}
			s.crash()
			s.after(3)
			if s.written.Succeeded != 1 {
				t.Errorf("%d have succeeded, want 1", s.written.Succeeded)
			}
			s.edit(func(j *batchv1alpha1.Job) { j.Spec = good })
			s.until(rr).after(3).has(tally{s: 1, r: 3})
			s.hasPods("j-a-1", "j-b-0", "j-b-1")
			if after := s.uidOf("j-a-1") + s.uidOf("j-b-0") + s.uidOf("j-b-1"); after != before {
				t.Errorf("Pods were %s and are %s", before, after)
			}

			s.edit(func(j *batchv1alpha1.Job) { j.Spec = *good.DeepCopy(); edit(&j.Spec) })
			s.after(1)
			s.issue(busv1alpha1.ActionTerminateJob).until(td).after(3)
			s.hasPods()
		})
	}
}

// TestNoRestartIsTheLastByASpecThatIsNoMeasure edits a Job that has been restarted more often than
// maxRetry is by default, and takes maxRetry away with it.
func TestNoRestartIsTheLastByASpecThatIsNoMeasure(t *testing.T) {
	edits := map[string]func(*batchv1alpha1.JobSpec){
		"a minimum that is too high": func(s *batchv1alpha1.JobSpec) { s.MinAvailable = 9 },
		"a negative maxRetry":        func(s *batchv1alpha1.JobSpec) { s.MaxRetry = -1 },
		"a task renamed":             func(s *batchv1alpha1.JobSpec) { s.Tasks[1].Name = "z" },
		"another template": func(s *batchv1alpha1.JobSpec) {
			s.Tasks[0].Template.Raw = []byte(`{"spec":{"containers":[{"name":"d"}]}}`)
		},
	}
	// Each is begun before the edit and goes on after it.
	restarts := map[string]struct {
		begin, goOn func(*simulation)
		counts      int32 // against maxRetry
	}{
		"the restart of a task": {counts: 1, begin: func(s *simulation) {
			s.deletePod("j-a-0", 30)
			s.run()
		}},
		"a Command to restart it": {counts: 1, goOn: func(s *simulation) { s.issue(busv1alpha1.ActionRestartJob) }},
		"a Command to resume it": {
			begin: func(s *simulation) { s.issue(busv1alpha1.ActionAbortJob).until(abd) },
			goOn:  func(s *simulation) { s.issue(busv1alpha1.ActionResumeJob) },
		},
	}
	for restart, steps := range restarts {
		for edited, edit := range edits {
			t.Run(restart+", "+edited, func(t *testing.T) {
				s := given(t, withSpec(job(ofTask("a", 2, on(busv1alpha1.EventPodEvicted, busv1alpha1.ActionRestartTask)), ofTask("b", 1)), func(s *batchv1alpha1.JobSpec) {
					s.MaxRetry = 100
				}), nil)
				s.until(rr)
				for range 5 {
					s.issue(busv1alpha1.ActionRestartJob).until(rr)
				}
				if steps.begin != nil {
					steps.begin(s)
				}
				good := s.job.Spec
				s.edit(func(j *batchv1alpha1.Job) {
					j.Spec = *good.DeepCopy()
					j.Spec.MaxRetry = 0
					edit(&j.Spec)
				})
				if steps.goOn != nil {
					steps.goOn(s)
				}
				if s.after(60); s.phase() != pp {
					t.Errorf("the Job is %s: %s", s.phase(), s.written.State.Message)
				}
				s.edit(func(j *batchv1alpha1.Job) { j.Spec = good })
				s.after(60).has(tally{r: 3, rc: 5 + steps.counts})
			})
		}
	}
}

// TestAnInvalidJobIsPending holds that a Job whose spec becomes nonsense says so.
func TestAnInvalidJobIsPending(t *testing.T) {
	s := given(t, job(ofTask("a", 2)), nil)
	s.until(rr)
	s.edit(func(j *batchv1alpha1.Job) { j.Spec.Tasks[0].MaxRetry = -1 })
	s.after(2).has(tally{r: 2})
	if state := s.written.State; state.Phase != pp || state.Reason != ReasonInvalidJob || state.Message == "" {
		t.Errorf("state: %+v", state)
	}
	s.edit(func(j *batchv1alpha1.Job) { j.Spec.Tasks[0].MaxRetry = 0 })
	s.until(rr).has(tally{r: 2})
}

// TestWhatTheAPIServerHasNoRoomForIsNotTried has plugins make more of a Job than fits: the user
// is told once, and nothing is built for thousands of Pods.
func TestWhatTheAPIServerHasNoRoomForIsNotTried(t *testing.T) {
	many := func(n int) string {
		var containers []string
		for i := range n {
			containers = append(containers, fmt.Sprintf(`{"name":"c%d","image":"i"}`, i))
		}
		return `{"spec":{"containers":[` + strings.Join(containers, ",") + `]}}`
	}
	for name, tc := range map[string]struct {
		change func(*batchv1alpha1.JobSpec)
		want   string
	}{
		"hosts in the ConfigMap": {func(s *batchv1alpha1.JobSpec) {
			s.Tasks[0].Name, s.Tasks[0].Replicas = strings.Repeat("x", 63), 10_000
			s.Plugins = map[string]batchv1alpha1.PluginFlags{"svc": {"--inject-hosts-env=false"}}
		}, "ConfigMap j-svc would have 1457993 bytes, the API server takes 1048576"},
		"hosts in the Secret": {func(s *batchv1alpha1.JobSpec) {
			s.Tasks[0].Name, s.Tasks[0].Replicas = strings.Repeat("x", 63), 10_000
			s.Plugins = map[string]batchv1alpha1.PluginFlags{"ssh": nil}
		}, "Secret j-ssh would have 1"},
		"TF_CONFIG in each container": {func(s *batchv1alpha1.JobSpec) {
			s.Tasks[0].Name, s.Tasks[0].Replicas = "worker", 1000
			s.Tasks[0].Template.Raw = []byte(many(200))
			s.Plugins = map[string]batchv1alpha1.PluginFlags{"tensorflow": nil}
		}, "a Pod of task worker would have "},
		"paths in each container": {func(s *batchv1alpha1.JobSpec) {
			s.Tasks[0].Template.Raw = []byte(many(1000))
			for i := range 32 {
				s.Volumes = append(s.Volumes, batchv1alpha1.VolumeSpec{MountPath: fmt.Sprintf("/%s%d", strings.Repeat("x", 4000), i), VolumeClaimName: "c"})
			}
		}, "a Pod of task a would have "},
	} {
		t.Run(name, func(t *testing.T) {
			s := given(t, withSpec(job(ofTask("a", 1)), tc.change), nil)
			s.after(2).sees(pp)
			s.hasPods()
			if state := s.written.State; state.Reason != ReasonPluginError || !strings.Contains(state.Message, tc.want) {
				t.Errorf("state: %+v", state)
			}
			if len(s.names(KindConfigMap))+len(s.names(KindSecret)) > 0 {
				t.Error("objects were made")
			}
		})
	}
}

// TestObjectsOfPluginsGoWithAJobWhoseSpecTheyHaveLeft stops a Job whose plugins were taken out of
// the spec, which the CRD of somebody else may allow.
func TestObjectsOfPluginsGoWithAJobWhoseSpecTheyHaveLeft(t *testing.T) {
	for name, edit := range map[string]func(*batchv1alpha1.JobSpec){
		"no plugins":   func(s *batchv1alpha1.JobSpec) { s.Plugins = nil },
		"a bad plugin": func(s *batchv1alpha1.JobSpec) { s.Plugins["foo"] = nil },
	} {
		t.Run(name, func(t *testing.T) {
			s := given(t, withSpec(job(ofTask("head", 1)), func(s *batchv1alpha1.JobSpec) {
				s.Plugins = map[string]batchv1alpha1.PluginFlags{"ssh": nil, "ray": nil}
				s.Volumes = []batchv1alpha1.VolumeSpec{{MountPath: "/out", VolumeClaim: &runtime.RawExtension{Raw: []byte("{}")}}}
			}), nil)
			s.until(rr)
			s.edit(func(j *batchv1alpha1.Job) { edit(&j.Spec) })
			s.issue(busv1alpha1.ActionTerminateJob).until(td).after(2)
			for _, kind := range []string{KindService, KindConfigMap, KindSecret, KindNetworkPolicy} {
				if left := s.names(kind); len(left) > 0 {
					t.Errorf("%s %v is left", kind, left)
				}
			}
			for key := range s.written.ControlledResources {
				if strings.HasPrefix(key, pluginPrefix) {
					t.Errorf("controlledResources has %s", key)
				}
			}
			if claims := s.names(KindClaim); len(claims) != 1 {
				t.Errorf("claims: %v", claims)
			}
		})
	}
}

// TestTheUserIsToldOfNoMoreThanTheFirstProblems gives Jobs as many as fit into a spec. To tell of
// all of them would take minutes.
func TestTheUserIsToldOfNoMoreThanTheFirstProblems(t *testing.T) {
	odd := make([]busv1alpha1.Event, 20_000)
	for i := range odd {
		odd[i] = busv1alpha1.Event(fmt.Sprint("odd", i))
	}
	for name, tc := range map[string]struct {
		change func(*batchv1alpha1.JobSpec)
		most   int
		want   string
	}{
		"events of a policy": {func(s *batchv1alpha1.JobSpec) {
			s.Policies = []batchv1alpha1.LifecyclePolicy{{Action: busv1alpha1.ActionAbortJob, Events: odd}}
		}, 1, "spec.policies[0].events: Too many: 20000: must have at most 8 items"},
		"policies of tasks": {func(s *batchv1alpha1.JobSpec) {
			s.Tasks = nil
			for i := range 100 {
				task := ofTask(fmt.Sprint("t", i), 1)
				for range 16 {
					task.Policies = append(task.Policies, batchv1alpha1.LifecyclePolicy{Action: "Odd", Events: odd[:8]})
				}
				s.Tasks = append(s.Tasks, task)
			}
		}, 1000, "spec.tasks[0].policies[0]: Invalid value: \"Odd\""},
		"dependencies": {func(s *batchv1alpha1.JobSpec) {
			s.Tasks = nil
			for i := range 100 {
				task := ofTask(fmt.Sprint("t", i), 1)
				task.DependsOn = &batchv1alpha1.DependsOn{}
				for j := range 100 {
					task.DependsOn.Name = append(task.DependsOn.Name, fmt.Sprintf("odd%d-%d", i, j))
				}
				s.Tasks = append(s.Tasks, task)
			}
		}, 200, "dependsOn must name other tasks"},
	} {
		t.Run(name, func(t *testing.T) {
			j := withSpec(job(ofTask("a", 1)), tc.change)
			if n := len(Validate(j)); n == 0 || n > tc.most {
				t.Errorf("%d problems were looked for, want at most %d", n, tc.most)
			}
			s := given(t, j, nil)
			s.after(1).sees(pp)
			if state := s.written.State; state.Reason != ReasonInvalidJob || !strings.Contains(state.Message, tc.want) {
				t.Errorf("state: %+v", state)
			}
		})
	}
}

// TestAHostnameThatIsNoneIsRefused before the names of all Pods are made with it.
func TestAHostnameThatIsNoneIsRefused(t *testing.T) {
	for _, key := range []string{"hostname", "subdomain"} {
		s := given(t, withSpec(job(ofTask("a", 10)), func(s *batchv1alpha1.JobSpec) {
			s.Tasks[0].Template.Raw = fmt.Appendf(nil, `{"spec":{"containers":[{"name":"c"}],%q:%q}}`, key, strings.Repeat("x", 64))
			s.Plugins = map[string]batchv1alpha1.PluginFlags{"svc": nil}
		}), nil)
		s.after(1)
		s.hasPods()
		if state := s.written.State; state.Reason != ReasonInvalidJob || !strings.Contains(state.Message, "spec.tasks[0].template: Invalid value: must have a DNS label in spec."+key) {
			t.Errorf("state: %+v", state)
		}
	}
}

// TestSizesAreKnownBeforeAnythingIsRendered holds what is worked out against what is made.
func TestSizesAreKnownBeforeAnythingIsRendered(t *testing.T) {
	const named = `{"spec":{"hostname":"one","subdomain":"two","containers":[{"name":"c"}]}}`
	const below = `{"spec":{"subdomain":"two","containers":[{"name":"c"}]}}`
	for name, template := range map[string]string{"a template": "", "one host for all": named, "a subdomain": below} {
		for _, replicas := range []int32{0, 1, 2, 9, 10, 11, 99, 100, 101, 1234, 9999} {
			j := withSpec(job(ofTask("a", replicas), ofTask("long-name", 1)), func(s *batchv1alpha1.JobSpec) {
				s.Plugins = map[string]batchv1alpha1.PluginFlags{"svc": nil, "ssh": {"--ssh-port=2222"}}
				if template != "" {
					s.Tasks[0].Template.Raw = []byte(template)
				}
			})
			b, err := newBuilder(j, effective(&j.Spec), gangScheduler, nil)
			if err != nil {
				t.Fatal(err)
			}
			for _, p := range b.plugins {
				want, got := 0, 0
				switch p := p.(type) {
				case *svcPlugin:
					got = p.size()
					for key, value := range p.data() {
						want += len(key) + len(value)
					}
				case *sshPlugin:
					want, got = len(p.config()), p.size()
				}
				if got != want {
					t.Errorf("%s with %d replicas, %T: %d bytes, want %d", name, replicas, p, got, want)
				}
			}
		}
	}
}
