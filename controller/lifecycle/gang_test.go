// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
)

// gangWorld is a world with a gang, in which the controller looks at it each second.
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

// places puts Pods on a node, where they run. Without names it is all that wait.
func (g *gangWorld) places(tasks ...string) {
	names := g.podNames()
	if len(tasks) > 0 {
		names = nil
		for _, task := range tasks {
			names = append(names, "fw-"+task)
		}
	}
	for _, name := range names {
		if pod := g.pods[name]; pod.Spec.NodeName == "" && pod.DeletionTimestamp == nil {
			pod.Spec.NodeName = "node"
			g.setPhase(name, corev1.PodRunning, 0)
		}
	}
	g.run()
}

// isScheduled sets the PodGroup's conditions as the scheduler does.
func (g *gangWorld) isScheduled(scheduled, unschedulable metav1.ConditionStatus) {
	g.podGroup.Status.Conditions = []schedulingv1alpha1.PodGroupCondition{
		{Type: schedulingv1alpha1.ConditionScheduled, Status: scheduled, Reason: schedulingv1alpha1.ReasonScheduled},
		{Type: schedulingv1alpha1.ConditionUnschedulable, Status: unschedulable, Reason: schedulingv1alpha1.ReasonPodDeleted},
	}
	g.podGroupChanged()
	g.run()
}

// begins has all members placed.
func (g *gangWorld) begins() {
	g.run()
	g.isScheduled(metav1.ConditionTrue, metav1.ConditionFalse)
	g.places()
}

// deletes has somebody delete Pods at a time after the start. They end when ends says so.
func (g *gangWorld) deletes(at time.Duration, tasks ...string) {
	g.until(at)
	for _, task := range tasks {
		g.deletePod("fw-"+task, 30)
	}
	g.run()
}

// ends has Pods that are being deleted go.
func (g *gangWorld) ends(tasks ...string) {
	for _, task := range tasks {
		g.endPod("fw-" + task)
	}
	g.run()
}

// loses has somebody delete Pods at a time after the start, which go at once.
func (g *gangWorld) loses(at time.Duration, tasks ...string) {
	g.deletes(at, tasks...)
	g.ends(tasks...)
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

// noRoom is a quota that is exhausted.
func noRoom(pod *corev1.Pod) error {
	return apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, pod.Name, errors.New("exceeded quota: q"))
}

// gangStory is what happens to a gang of four whose scheduleTimeoutSeconds and
// recoveryTimeoutSeconds are both a minute. Whatever happens in between, the attempt
// ends a minute after the time that counts, or not at all.
type gangStory struct {
	framework func(*frameworkv1.FrameworkSpec)
	story     func(t *testing.T, g *gangWorld)
	wantEnd   time.Duration
	want      frameworkv1.CompletionCode
}

func (s gangStory) check(t *testing.T) {
	f := framework(role("w", 4))
	f.Spec.Gang = &frameworkv1.GangSpec{ScheduleTimeoutSeconds: ptr.To[int32](60), RecoveryTimeoutSeconds: ptr.To[int32](60)}
	f.Spec.TaskRoles[0].Task.RetryPolicy = frameworkv1.RetryPolicySpec{FancyRetryPolicy: true, MaxRetryCount: frameworkv1.UnlimitedRetry}
	f.Spec.TaskRoles[0].Task.PodGracefulDeletionTimeoutSec = nil
	if s.framework != nil {
		s.framework(&f.Spec)
	}
	g := &gangWorld{world: newWorld(t, f)}
	g.start = g.now
	s.story(t, g)
	g.until(15 * time.Minute)
	var code frameworkv1.CompletionCode
	if end := g.written.AttemptStatus.CompletionStatus; end != nil {
		code = end.Code
	}
	if g.endedAt != s.wantEnd || code != s.want {
		t.Errorf("the attempt ended after %v with %d, want %v and %d: %s", g.endedAt, code, s.wantEnd, s.want, transcript(g.written))
	}
}

const (
	running         = schedulingv1alpha1.PodGroupRunning
	scheduleTimeout = frameworkv1.CodePodGroupScheduleTimeout
	recoveryTimeout = frameworkv1.CodePodGroupRecoveryTimeout
	s               = time.Second
)

