// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	schedulertesting "k8s.io/kubernetes/pkg/scheduler/testing"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
)

// bench is a tracker with a clock in the test's hands, and the wake-ups and
// reports that it asked for.
type bench struct {
	*tracker
	time          time.Time
	woken, report map[types.NamespacedName]time.Duration
}

func newBench() *bench {
	b := &bench{
		time:   time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC),
		woken:  map[types.NamespacedName]time.Duration{},
		report: map[types.NamespacedName]time.Duration{},
	}
	b.tracker = newTracker(
		func(name string) bool { return name == testScheduler },
		func() time.Time { return b.time },
		func(key types.NamespacedName, d time.Duration) { b.woken[key] = d },
		func(key types.NamespacedName, d time.Duration) { b.report[key] = d },
	)
	b.setSynced()
	return b
}

var gangName = types.NamespacedName{Namespace: testNamespace, Name: "gang"}

// add makes members known.
func (b *bench) add(pods ...*corev1.Pod) {
	for _, pod := range pods {
		b.setPod(pod)
	}
}

// somethingHappens is an event that may help any gang.
func (b *bench) somethingHappens() {
	b.happened(fwk.ClusterEvent{Resource: fwk.StorageClass, ActionType: fwk.Add}, nil, nil)
}

func onNode(node string) podOption {
	return func(w *schedulertesting.PodWrapper) { w.Node(node) }
}

func inPhase(phase corev1.PodPhase) podOption {
	return func(w *schedulertesting.PodWrapper) { w.Phase(phase) }
}

// TestBackstopWakesOnlyTheIdle has the backstop come by at all moments of a gang's
// life, which begins with a cycle that finds no place.
func TestBackstopWakesOnlyTheIdle(t *testing.T) {
	b := newBench()
	b.setGroup(makeGroup("gang", 1))
	pod := makePod("gang-0", inGroup("gang"))
	b.add(pod)
	wakes := func() bool {
		clear(b.woken)
		b.idle(idleAfter)
		return len(b.woken) > 0
	}
	if view, turn := b.next(pod); turn != turnPlan {
		t.Fatalf("turn of %s: got %v, want to plan", view.key, turn)
	}
	if wakes() {
		t.Error("wakes a gang that is being planned for the first time")
	}
	b.fail(gangName, makeGroup("gang", 1).UID, shortfall{message: "no room"}, time.Second, time.Minute)
	if wakes() {
		t.Error("wakes a gang that was just planned")
	}
	b.time = b.time.Add(idleAfter)
	if wakes() {
		t.Error("wakes a gang before it has been idle for so long after its back-off")
	}
	b.time = b.time.Add(2 * time.Second)
	if !wakes() {
		t.Error("does not wake a gang that was not planned for long")
	}
}

