// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
)

// gangWorld is a world with a gang of two, in which the controller looks at it
// each second.
type gangWorld struct {
	*world
	start time.Time
	// endedAt is when the end of the attempt was written, 0 for not yet.
	endedAt time.Duration
}

// until lets the controller look until a time after the start.
func (g *gangWorld) until(at time.Duration) {
	for ; g.now.Sub(g.start) < at; g.now = g.now.Add(time.Second) {
		g.look()
	}
	g.look()
}

func (g *gangWorld) look() {
	g.run()
	if g.endedAt == 0 && g.written.AttemptStatus.CompletionStatus != nil {
		g.endedAt = g.now.Sub(g.start)
	}
}

// away lets time pass without a controller; the next one knows what was written.
func (g *gangWorld) away(until time.Duration) {
	g.crash()
	g.now = g.start.Add(until)
}

// becomes sets the PodGroup's phase, and its conditions as they go with it.
func (g *gangWorld) becomes(phase schedulingv1alpha1.PodGroupPhase) {
	g.podGroup.Status.Phase = phase
	scheduled, reason := metav1.ConditionFalse, schedulingv1alpha1.ReasonNotEnoughResources
	if phase == schedulingv1alpha1.PodGroupRunning {
		scheduled, reason = metav1.ConditionTrue, schedulingv1alpha1.ReasonScheduled
	}
	g.podGroup.Status.Conditions = []schedulingv1alpha1.PodGroupCondition{
		{Type: schedulingv1alpha1.ConditionScheduled, Status: scheduled, Reason: reason},
	}
	g.podGroupChanged()
	g.run()
}

// losesMembers lets the gang run until a time after the start, and lose members then.
func (g *gangWorld) losesMembers(at time.Duration) {
	g.becomes(schedulingv1alpha1.PodGroupRunning)
	g.until(at)
	g.becomes(schedulingv1alpha1.PodGroupUnknown)
}

// setConditions sets the conditions that the scheduler writes.
func (g *gangWorld) setConditions(scheduled, unschedulable metav1.ConditionStatus) {
	g.podGroup.Status.Conditions = []schedulingv1alpha1.PodGroupCondition{
		{Type: schedulingv1alpha1.ConditionScheduled, Status: scheduled, Reason: schedulingv1alpha1.ReasonScheduled},
		{Type: schedulingv1alpha1.ConditionUnschedulable, Status: unschedulable, Reason: schedulingv1alpha1.ReasonPodDeleted},
	}
	g.podGroupChanged()
	g.run()
}

// remake has somebody delete the PodGroup. The controller makes another.
func (g *gangWorld) remake(t *testing.T) {
	t.Helper()
	old := g.podGroup.UID
	g.podGroup = nil
	g.podGroupChanged()
	g.run()
	if g.podGroup == nil || g.podGroup.UID == old {
		t.Fatal("the PodGroup was not made anew")
	}
}

// TestTheGangOfAFrameworkWithALongNameIsPlaced: a label of at most 63 characters
// names the PodGroup.
func TestTheGangOfAFrameworkWithALongNameIsPlaced(t *testing.T) {
	implied, explicit := role("w", 2), role("w", 2)
	implied.Task.Pod.Raw = []byte(`{"spec":{"schedulerName":"lockstep-scheduler"}}`)
	tests := map[string]struct {
		role frameworkv1.TaskRoleSpec
		gang *frameworkv1.GangSpec
	}{
		"spec.gang":                           {explicit, &frameworkv1.GangSpec{}},
		"a template names the gang scheduler": {implied, nil},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			f := framework(tc.role)
			f.Name, f.Spec.Gang = strings.Repeat("x", validation.DNS1123LabelMaxLength), tc.gang
			w := newWorld(t, f)
			w.run()
			if w.podGroup == nil {
				t.Fatal("there is no PodGroup")
			}
			if problems := validation.IsValidLabelValue(w.podGroup.Name); problems != nil {
				t.Errorf("no label can name the PodGroup %q: %v", w.podGroup.Name, problems)
			}
			if len(w.pods) != 2 {
				t.Errorf("%d Pods, want 2", len(w.pods))
			}
			for _, pod := range w.pods {
				if got := pod.Labels[schedulingv1alpha1.LabelPodGroup]; got != w.podGroup.Name {
					t.Errorf("Pod %s names the group %q, want %q", pod.Name, got, w.podGroup.Name)
				}
			}
			w.runPods()
			w.run()
			if got := w.written.AttemptStatus.PodGroup.Name; got != w.podGroup.Name {
				t.Errorf("the status names the PodGroup %q, want %q", got, w.podGroup.Name)
			}
		})
	}
}