func withoutTimeouts(spec *frameworkv1.FrameworkSpec) { spec.Gang = &frameworkv1.GangSpec{} }

func TestAGangThatIsNotScheduledInTimeEnds(t *testing.T) {
	nothing := func(*testing.T, *gangWorld) {}
	tests := map[string]gangStory{
		"it is never scheduled":                            {story: nothing, wantEnd: 60 * s, want: scheduleTimeout},
		"it is never scheduled, and nothing is set":        {story: nothing, framework: withoutTimeouts},
		"the clock of the API server is an hour ahead":     {story: func(_ *testing.T, g *gangWorld) { g.skew = time.Hour }, wantEnd: 60 * s, want: scheduleTimeout},
		"the clock of the API server is an hour behind":    {story: func(_ *testing.T, g *gangWorld) { g.skew = -time.Hour }, wantEnd: 60 * s, want: scheduleTimeout},
		"a restart of the controller does not prolong it":  {story: func(_ *testing.T, g *gangWorld) { g.until(30 * s); g.crash() }, wantEnd: 60 * s, want: scheduleTimeout},
		"a restart, and what may wait was not yet written": {story: func(_ *testing.T, g *gangWorld) { g.writeFrom = PersistNow; g.until(30 * s); g.crash() }, wantEnd: 60 * s, want: scheduleTimeout},
		"the controller is away when the time is over":     {story: func(_ *testing.T, g *gangWorld) { g.until(30 * s); g.away(90 * s) }, wantEnd: 90 * s, want: scheduleTimeout},
		"a PodGroup made anew does not prolong it":         {story: func(t *testing.T, g *gangWorld) { g.until(30 * s); g.remake(t) }, wantEnd: 60 * s, want: scheduleTimeout},
		"no Pod can be created":                            {story: func(_ *testing.T, g *gangWorld) { g.refuse = noRoom }, wantEnd: 60 * s, want: scheduleTimeout},
		"it is scheduled in time":                          {story: func(_ *testing.T, g *gangWorld) { g.until(59 * s); g.begins() }},
		"it is scheduled in time, as its phase tells": {story: func(_ *testing.T, g *gangWorld) {
			g.until(59 * s)
			g.podGroup.Status.Phase = running
			g.podGroupChanged()
		}},
		"it runs in time, and its PodGroup does not show that": {story: func(_ *testing.T, g *gangWorld) { g.until(59 * s); g.places() }},
		"some of it runs in time":                              {story: func(_ *testing.T, g *gangWorld) { g.until(59 * s); g.places("w-0") }, wantEnd: 60 * s, want: scheduleTimeout},
		"it is scheduled while the controller is away": {story: func(_ *testing.T, g *gangWorld) {
			g.until(30 * s)
			g.podGroup.Status.Phase = running
			g.podGroupChanged()
			g.away(90 * s)
		}},
		"it was scheduled, and the controller that saw it is gone before what may wait was written": {story: func(_ *testing.T, g *gangWorld) {
			g.until(10 * s)
			g.writeFrom = PersistNow
			g.begins()
			g.crash()
			g.podGroup.Status = schedulingv1alpha1.PodGroupStatus{}
			g.podGroupChanged()
			g.deliverAll()
		}},
	}
	for name, tc := range tests {
		t.Run(name, tc.check)
	}
}

