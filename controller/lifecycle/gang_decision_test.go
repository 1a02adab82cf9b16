// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/utils/ptr"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
)

const gangTemplate = `{"spec":{"schedulerName":"lockstep-scheduler"}}`

// editNow is a user whose change of the spec the controller sees at once.
func (w *world) editNow(change func(*frameworkv1.FrameworkSpec)) {
	w.edit(func(f *frameworkv1.Framework) { change(&f.Spec) })
	w.run()
}

// retryTask lets the Pod of a task fail, and the task be tried again.
func (w *world) retryTask(task string) {
	w.end(task, 1)
	w.runPods()
}

// retryAttempt deletes the ConfigMap, and lets the next attempt run.
func (w *world) retryAttempt() {
	w.deleteConfigMap()
	w.run()
	w.collectGarbage()
	for _, name := range w.podNames() {
		w.endPod(name)
	}
	w.collectGarbage()
	w.run()
	w.runPods()
}

// gangView is what a user sees of an attempt's gang.
type gangView struct {
	// Scheduler and Group are those of the Pod that was made last.
	Scheduler, Group string
	// MinMember is that of the PodGroup, 0 if there is none.
	MinMember int32
	// Condition says whether there is the condition GangScheduled.
	Condition bool
}

func (w *world) gangView(pod string) gangView {
	view := gangView{Condition: meta.FindStatusCondition(w.written.Conditions, frameworkv1.ConditionGangScheduled) != nil}
	if pod := w.pods[pod]; pod != nil {
		view.Scheduler, view.Group = pod.Spec.SchedulerName, pod.Labels[schedulingv1alpha1.LabelPodGroup]
	}
	if w.podGroup != nil {
		view.MinMember = w.podGroup.Spec.MinMember
	}
	return view
}

func TestWhetherAnAttemptIsAGangHoldsUntilItEnds(t *testing.T) {
	const scheduler, group = "lockstep-scheduler", "fw-attempt"
	minMember := func(n int32) *frameworkv1.GangSpec { return &frameworkv1.GangSpec{MinMember: ptr.To(n)} }
	setGang := func(gang *frameworkv1.GangSpec) func(*world) {
		return func(w *world) { w.editNow(func(spec *frameworkv1.FrameworkSpec) { spec.Gang = gang }) }
	}
	setTemplate := func(template string) func(*world) {
		return func(w *world) {
			w.editNow(func(spec *frameworkv1.FrameworkSpec) { spec.TaskRoles[0].Task.Pod.Raw = []byte(template) })
		}
	}
	tests := map[string]struct {
		gang     *frameworkv1.GangSpec
		template string
		change   func(*world)
		// wantNow is the present attempt after a retry of the task w-0, wantNext is
		// the next attempt.
		wantNow, wantNext gangView
	}{
		"spec.gang is set": {
			template: podTemplate, change: setGang(minMember(2)),
			wantNext: gangView{scheduler, group, 2, true},
		},
		"spec.gang is removed": {
			gang: minMember(2), template: podTemplate, change: setGang(nil),
			wantNow: gangView{scheduler, group, 3, true},
		},
		"a minimum changes": {
			gang: minMember(2), template: podTemplate, change: setGang(minMember(1)),
			wantNow: gangView{scheduler, group, 1, true}, wantNext: gangView{scheduler, group, 1, true},
		},
		"a template names the gang scheduler": {
			template: podTemplate, change: setTemplate(gangTemplate),
			wantNow:  gangView{Scheduler: scheduler},
			wantNext: gangView{scheduler, group, 3, true},
		},
		"no template names the gang scheduler any more": {
			template: gangTemplate, change: setTemplate(podTemplate),
			wantNow: gangView{"", group, 3, true},
		},
		"nothing changes": {
			gang: minMember(2), template: podTemplate, change: func(*world) {},
			wantNow: gangView{scheduler, group, 2, true}, wantNext: gangView{scheduler, group, 2, true},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			f := framework(role("w", 3))
			f.Spec.Gang = tc.gang
			f.Spec.RetryPolicy.MaxRetryCount = 1
			f.Spec.TaskRoles[0].Task.Pod.Raw = []byte(tc.template)
			f.Spec.TaskRoles[0].Task.RetryPolicy.MaxRetryCount = 1
			w := newWorld(t, f)
			w.run()
			w.runPods()
			tc.change(w)
			w.retryTask("w-0")
			if diff := cmp.Diff(tc.wantNow, w.gangView("fw-w-0")); diff != "" {
				t.Errorf("the running attempt (-want +got):\n%s", diff)
			}
			if code := w.written.AttemptStatus.CompletionStatus; code != nil {
				t.Errorf("the attempt has ended with %v", code)
			}
			w.retryAttempt()
			if diff := cmp.Diff(tc.wantNext, w.gangView("fw-w-0")); diff != "" {
				t.Errorf("the next attempt (-want +got):\n%s", diff)
			}
		})
	}
}