// TestGangTimeouts: scheduleTimeoutSeconds and recoveryTimeoutSeconds are both a
// minute. Whatever happens in between, the attempt ends a minute after the time
// that counts, or not at all.
func TestGangTimeouts(t *testing.T) {
	const (
		pending   = schedulingv1alpha1.PodGroupPending
		running   = schedulingv1alpha1.PodGroupRunning
		completed = schedulingv1alpha1.PodGroupCompleted

		scheduleTimeout = frameworkv1.CodePodGroupScheduleTimeout
		recoveryTimeout = frameworkv1.CodePodGroupRecoveryTimeout
		s               = time.Second
	)
	tests := map[string]struct {
		story   func(t *testing.T, g *gangWorld)
		forever bool // no timeouts are set
		wantEnd time.Duration
		want    frameworkv1.CompletionCode
	}{
		"a gang that is never scheduled": {
			story:   func(*testing.T, *gangWorld) {},
			wantEnd: 60 * s, want: scheduleTimeout,
		},
		"a gang that is never scheduled waits for ever if nothing is set": {
			story:   func(*testing.T, *gangWorld) {},
			forever: true,
		},
		"a restart of the controller does not prolong the wait": {
			story:   func(_ *testing.T, g *gangWorld) { g.until(30 * s); g.crash() },
			wantEnd: 60 * s, want: scheduleTimeout,
		},
		"a wait that ends while the controller is away ends when it is back": {
			story:   func(_ *testing.T, g *gangWorld) { g.until(30 * s); g.away(90 * s) },
			wantEnd: 90 * s, want: scheduleTimeout,
		},
		"a PodGroup made anew does not prolong the wait": {
			story:   func(t *testing.T, g *gangWorld) { g.until(30 * s); g.remake(t) },
			wantEnd: 60 * s, want: scheduleTimeout,
		},
		"a gang that is scheduled in time": {
			story: func(_ *testing.T, g *gangWorld) { g.until(59 * s); g.becomes(running) },
		},
		"a gang that is scheduled, while the controller is away": {
			story: func(_ *testing.T, g *gangWorld) {
				g.until(30 * s)
				g.podGroup.Status.Phase = running
				g.podGroupChanged()
				g.away(90 * s)
			},
		},
		"a gang that lost members": {
			story:   func(_ *testing.T, g *gangWorld) { g.losesMembers(20 * s) },
			wantEnd: 80 * s, want: recoveryTimeout,
		},
		"a gang that lost members before its PodGroup was seen to run": {
			story: func(_ *testing.T, g *gangWorld) {
				g.setConditions(metav1.ConditionTrue, metav1.ConditionFalse)
				g.until(20 * s)
				g.setConditions(metav1.ConditionFalse, metav1.ConditionTrue)
			},
			wantEnd: 80 * s, want: recoveryTimeout,
		},
		"a gang that lost members waits for ever if nothing is set": {
			story:   func(_ *testing.T, g *gangWorld) { g.losesMembers(20 * s) },
			forever: true,
		},
		"a restart of the controller does not prolong the recovery": {
			story: func(_ *testing.T, g *gangWorld) {
				g.losesMembers(20 * s)
				g.until(50 * s)
				g.crash()
			},
			wantEnd: 80 * s, want: recoveryTimeout,
		},
		"a gang that recovers in time": {
			story: func(_ *testing.T, g *gangWorld) {
				g.losesMembers(20 * s)
				g.until(79 * s)
				g.becomes(running)
			},
		},
		"a gang that recovers and is lost again has all the time again": {
			story: func(_ *testing.T, g *gangWorld) {
				g.losesMembers(20 * s)
				g.until(70 * s)
				g.losesMembers(75 * s)
			},
			wantEnd: 135 * s, want: recoveryTimeout,
		},
		"a gang that has lost all members, and is Pending for it": {
			story: func(_ *testing.T, g *gangWorld) {
				g.losesMembers(20 * s)
				g.until(30 * s)
				g.becomes(pending)
			},
			wantEnd: 80 * s, want: recoveryTimeout,
		},
		"a gang that has lost all members, of which Unknown was never seen": {
			story:   func(_ *testing.T, g *gangWorld) { g.becomes(running); g.until(20 * s); g.becomes(pending) },
			wantEnd: 80 * s, want: recoveryTimeout,
		},
		"a gang that lost members, and then its PodGroup": {
			story: func(t *testing.T, g *gangWorld) {
				g.losesMembers(20 * s)
				g.until(40 * s)
				g.remake(t)
				g.becomes(pending)
			},
			wantEnd: 80 * s, want: recoveryTimeout,
		},
		"a gang that runs and loses only its PodGroup": {
			story: func(t *testing.T, g *gangWorld) {
				g.becomes(running)
				g.until(20 * s)
				g.remake(t)
				g.until(21 * s)
				g.becomes(running)
			},
		},
		"a gang whose members have all ended, of which one is retried": {
			story: func(_ *testing.T, g *gangWorld) {
				g.becomes(running)
				g.until(20 * s)
				g.becomes(completed)
				g.becomes(pending)
			},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			f := framework(role("w", 2))
			f.Spec.Gang = &frameworkv1.GangSpec{}
			if !tc.forever {
				f.Spec.Gang.ScheduleTimeoutSeconds, f.Spec.Gang.RecoveryTimeoutSeconds = ptr.To[int32](60), ptr.To[int32](60)
			}
			g := &gangWorld{world: newWorld(t, f)}
			g.start = g.now
			g.run()
			tc.story(t, g)
			g.until(200 * s)
			var code frameworkv1.CompletionCode
			if end := g.written.AttemptStatus.CompletionStatus; end != nil {
				code = end.Code
			}
			if g.endedAt != tc.wantEnd || code != tc.want {
				t.Errorf("the attempt ended after %v with %d, want %v and %d", g.endedAt, code, tc.wantEnd, tc.want)
			}
		})
	}
}