func TestGate(t *testing.T) {
	member := func(name string, options ...podOption) *corev1.Pod {
		return makePod(name, append([]podOption{inGroup("gang")}, options...)...)
	}
	tests := map[string]struct {
		group *schedulingv1alpha1.PodGroup
		pods  []*corev1.Pod
		asks  *corev1.Pod
		want  string // why it is kept out; empty if it is not
	}{
		"an ordinary Pod enters": {
			asks: makePod("ordinary"),
		},
		"a member of a group that nobody has seen waits": {
			pods: []*corev1.Pod{member("a")},
			asks: member("a"),
			want: "waiting for PodGroup ns/gang",
		},
		"a member that only the scheduler has seen waits": {
			group: makeGroup("gang", 1),
			asks:  member("a"),
			want:  "waiting to be seen as a member of its PodGroup",
		},
		"a member of an incomplete gang waits": {
			group: makeGroup("gang", 2),
			pods:  []*corev1.Pod{member("a")},
			asks:  member("a"),
			want:  "waiting for members of PodGroup ns/gang: 1 of at least 2 members exist",
		},
		"the leader of a complete gang enters": {
			group: makeGroup("gang", 2),
			pods:  []*corev1.Pod{member("b"), member("a")},
			asks:  member("a"),
		},
		"its siblings do not": {
			group: makeGroup("gang", 2),
			pods:  []*corev1.Pod{member("b"), member("a")},
			asks:  member("b"),
			want:  "represented by a in PodGroup ns/gang",
		},
		"a member of higher priority leads": {
			group: makeGroup("gang", 2),
			pods:  []*corev1.Pod{member("a"), member("b", func(w *schedulertesting.PodWrapper) { w.Priority(7) })},
			asks:  member("b"),
		},
		"placed and succeeded members make a gang complete": {
			group: makeGroup("gang", 3),
			pods:  []*corev1.Pod{member("a", onNode("n")), member("b", onNode("n"), inPhase(corev1.PodSucceeded)), member("c")},
			asks:  member("c"),
		},
		"failed members and those being deleted do not": {
			group: makeGroup("gang", 3),
			pods: []*corev1.Pod{member("a", onNode("n"), inPhase(corev1.PodFailed)), member("c"),
				member("b", func(w *schedulertesting.PodWrapper) { w.Terminating() })},
			asks: member("c"),
			want: "waiting for members of PodGroup ns/gang: 1 of at least 3 members exist",
		},
		"members of other schedulers and gated ones do not": {
			group: makeGroup("gang", 2),
			pods: []*corev1.Pod{member("c"),
				member("a", func(w *schedulertesting.PodWrapper) { w.SchedulerName("other") }),
				member("b", func(w *schedulertesting.PodWrapper) { w.SchedulingGates([]string{"g"}) })},
			asks: member("c"),
			want: "waiting for members of PodGroup ns/gang: 1 of at least 2 members exist",
		},
		"a group of the same name in another namespace is another group": {
			group: makeGroup("gang", 2),
			pods:  []*corev1.Pod{member("a"), member("b", func(w *schedulertesting.PodWrapper) { w.Namespace("elsewhere") })},
			asks:  member("a"),
			want:  "waiting for members of PodGroup ns/gang: 1 of at least 2 members exist",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			b := newBench()
			if tc.group != nil {
				b.setGroup(tc.group)
			}
			b.add(tc.pods...)
			got, ok := b.gate(tc.asks)
			if got != tc.want || ok != (tc.want == "") {
				t.Errorf("gate: %q, %v; want %q", got, ok, tc.want)
			}
		})
	}
}

// TestBackoff follows a gang through failures: the wait doubles, room that grows
// starts it over, and nothing is planned before it ends.
func TestBackoff(t *testing.T) {
	b := newBench()
	group := makeGroup("gang", 2)
	b.setGroup(group)
	leader := makePod("a", inGroup("gang"))
	b.add(leader, makePod("b", inGroup("gang")))
	for i, step := range []struct {
		room int
		want time.Duration
	}{
		{0, time.Second}, {0, 2 * time.Second}, {0, 4 * time.Second}, {0, 5 * time.Second}, {0, 5 * time.Second},
		{1, time.Second}, {1, 2 * time.Second},
	} {
		if _, what := b.next(leader); what != turnPlan {
			t.Fatalf("step %d: the gang is not planned", i)
		}
		b.fail(gangName, group.UID, shortfall{message: "no room", room: step.room}, time.Second, 5*time.Second)
		clear(b.woken)
		b.somethingHappens()
		if got := b.woken[gangName]; got != step.want {
			t.Errorf("step %d: an event wakes the gang after %v, want %v", i, got, step.want)
		}
		b.time = b.time.Add(step.want - time.Millisecond)
		if pod := b.due(gangName); pod != nil {
			t.Errorf("step %d: the gang is due before its back-off ends", i)
		}
		b.time = b.time.Add(time.Millisecond)
		if pod := b.due(gangName); pod == nil || pod.Name != leader.Name {
			t.Errorf("step %d: %v is due, want the leader", i, pod)
		}
	}
}

func TestRecreatedGroupInheritsNothing(t *testing.T) {
	b := newBench()
	group := makeGroup("gang", 1)
	b.setGroup(group)
	leader := makePod("a", inGroup("gang"))
	b.add(leader)
	b.fail(gangName, group.UID, shortfall{message: "no room"}, time.Hour, time.Hour)
	b.wrote(gangName, group.UID, verdict{reason: schedulingv1alpha1.ReasonNotEnoughResources}.conditions(nil, "id", metav1.Time{}, 1))

	again := makeGroup("gang", 1)
	again.UID = "another"
	b.setGroup(again)
	if reason, ok := b.gate(leader); !ok {
		t.Errorf("the new group's leader is kept out: %s", reason)
	}
	b.fail(gangName, group.UID, shortfall{message: "late news of the old group"}, time.Hour, time.Hour)
	if _, conditions, _ := b.news(gangName); conditions != nil {
		t.Errorf("the new group gets conditions of the old one: %v", conditions)
	}
	if reason, ok := b.gate(leader); !ok {
		t.Errorf("a failure of the old group keeps the new one out: %s", reason)
	}
}