func TestAGangThatDoesNotGetBackWhatItLostEnds(t *testing.T) {
	tests := map[string]gangStory{
		"it loses a member":                     {story: func(_ *testing.T, g *gangWorld) { g.begins(); g.loses(20*s, "w-0") }, wantEnd: 80 * s, want: recoveryTimeout},
		"it loses a member, and nothing is set": {story: func(_ *testing.T, g *gangWorld) { g.begins(); g.loses(20*s, "w-0") }, framework: withoutTimeouts},
		"it loses all members":                  {story: func(_ *testing.T, g *gangWorld) { g.begins(); g.loses(20*s, "w-0", "w-1", "w-2", "w-3") }, wantEnd: 80 * s, want: recoveryTimeout},
		"it loses a member before that has run": {story: func(_ *testing.T, g *gangWorld) {
			g.run()
			g.isScheduled(metav1.ConditionTrue, metav1.ConditionFalse)
			g.places("w-1", "w-2", "w-3")
			g.loses(20*s, "w-0")
		}, wantEnd: 80 * s, want: recoveryTimeout},
		"the scheduler says that it waits": {story: func(_ *testing.T, g *gangWorld) {
			g.begins()
			g.loses(20*s, "w-0")
			g.isScheduled(metav1.ConditionFalse, metav1.ConditionTrue)
		}, wantEnd: 80 * s, want: recoveryTimeout},
		"a member fails, and its replacement finds no place": {story: func(_ *testing.T, g *gangWorld) {
			g.begins()
			g.until(20 * s)
			g.end("w-0", 1)
		}, wantEnd: 80 * s, want: recoveryTimeout},
		"the replacement is refused, as there is no quota": {story: func(_ *testing.T, g *gangWorld) {
			g.begins()
			g.refuse = noRoom
			g.loses(20*s, "w-0")
		}, wantEnd: 80 * s, want: recoveryTimeout},
		"the replacement is refused, and the controller restarts": {story: func(_ *testing.T, g *gangWorld) {
			g.begins()
			g.refuse = noRoom
			g.loses(20*s, "w-0")
			g.until(50 * s)
			g.crash()
		}, wantEnd: 80 * s, want: recoveryTimeout},
		"a restart of the controller does not prolong it": {story: func(_ *testing.T, g *gangWorld) {
			g.begins()
			g.loses(20*s, "w-0")
			g.until(50 * s)
			g.crash()
		}, wantEnd: 80 * s, want: recoveryTimeout},
		"a restart, and what may wait was not yet written": {story: func(_ *testing.T, g *gangWorld) {
			g.begins()
			g.writeFrom = PersistSoon
			g.loses(20*s, "w-0")
			g.until(50 * s)
			g.crash()
		}, wantEnd: 80 * s, want: recoveryTimeout},
		"the controller is away when the time is over": {story: func(_ *testing.T, g *gangWorld) {
			g.begins()
			g.loses(20*s, "w-0")
			g.until(30 * s)
			g.away(90 * s)
		}, wantEnd: 90 * s, want: recoveryTimeout},
		"it loses its PodGroup, too": {story: func(t *testing.T, g *gangWorld) {
			g.begins()
			g.loses(20*s, "w-0")
			g.until(40 * s)
			g.remake(t)
		}, wantEnd: 80 * s, want: recoveryTimeout},
		"it loses another member meanwhile": {story: func(_ *testing.T, g *gangWorld) {
			g.begins()
			g.loses(20*s, "w-0")
			g.loses(50*s, "w-1")
		}, wantEnd: 80 * s, want: recoveryTimeout},
		"it gets the member back, and loses it again": {story: func(_ *testing.T, g *gangWorld) {
			g.begins()
			g.loses(20*s, "w-0")
			g.until(70 * s)
			g.places()
			g.loses(75*s, "w-1")
		}, wantEnd: 135 * s, want: recoveryTimeout},
		"the other members have succeeded": {story: func(_ *testing.T, g *gangWorld) {
			g.begins()
			g.until(20 * s)
			for _, task := range []string{"w-1", "w-2", "w-3"} {
				g.end(task, 0)
			}
			g.loses(30*s, "w-0")
		}, wantEnd: 90 * s, want: recoveryTimeout},
		"it was scaled up without room before": {story: func(_ *testing.T, g *gangWorld) {
			g.begins()
			g.until(10 * s)
			g.framework.Spec.TaskRoles[0].TaskNumber = 30
			g.loses(20*s, "w-0")
		}, wantEnd: 80 * s, want: recoveryTimeout},
		"its role is short of a member": {
			framework: func(spec *frameworkv1.FrameworkSpec) {
				spec.Gang.MinMember, spec.TaskRoles[0].MinMember = ptr.To[int32](1), ptr.To[int32](4)
			},
			story:   func(_ *testing.T, g *gangWorld) { g.begins(); g.loses(20*s, "w-0") },
			wantEnd: 80 * s, want: recoveryTimeout,
		},
		"the removal of the Pod took two minutes before": {story: func(_ *testing.T, g *gangWorld) {
			g.begins()
			g.deletes(20*s, "w-0")
			g.until(140 * s)
			g.ends("w-0")
		}, wantEnd: 200 * s, want: recoveryTimeout},
	}
	for name, tc := range tests {
		t.Run(name, tc.check)
	}
}