// TestAFrameworkThatIsNotStartedIsAGangOnlyWhenItStarts: until then the user may
// change everything.
func TestAFrameworkThatIsNotStartedIsAGangOnlyWhenItStarts(t *testing.T) {
	f := framework(role("w", 2))
	f.Spec.ExecutionType = frameworkv1.ExecutionCreate
	f.Spec.Gang = &frameworkv1.GangSpec{}
	w := newWorld(t, f)
	w.run()
	if gang := w.written.AttemptStatus.Gang; gang != nil {
		t.Errorf("decided before the start: %+v", gang)
	}
	w.editNow(func(spec *frameworkv1.FrameworkSpec) { spec.Gang = nil })
	w.editNow(func(spec *frameworkv1.FrameworkSpec) { spec.ExecutionType = frameworkv1.ExecutionStart })
	w.runPods()
	if diff := cmp.Diff(&frameworkv1.AttemptGangStatus{}, w.written.AttemptStatus.Gang); diff != "" {
		t.Errorf("what was decided at the start (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(gangView{}, w.gangView("fw-w-0")); diff != "" {
		t.Errorf("the attempt (-want +got):\n%s", diff)
	}
}

// TestAnAttemptOfAnOlderVersionStaysWhatItIs: it was begun without a decision.
func TestAnAttemptOfAnOlderVersionStaysWhatItIs(t *testing.T) {
	tests := map[string]struct {
		begunAs, spec *frameworkv1.GangSpec
		// podless is an attempt that was made and has no Pods yet.
		podless bool
		// groupUnseen is an attempt whose status does not yet tell of its PodGroup.
		groupUnseen bool
		want        *frameworkv1.AttemptGangStatus
	}{
		"a gang, as the status of its PodGroup tells": {
			begunAs: &frameworkv1.GangSpec{PriorityClassName: "high"},
			want: &frameworkv1.AttemptGangStatus{
				Enabled: true, SchedulerName: "lockstep-scheduler", PriorityClassName: "high",
			},
		},
		"a gang, as its PodGroup tells": {
			begunAs: &frameworkv1.GangSpec{PriorityClassName: "high"}, groupUnseen: true,
			want: &frameworkv1.AttemptGangStatus{
				Enabled: true, SchedulerName: "lockstep-scheduler", PriorityClassName: "high",
			},
		},
		"no gang": {want: &frameworkv1.AttemptGangStatus{}},
		"no gang, as its Pods without a PodGroup tell": {
			spec: &frameworkv1.GangSpec{PriorityClassName: "low"},
			want: &frameworkv1.AttemptGangStatus{},
		},
		"without Pods, the spec tells": {
			podless: true,
			spec:    &frameworkv1.GangSpec{PriorityClassName: "low"},
			want: &frameworkv1.AttemptGangStatus{
				Enabled: true, SchedulerName: "lockstep-scheduler", PriorityClassName: "low",
			},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			f := framework(role("w", 2))
			f.Spec.Gang = tc.begunAs
			w := newWorld(t, f)
			if tc.podless {
				w.refuse = func(pod *corev1.Pod) error { return apierrors.NewTooManyRequests("busy", 1) }
			}
			w.run()
			w.refuse = nil
			if !tc.podless {
				w.runPods()
			}
			older := w.readBack(w.written)
			older.AttemptStatus.Gang = nil
			if tc.groupUnseen {
				older.AttemptStatus.PodGroup = nil
			}
			w.written = older
			w.crash()
			var actions []Action
			w.onAction = func(a Action) { actions = append(actions, a) }
			w.onWrite = func(_, _ *frameworkv1.FrameworkStatus) {
				if len(actions) > 0 {
					t.Errorf("%v before it is written what the attempt is", actions)
				}
				w.onWrite = func(_, _ *frameworkv1.FrameworkStatus) {}
			}
			w.editNow(func(spec *frameworkv1.FrameworkSpec) { spec.Gang = tc.spec })
			if diff := cmp.Diff(tc.want, w.written.AttemptStatus.Gang); diff != "" {
				t.Errorf("what is written (-want +got):\n%s", diff)
			}
		})
	}
}

// TestAGangKeepsTheClassThatItBeganWith, even if somebody deletes its PodGroup.
func TestAGangKeepsTheClassThatItBeganWith(t *testing.T) {
	f := framework(role("w", 2))
	f.Spec.Gang = &frameworkv1.GangSpec{PriorityClassName: "high"}
	f.Spec.RetryPolicy.MaxRetryCount = 1
	g := &gangWorld{world: newWorld(t, f)}
	g.run()
	g.runPods()
	g.editNow(func(spec *frameworkv1.FrameworkSpec) { spec.Gang.PriorityClassName = "low" })
	g.remake(t)
	if got := g.podGroup.Spec.PriorityClassName; got != "high" {
		t.Errorf("the PodGroup that was made anew has the class %q, want high", got)
	}
	g.retryAttempt()
	if got := g.podGroup.Spec.PriorityClassName; got != "low" {
		t.Errorf("the PodGroup of the next attempt has the class %q, want low", got)
	}
}

// TestACompletedFrameworkOfAnOlderVersionKeepsItsCondition: nothing is decided for
// an attempt that is over.
func TestACompletedFrameworkOfAnOlderVersionKeepsItsCondition(t *testing.T) {
	f := framework(role("w", 1))
	f.Spec.Gang = &frameworkv1.GangSpec{}
	w := newWorld(t, f)
	w.run()
	w.setPhase("fw-w-0", corev1.PodRunning, 0)
	w.end("w-0", 0)
	w.collectGarbage()
	w.run()
	w.written = w.readBack(w.written)
	w.written.AttemptStatus.Gang = nil
	w.crash()
	w.editNow(func(spec *frameworkv1.FrameworkSpec) { spec.Description = "done" })
	if w.written.State != frameworkv1.FrameworkCompleted || w.written.AttemptStatus.Gang != nil {
		t.Errorf("%s, gang %+v, want Completed and nothing decided", w.written.State, w.written.AttemptStatus.Gang)
	}
	if !w.gangView("").Condition {
		t.Error("the condition GangScheduled is gone")
	}
}