// TestNoRoomIsHeldAboveTheMinimum: a gang with one of two members placed loses its
// right to room when one is enough.
func TestNoRoomIsHeldAboveTheMinimum(t *testing.T) {
	b := newBench()
	group := makeGroup("gang", 2)
	b.setGroup(group)
	b.add(makePod("a", inGroup("gang"), onNode("node-0")), makePod("b", inGroup("gang")))
	b.fail(gangName, group.UID, shortfall{message: "no room", needed: 1}, time.Second, time.Second)
	if !b.waits(gangName, group.UID) {
		t.Error("no room is held for a gang that lacks its minimum")
	}
	lowered := makeGroup("gang", 1)
	lowered.Generation = 2
	b.setGroup(lowered)
	if b.waits(gangName, group.UID) {
		t.Error("room is held for a gang that has its minimum")
	}
}

// assumeAll has the gang's members placed as a cycle does that began just now.
func (b *bench) assumeAll(nodes map[types.UID]string) bool {
	return b.assume(&gangView{key: gangName, group: b.gangs[gangName].group}, nodes)
}

// TestAGangThatChangesWhileItIsPlannedIsNotPlaced, if what was found is too little now.
func TestAGangThatChangesWhileItIsPlannedIsNotPlaced(t *testing.T) {
	tests := map[string]struct {
		change func(*bench)
		want   bool
	}{
		"nothing changes": {change: func(*bench) {}, want: true},
		"a member is gone": {change: func(b *bench) {
			b.deletePod(makePod("a", inGroup("gang")))
		}},
		"a member above the minimum is gone": {change: func(b *bench) {
			b.deletePod(makePod("c", inGroup("gang")))
		}, want: true},
		"the minimum is higher": {change: func(b *bench) {
			higher := makeGroup("gang", 4)
			higher.Generation = 2
			b.setGroup(higher)
		}},
		"the group is another one": {change: func(b *bench) {
			another := makeGroup("gang", 2)
			another.UID = "another"
			b.setGroup(another)
		}},
		"the group is gone": {change: func(b *bench) { b.deleteGroup(makeGroup("gang", 2)) }},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			b := newBench()
			b.setGroup(makeGroup("gang", 2))
			leader := makePod("a", inGroup("gang"))
			b.add(leader, makePod("b", inGroup("gang")), makePod("c", inGroup("gang")))
			view, _ := b.next(leader)
			nodes := map[types.UID]string{"uid-a": "node-0", "uid-b": "node-0"}
			if name == "a member above the minimum is gone" {
				nodes["uid-c"] = "node-0"
			}
			tc.change(b)
			if got := b.assume(&view, nodes); got != tc.want {
				t.Errorf("the gang is placed: %t, want %t", got, tc.want)
			}
			if g := b.gangs[gangName]; g != nil && !tc.want && g.placed.Total > 0 {
				t.Errorf("%d members are placed, want none", g.placed.Total)
			}
		})
	}
}

// TestAHoldOutlastsTheTurnThatMadeIt: it is known only after the turn that the gang has
// found no place, and holds may be pruned before.
func TestAHoldOutlastsTheTurnThatMadeIt(t *testing.T) {
	b := newBench()
	group := makeGroup("gang", 1)
	b.setGroup(group)
	b.add(makePod("a", inGroup("gang")))
	if !b.waits(gangName, group.UID) {
		t.Error("the gang's hold would be pruned in its turn")
	}
}