// TestAGangThatCouldGoOnDoesNotEnd: it waits for nothing that it had, or for the
// controller.
func TestAGangThatCouldGoOnDoesNotEnd(t *testing.T) {
	scaleTo := func(g *gangWorld, number int32) {
		g.framework.Spec.TaskRoles[0].TaskNumber = number
		g.run()
	}
	tests := map[string]gangStory{
		"nothing happens": {story: func(_ *testing.T, g *gangWorld) { g.begins() }},
		"it gets the member back in time": {story: func(_ *testing.T, g *gangWorld) {
			g.begins()
			g.loses(20*s, "w-0")
			g.until(79 * s)
			g.places()
		}},
		"the member that comes back is placed, and does not yet run": {story: func(_ *testing.T, g *gangWorld) {
			g.begins()
			g.loses(20*s, "w-0")
			g.until(79 * s)
			g.pods["fw-w-0"].Spec.NodeName = "node"
			g.podChanged(g.pods["fw-w-0"])
		}},
		"it loses a member that it does not need": {
			framework: func(spec *frameworkv1.FrameworkSpec) { spec.Gang.MinMember = ptr.To[int32](3) },
			story:     func(_ *testing.T, g *gangWorld) { g.begins(); g.loses(20*s, "w-0") },
		},
		"it is scaled up without room": {story: func(_ *testing.T, g *gangWorld) {
			g.begins()
			g.until(20 * s)
			scaleTo(g, 30)
			g.isScheduled(metav1.ConditionFalse, metav1.ConditionTrue)
			g.podGroup.Status.Phase = schedulingv1alpha1.PodGroupUnknown
			g.podGroupChanged()
		}},
		"it is scaled up without room, and a Pod that waits is deleted": {story: func(_ *testing.T, g *gangWorld) {
			g.begins()
			g.until(20 * s)
			scaleTo(g, 30)
			g.loses(40*s, "w-7")
		}},
		"it is scaled up, and the Pods are refused": {story: func(_ *testing.T, g *gangWorld) {
			g.begins()
			g.refuse = noRoom
			g.until(20 * s)
			scaleTo(g, 30)
		}},
		"it is scaled up without room, and gets a lost member back": {story: func(_ *testing.T, g *gangWorld) {
			g.begins()
			g.until(20 * s)
			scaleTo(g, 30)
			g.loses(30*s, "w-0")
			g.until(80 * s)
			g.places("w-0")
		}},
		"the member that it lost is scaled down": {story: func(_ *testing.T, g *gangWorld) {
			g.begins()
			g.loses(20*s, "w-3")
			g.until(60 * s)
			scaleTo(g, 3)
		}},
		"it loses only its PodGroup": {story: func(t *testing.T, g *gangWorld) {
			g.begins()
			g.until(20 * s)
			g.remake(t)
		}},
		"the removal of a Pod takes two minutes": {story: func(_ *testing.T, g *gangWorld) {
			g.begins()
			g.deletes(20*s, "w-0")
			g.until(140 * s)
			g.ends("w-0")
			g.places()
		}},
		"the controller waits longer before it tries a task again": {story: func(t *testing.T, g *gangWorld) {
			g.begins()
			for range 8 { // Delays of 0, 1, 2, 4 … 64 s.
				g.until(g.now.Sub(g.start) + 5*s)
				g.end("w-0", 200)
				for waited := 0; g.pods["fw-w-0"] == nil && waited < 100; waited++ {
					g.until(g.now.Sub(g.start) + s)
				}
				g.places()
			}
			if delay := taskOf(g.written, 0).RetryPolicyStatus.BackoffSec; delay < 64 {
				t.Errorf("the last delay was %d s, want at least a minute", delay)
			}
		}},
		"the ends of many members are held to be written together": {story: func(_ *testing.T, g *gangWorld) {
			g.begins()
			g.until(20 * s)
			g.writeFrom = PersistNow
			g.loses(20*s, "w-0", "w-1")
			g.until(140 * s)
			g.writeFrom = PersistLater
			g.until(141 * s)
			g.places()
		}},
		"a member succeeds": {story: func(_ *testing.T, g *gangWorld) {
			g.begins()
			g.until(20 * s)
			g.end("w-0", 0)
		}},
		"one is back, and another was created and is not yet seen": {story: func(_ *testing.T, g *gangWorld) {
			g.begins()
			g.loses(20*s, "w-0")
			g.deletes(60*s, "w-1")
			g.prompt = false
			g.endPod("fw-w-1")
			g.deliver(podKind, 1)
			g.until(70 * s)
			back := g.pods["fw-w-0"]
			back.Spec.NodeName = "node"
			g.cache.pods["fw-w-0"] = back.DeepCopy()
			g.until(140 * s)
			g.prompt = true
			g.deliverAll()
			g.places()
		}},
		"a Pod is created late": {story: func(_ *testing.T, g *gangWorld) {
			g.begins()
			g.until(20 * s)
			g.fate = func() fate { return refused } // The requests don't get through.
			g.loses(20*s, "w-0")
			g.until(140 * s)
			g.fate = func() fate { return done }
			g.until(141 * s)
			g.places()
		}},
	}
	for name, tc := range tests {
		t.Run(name, tc.check)
	}
}

