// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package gangs

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/line"
)

// TestAGangDoesNotCountOnAMemberThatMayBeGone: of a gang of two, one is placed, and then it
// is not known whether it has succeeded or is gone. Another one waits that may have come in
// its place. Alone it must not be placed.
func TestAGangDoesNotCountOnAMemberThatMayBeGone(t *testing.T) {
	member := func(name string, options ...podOption) *corev1.Pod {
		return makePod(name, append([]podOption{inGroup("gang"), inRole("worker")}, options...)...)
	}
	tests := map[string]struct {
		least    int32
		becomes  func(b *bench, lost *corev1.Pod)
		turn     bool // while it is missing
		turnThen bool // when it is known what has become of it
	}{
		"it has succeeded": {2, func(b *bench, _ *corev1.Pod) {
			b.SetPod(member("a", onNode("n"), inPhase(corev1.PodSucceeded)))
		}, false, true},
		"it has failed": {2, func(b *bench, _ *corev1.Pod) { b.SetPod(member("a", onNode("n"), inPhase(corev1.PodFailed))) }, false, false},
		"it is gone":    {2, func(b *bench, lost *corev1.Pod) { b.DeletePod(lost) }, false, false},
		"it lives":      {2, func(b *bench, lost *corev1.Pod) { b.SetPod(lost) }, false, true},
		"nobody can find it out": {2, func(b *bench, _ *corev1.Pod) {
			b.time = b.time.Add(missingPatience)
		}, false, true},
		"the minimum does not depend on it": {1, func(b *bench, lost *corev1.Pod) { b.DeletePod(lost) }, true, true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			b := newBench()
			b.SetGroup(makeGroup("gang", tc.least))
			lost := member("a", onNode("n"))
			b.add(lost)
			if tc.turn {
				b.add(member("c", onNode("n")))
			}
			b.SetMissing(lost)
			b.add(member("b"))
			if b.isNext(gangName) != tc.turn {
				t.Errorf("while it is missing, the gang has a turn: %t", !tc.turn)
			}
			if known, _ := b.Look(gangName); known.Deleted != 0 || known.Failed != 0 || known.Placed.Total == 0 {
				t.Errorf("while it is missing, the gang counts %+v", known)
			}
			tc.becomes(b, lost)
			if b.isNext(gangName) != tc.turnThen {
				t.Errorf("then the gang has a turn: %t", !tc.turnThen)
			}
			if what := miscounted(b.gangs[gangName]); what != "" {
				t.Errorf("the gang %s", what)
			}
		})
	}
}

// TestASchedulerThatBeginsToLeadDoesNotCountOnMembersThatMayBeGone: they have been missing for
// long, and nobody was asked about them.
func TestASchedulerThatBeginsToLeadDoesNotCountOnMembersThatMayBeGone(t *testing.T) {
	b := newBlindBench()
	b.SetGroup(makeGroup("gang", 2))
	lost := makePod("a", inGroup("gang"), onNode("n"))
	b.add(lost)
	b.SetMissing(lost)
	b.add(makePod("b", inGroup("gang")))
	b.time = b.time.Add(time.Hour)
	b.SetSynced()
	if b.isNext(gangName) {
		t.Error("the gang has a turn, and its second member may be placed alone")
	}
	b.SetPod(makePod("a", inGroup("gang"), onNode("n"), inPhase(corev1.PodSucceeded)))
	if !b.isNext(gangName) {
		t.Error("the gang has no turn, though it has its minimum")
	}
}

// TestAMemberThatIsMissedInATurnHasItEndInVain: what was planned rested on it.
func TestAMemberThatIsMissedInATurnHasItEndInVain(t *testing.T) {
	b := newBench()
	b.SetGroup(makeGroup("gang", 2))
	lost, waits := makePod("a", inGroup("gang"), onNode("n")), makePod("b", inGroup("gang"))
	b.add(lost, waits)
	view := b.turn()
	b.SetMissing(lost)
	if b.Assume(&view, map[types.UID]string{waits.UID: "n"}) {
		t.Error("it is placed, though it may be alone")
	}
}

// TestAMemberThatIsMissingWaitsForNoPlace: it was given one and can't be bound, because it
// does not exist any more.
func TestAMemberThatIsMissingWaitsForNoPlace(t *testing.T) {
	b := newBench()
	b.SetGroup(makeGroup("gang", 1))
	pod := makePod("a", inGroup("gang"))
	b.add(pod)
	view := b.turn()
	if !b.Assume(&view, map[types.UID]string{pod.UID: "n"}) || !b.IsAssumed(gangName, pod) {
		t.Fatal("it is not placed")
	}
	b.SetMissing(pod)
	b.Unassume(FailedBinding{Pod: pod, Message: "there is no such Pod"})
	b.time = b.time.Add(time.Hour)
	if b.isNext(gangName) {
		t.Error("it is to be placed again")
	}
	b.SetPod(pod)
	if !b.isNext(gangName) {
		t.Error("it is not to be placed, though it is there")
	}
}

// TestAGangWhoseTurnEndedInDoubtHasAnotherOneWhenThatIsOver: a member is missed in its turn,
// which so ends in vain; then it is shown that the member has succeeded.
func TestAGangWhoseTurnEndedInDoubtHasAnotherOneWhenThatIsOver(t *testing.T) {
	b := newBench()
	b.SetGroup(makeGroup("gang", 2))
	lost, waits := makePod("a", inGroup("gang"), onNode("n")), makePod("b", inGroup("gang"))
	b.add(lost, waits)
	view := b.turn()
	b.SetMissing(lost)
	if b.Assume(&view, map[types.UID]string{waits.UID: "n"}) {
		t.Fatal("it is placed, though it may be alone")
	}
	b.fail(gangName, view.Group.UID, line.Refusal{Unready: true, Message: "changed"}, time.Second, time.Second)
	b.SetPod(makePod("a", inGroup("gang"), onNode("n"), inPhase(corev1.PodSucceeded)))
	b.time = b.time.Add(2 * time.Second)
	if !b.isNext(gangName) {
		t.Error("it has no turn, though nothing stands in its way")
	}
}

// TestAMemberThatIsMissingAfterItsBindingFailedHasNoTurn: the binding fails between the
// question whether it was given a node and the news that it is missing.
func TestAMemberThatIsMissingAfterItsBindingFailedHasNoTurn(t *testing.T) {
	b := newBench()
	b.SetGroup(makeGroup("gang", 1))
	pod := makePod("a", inGroup("gang"))
	b.add(pod)
	view := b.turn()
	if !b.Assume(&view, map[types.UID]string{pod.UID: "n"}) || !b.IsAssumed(gangName, pod) {
		t.Fatal("it is not placed")
	}
	b.Unassume(FailedBinding{Pod: pod, Message: "there is no such Pod"})
	b.SetMissing(pod)
	b.time = b.time.Add(time.Hour)
	if b.isNext(gangName) {
		t.Errorf("it is to have a turn with %d members that wait", len(b.turn().Waiting))
	}
}