// TestGangsThatDifferLearnNothingFromEachOther.
func TestGangsThatDifferLearnNothingFromEachOther(t *testing.T) {
	view := func(change func(*gangView)) string {
		v := viewOf(makeGroup("gang", 2), makeMembers("gang", 2))
		change(&v)
		return v.fingerprint()
	}
	same := view(func(*gangView) {})
	for name, change := range map[string]func(*gangView){
		"the minimum of a role": func(v *gangView) { v.group.Spec.MinRoleMember = map[string]int32{"": 1} },
		"the right to preempt":  func(v *gangView) { v.mayPreempt = !v.mayPreempt },
		"the minimum":           func(v *gangView) { v.group.Spec.MinMember = 1 },
	} {
		if view(change) == same {
			t.Errorf("gangs that differ in %s are taken to be alike", name)
		}
	}
}

// TestWitness: a gang like one that found no place is not planned, until an
// event may have helped.
func TestWitness(t *testing.T) {
	b := newBench()
	leaders := map[string]*corev1.Pod{}
	for _, name := range []string{"first", "second"} {
		b.setGroup(makeGroup(name, 2))
		leaders[name] = makePod(name+"-0", inGroup(name))
		b.add(leaders[name], makePod(name+"-1", inGroup(name)))
	}
	w := witnesses{}
	why := shortfall{message: "no room", certain: true}
	failed := func(name string) {
		t.Helper()
		b.awaken(types.NamespacedName{Namespace: testNamespace, Name: name})
		view, what := b.next(leaders[name])
		if what != turnPlan {
			t.Fatalf("%s is not planned", name)
		}
		w.remember(view.fingerprint(), &cycle{view: view, classes: []*class{{monotone: true, labelBlind: true}}}, &why)
		b.fail(view.key, view.group.UID, why, 0, 0)
	}
	recalls := func(name string) bool {
		t.Helper()
		b.awaken(types.NamespacedName{Namespace: testNamespace, Name: name})
		view, _ := b.next(leaders[name])
		return w.recall(b.tracker, view.key, view.fingerprint()) != nil
	}

	if recalls("second") {
		t.Error("there is a witness before anything failed")
	}
	failed("first")
	if recalls("first") {
		t.Error("a gang believes itself and is never planned again")
	}
	if !recalls("second") {
		t.Error("the second gang is planned, though the first, which is like it, has just failed")
	}
	b.somethingHappens()
	if recalls("second") {
		t.Error("the second gang is not planned after an event that may help")
	}
	failed("first")
	b.setGroup(makeGroup("first", 1))
	b.deletePod(leaders["first"])
	if recalls("second") {
		t.Error("a gang that has changed is still believed")
	}
}

func TestConditions(t *testing.T) {
	now := metav1.NewTime(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	earlier := metav1.NewTime(now.Add(-time.Hour))
	waiting := verdict{reason: schedulingv1alpha1.ReasonNotEnoughResources, message: "no room"}.conditions(nil, "first", earlier, 1)
	tests := map[string]struct {
		before     []schedulingv1alpha1.PodGroupCondition
		verdict    verdict
		wantChange change
		wantID     string
		wantTime   metav1.Time
	}{
		"the first conditions": {
			verdict:    verdict{reason: schedulingv1alpha1.ReasonNotEnoughTasks, message: "1 of 2"},
			wantChange: changeAll, wantID: "new", wantTime: now,
		},
		"the same again is nothing to write": {
			before:     waiting,
			verdict:    verdict{reason: schedulingv1alpha1.ReasonNotEnoughResources, message: "no room"},
			wantChange: changeNone, wantID: "first", wantTime: earlier,
		},
		"another message is the same transition": {
			before:     waiting,
			verdict:    verdict{reason: schedulingv1alpha1.ReasonNotEnoughResources, message: "still no room"},
			wantChange: changeMessage, wantID: "first", wantTime: earlier,
		},
		"another reason is the same transition too, but news": {
			before:     waiting,
			verdict:    verdict{reason: schedulingv1alpha1.ReasonNotEnoughTasks, message: "1 of 2"},
			wantChange: changeAll, wantID: "first", wantTime: earlier,
		},
		"another status is a new transition": {
			before:     waiting,
			verdict:    verdict{scheduled: true, reason: schedulingv1alpha1.ReasonScheduled, message: "bound"},
			wantChange: changeAll, wantID: "new", wantTime: now,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := tc.verdict.compare(tc.before); got != tc.wantChange {
				t.Errorf("change %v, want %v", got, tc.wantChange)
			}
			after := tc.verdict.conditions(tc.before, "new", now, 5)
			scheduled := findCondition(after, schedulingv1alpha1.ConditionScheduled)
			unschedulable := findCondition(after, schedulingv1alpha1.ConditionUnschedulable)
			if scheduled.Status == unschedulable.Status {
				t.Errorf("both conditions are %s", scheduled.Status)
			}
			want := schedulingv1alpha1.PodGroupCondition{
				Type: schedulingv1alpha1.ConditionScheduled, Status: scheduled.Status, TransitionID: tc.wantID, ObservedGeneration: 5,
				LastTransitionTime: tc.wantTime, Reason: tc.verdict.reason, Message: tc.verdict.message,
			}
			if diff := cmp.Diff(want, *scheduled); diff != "" {
				t.Errorf("condition (-want, +got):\n%s", diff)
			}
		})
	}
}