// TestTheReasonOfAPodGroupIsFitForACondition: the scheduler may be any program, and the
// API server refuses a status with a reason that is no word.
// TestAFrameworkSaysWhenItsGangStarts while the gang waits, and not any more when it is placed.
func TestAFrameworkSaysWhenItsGangStarts(t *testing.T) {
	g := &gangWorld{world: newWorld(t, framework(role("w", 1)))}
	g.framework.Spec.Gang = &frameworkv1.GangSpec{}
	g.run()
	start := &schedulingv1alpha1.ExpectedStart{Probable: metav1.NewTime(g.now.Add(time.Hour))}
	g.podGroup.Status.ExpectedStart = start
	for status, want := range map[metav1.ConditionStatus]*schedulingv1alpha1.ExpectedStart{metav1.ConditionTrue: start, metav1.ConditionFalse: nil} {
		g.podGroup.Status.Conditions = []schedulingv1alpha1.PodGroupCondition{
			{Type: schedulingv1alpha1.ConditionUnschedulable, Status: status, Reason: schedulingv1alpha1.ReasonNotEnoughResources},
		}
		g.podGroupChanged()
		g.run()
		if got := g.written.AttemptStatus.PodGroup.ExpectedStart; (got == nil) != (want == nil) {
			t.Errorf("with Unschedulable=%s it starts at %v, want %v", status, got, want)
		}
	}
}

func TestTheReasonOfAPodGroupIsFitForACondition(t *testing.T) {
	g := &gangWorld{world: newWorld(t, framework(role("w", 1)))}
	g.framework.Spec.Gang = &frameworkv1.GangSpec{}
	g.run()
	g.podGroup.Status.Conditions = []schedulingv1alpha1.PodGroupCondition{
		{Type: schedulingv1alpha1.ConditionUnschedulable, Status: metav1.ConditionTrue, Reason: "no room!"},
	}
	g.podGroupChanged()
	g.run()
	got := meta.FindStatusCondition(g.written.Conditions, frameworkv1.ConditionGangScheduled)
	if got == nil || got.Reason != "noroom" || g.written.AttemptStatus.PodGroup.Unschedulable.Reason != "noroom" {
		t.Errorf("the condition is %+v, want the reason noroom", got)
	}
}

// TestThePodGroupOfAnAttemptThatIsOverDoesNotRun: its last phase was seen while its Pods still ran.
func TestThePodGroupOfAnAttemptThatIsOverDoesNotRun(t *testing.T) {
	g := &gangWorld{world: newWorld(t, framework(role("w", 1)))}
	g.framework.Spec.Gang = &frameworkv1.GangSpec{}
	g.begins()
	g.podGroup.Status.Phase, g.podGroup.Status.Running = schedulingv1alpha1.PodGroupRunning, 1
	g.podGroupChanged()
	g.run()
	g.setPhase("fw-w-0", corev1.PodSucceeded, 0)
	g.settle()
	if group := g.written.AttemptStatus.PodGroup; g.written.State != frameworkv1.FrameworkCompleted || group.Phase != schedulingv1alpha1.PodGroupCompleted || group.Running != 0 {
		t.Errorf("the Framework is %s, and its PodGroup %s with %d that run", g.written.State, group.Phase, group.Running)
	}
}