// TestMessageIsWrittenAtLeisure: an amount that changes with each Pod that ends
// is not a write each time.
func TestMessageIsWrittenAtLeisure(t *testing.T) {
	b := newBench()
	group := makeGroup("gang", 1)
	b.setGroup(group)
	b.add(makePod("a", inGroup("gang")))
	b.fail(gangName, group.UID, shortfall{message: "short of 5 cpu"}, time.Second, time.Second)
	_, conditions, _ := b.news(gangName)
	b.wrote(gangName, group.UID, conditions)

	b.fail(gangName, group.UID, shortfall{message: "short of 4 cpu"}, time.Second, time.Second)
	b.time = b.time.Add(time.Second)
	if _, conditions, later := b.news(gangName); conditions != nil || later != messageInterval-time.Second {
		t.Errorf("write %v now or again in %v, want nothing before %v", conditions, later, messageInterval-time.Second)
	}
	b.time = b.time.Add(messageInterval)
	if _, conditions, _ := b.news(gangName); len(conditions) == 0 || conditions[0].Message != "short of 4 cpu" {
		t.Errorf("conditions %v, want the new message", conditions)
	}
}

// TestNewGroupLacksNoMembersYet: that a group without members lacks them is told
// only once they should have come.
func TestNewGroupLacksNoMembersYet(t *testing.T) {
	b := newBench()
	group := makeGroup("gang", 2)
	group.CreationTimestamp = metav1.NewTime(b.time)
	b.setGroup(group)
	b.add(makePod("a", inGroup("gang")))
	if _, conditions, later := b.news(gangName); conditions != nil || later != membersGrace {
		t.Errorf("write %v now or again in %v, want nothing before %v", conditions, later, membersGrace)
	}
	b.time = b.time.Add(membersGrace)
	if _, conditions, _ := b.news(gangName); len(conditions) == 0 || conditions[0].Reason != schedulingv1alpha1.ReasonNotEnoughTasks {
		t.Errorf("conditions %v, want the reason %s", conditions, schedulingv1alpha1.ReasonNotEnoughTasks)
	}
}

func TestClassify(t *testing.T) {
	small, role := makePod("small"), makePod("role", inRole("ps"))
	sameAsSmall := makePod("same", func(w *schedulertesting.PodWrapper) { w.Label("task", "7") })
	sameAsSmall.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "INDEX", Value: "7"}}
	large := makePod("large", func(w *schedulertesting.PodWrapper) { w.Req(map[corev1.ResourceName]string{"cpu": "1"}) })
	port := makePod("port", func(w *schedulertesting.PodWrapper) { w.HostPort(80) })
	pods := []*corev1.Pod{small, sameAsSmall, role, large, port}
	var keys []string
	for _, pod := range pods {
		keys = append(keys, classKey(pod))
	}
	classes, err := classify(pods, keys, func(string) framework.Framework { return nil })
	if err != nil {
		t.Fatal(err)
	}
	var got [][]string
	for _, c := range classes {
		var names []string
		for _, pod := range c.members {
			names = append(names, pod.Name)
		}
		got = append(got, names)
	}
	want := [][]string{{"small", "same"}, {"role"}, {"large"}, {"port"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("classes (-want, +got):\n%s", diff)
	}
}
