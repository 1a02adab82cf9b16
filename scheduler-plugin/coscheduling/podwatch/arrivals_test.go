// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package podwatch

import (
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
)

// makeNamed makes a Pod of the gang that is called like its UID.
func makeNamed(name, node string, phase corev1.PodPhase, of ...metav1.OwnerReference) *corev1.Pod {
	pod := makePod(name, "gang", node, phase)
	pod.Name, pod.OwnerReferences = name, of
	return pod
}

// controlledBy is a reference to a controller.
func controlledBy(apiVersion, kind, uid string) metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: apiVersion, Kind: kind, UID: types.UID(uid), Controller: ptr.To(true)}
}

// attempt has a Pod be one of an attempt of a task of a Framework.
func attempt(pod *corev1.Pod, number int) *corev1.Pod {
	pod.Annotations = map[string]string{frameworkv1.KeyTaskAttemptID: fmt.Sprint(number)}
	return pod
}

// succeeds shows a Pod that runs and then succeeds.
func (s *script) succeeds(name string, of ...metav1.OwnerReference) {
	s.Lives(makeNamed(name, "node", corev1.PodRunning, of...))
	s.LivesNoMore(makeNamed(name, "node", corev1.PodRunning, of...), true)
	s.Ended(makeNamed(name, "node", corev1.PodSucceeded, of...))
	s.diary.entries = nil
}

// askOnce asks about what it is to be asked about at once.
func (s *script) askOnce() {
	s.asking, _ = s.Question(dialect.Key{Namespace: "ns", Name: "gang"})
}

// TestWhoHasSucceededMayHaveGoneBeforeAnotherOneCame: the watch of ended Pods may be behind the one that shows a new
// Pod. That must not be placed as if those were there.
func TestWhoHasSucceededMayHaveGoneBeforeAnotherOneCame(t *testing.T) {
	x, runs := makeNamed("x", "node", corev1.PodSucceeded), makeNamed("x", "node", corev1.PodRunning)
	y, z := makeNamed("y", "", corev1.PodPending), makeNamed("z", "", corev1.PodPending)
	job, other := controlledBy("batch/v1", "Job", "job"), controlledBy("batch/v1", "Job", "other")
	framework := controlledBy("v1", "ConfigMap", "attempt")
	const (
		there   = `x Succeeded in gang on "node"`
		missing = "x missing in gang"
		gone    = "x gone from gang"
		comes   = `y Pending in gang on ""`
		more    = `z Pending in gang on ""`
	)
	tests := map[string]struct {
		life func(*script)
		want []string
	}{
		"it has, as the other watch shows": {
			func(s *script) { s.succeeds("x"); s.Lives(y); s.EndedNoMore(x) },
			[]string{missing, comes, gone}},
		"it has not, as the API server says": {
			func(s *script) { s.succeeds("x"); s.Lives(y); s.askOnce(); s.answer(x) },
			[]string{missing, comes, there}},
		"it has, as the API server says": {
			func(s *script) {
				s.succeeds("x")
				s.Lives(y)
				s.askOnce()
				s.answer()
				s.Ended(x)
				s.EndedNoMore(x)
			},
			[]string{missing, comes, gone}},
		"a third one comes while it is asked": {
			func(s *script) {
				s.succeeds("x")
				s.Lives(y)
				s.askOnce()
				s.Lives(z)
				s.answer(x)
				s.Ended(x)
				s.askOnce()
				s.answer(x)
			},
			[]string{missing, comes, more, missing, there}},
		"a third one comes while it is asked about each Pod alone": {
			func(s *script) {
				s.succeeds("x")
				s.Lives(y)
				s.askOnce()
				about := s.asking.About(func(types.UID) bool { return true })
				s.Answer(about, []*corev1.Pod{x})
				s.Lives(z)
				s.Answer(about, []*corev1.Pod{x})
			},
			[]string{missing, comes, there, missing, more}},
		"a third one comes while it is asked, and it has gone": {
			func(s *script) { s.succeeds("x"); s.Lives(y); s.askOnce(); s.Lives(z); s.answer() },
			[]string{missing, comes, more, gone}},
		"a third one comes later": {
			func(s *script) { s.succeeds("x"); s.Lives(y); s.askOnce(); s.answer(x); s.Lives(z) },
			[]string{missing, comes, there, missing, more}},
		"the other one is shown again": {
			func(s *script) { s.succeeds("x"); s.Lives(y); s.askOnce(); s.answer(x); s.Lives(y) },
			[]string{missing, comes, there, comes}},
		"the other one has a place already": {
			func(s *script) { s.succeeds("x"); s.Lives(makeNamed("y", "node", corev1.PodRunning)) },
			[]string{`y Running in gang on "node"`}},
		"the other one has lost its place, as etcd was restored": {
			func(s *script) { s.Lives(makeNamed("y", "node", corev1.PodRunning)); s.succeeds("x"); s.Lives(y) },
			[]string{missing, comes}},
		"the other one comes from another gang": {
			func(s *script) {
				elsewhere := makePod("y", "other", "", corev1.PodPending)
				elsewhere.Name = "y"
				s.Lives(elsewhere)
				s.succeeds("x")
				s.Lives(y)
			},
			[]string{missing, "y gone from other", comes}},
		"the other one had ended, and etcd was restored": {
			func(s *script) {
				s.succeeds("y")
				s.succeeds("x")
				s.Lives(y)
				s.EndedNoMore(x)
			},
			[]string{missing, comes, gone}},
		"it has failed": {
			func(s *script) { s.Ended(makeNamed("x", "node", corev1.PodFailed)); s.Lives(y) },
			[]string{`x Failed in gang on "node"`, comes}},
		"it runs when the other one comes": {
			func(s *script) { s.Lives(runs); s.Lives(y); s.LivesNoMore(runs, true); s.Ended(x) },
			[]string{`x Running in gang on "node"`, comes, missing, there}},
		"it has left when the other one comes": {
			func(s *script) {
				s.Lives(runs)
				s.LivesNoMore(runs, true)
				s.Lives(y)
				s.Ended(x)
				s.askOnce()
				s.answer(x)
			},
			[]string{`x Running in gang on "node"`, missing, comes, missing, there}},
		"it has left unseen, and the other one came before that": {
			func(s *script) { s.Lives(runs); s.Lives(y); s.LivesNoMore(runs, false); s.Ended(x) },
			[]string{`x Running in gang on "node"`, comes, missing, missing}},
		"it has ended and left unseen, and the other one came before that": {
			func(s *script) { s.Lives(runs); s.Lives(y); s.Ended(x); s.LivesNoMore(runs, false) },
			[]string{`x Running in gang on "node"`, comes, there, missing}},
		"it has ended and left unseen, and nobody came": {
			func(s *script) { s.Lives(runs); s.Ended(x); s.LivesNoMore(runs, false) },
			[]string{`x Running in gang on "node"`, there}},
		"it has come and ended unseen": {
			func(s *script) { s.Lives(y); s.Ended(x); s.askOnce(); s.answer(x) },
			[]string{comes, missing, there}},
		"it had ended before the other one was listed": {
			func(s *script) { s.LivedBefore(y); s.Ended(x); s.Lives(y) },
			[]string{comes, there, comes}},
		"it comes from another gang": {
			func(s *script) {
				s.Lives(y)
				s.Ended(makePod("x", "other", "node", corev1.PodSucceeded))
				s.Ended(x)
			},
			[]string{comes, `x Succeeded in other on "node"`, "x gone from other", missing}},
		"it was deleted outright, they say, and is shown to have ended": {
			func(s *script) {
				s.Lives(y)
				s.Lives(runs)
				s.LivesNoMore(runs, true)
				s.ask()
				s.answer()
				s.Ended(x)
				s.EndedNoMore(x)
			},
			[]string{comes, `x Running in gang on "node"`, missing, gone, missing, gone}},
		"it has ended, as nobody but the API server says": {
			func(s *script) {
				s.Lives(runs)
				s.LivesNoMore(runs, true)
				s.ask()
				s.answer(x)
				s.Lives(y)
				s.Ended(x)
				s.askOnce()
				s.answer(x)
			},
			[]string{`x Running in gang on "node"`, missing, there, missing, comes, missing, there}},
		"its Job makes another Pod": {
			func(s *script) { s.succeeds("x", job); s.Lives(makeNamed("y", "", corev1.PodPending, job)) },
			[]string{comes}},
		"its Job makes two, and it has left before": {
			func(s *script) {
				s.Lives(makeNamed("x", "node", corev1.PodRunning, job))
				s.LivesNoMore(makeNamed("x", "node", corev1.PodRunning, job), true)
				s.Lives(makeNamed("y", "", corev1.PodPending, job))
				s.Lives(makeNamed("z", "", corev1.PodPending, job))
				s.Ended(makeNamed("x", "node", corev1.PodSucceeded, job))
			},
			[]string{`x Running in gang on "node"`, missing, comes, more, there}},
		"another Job makes a Pod": {
			func(s *script) { s.succeeds("x", job); s.Lives(makeNamed("y", "", corev1.PodPending, other)) },
			[]string{missing, comes}},
		"another Job makes a Pod, and its own does when it has left": {
			func(s *script) {
				s.Lives(makeNamed("x", "node", corev1.PodRunning, job))
				s.LivesNoMore(makeNamed("x", "node", corev1.PodRunning, job), true)
				s.Lives(makeNamed("y", "", corev1.PodPending, other))
				s.Lives(makeNamed("z", "", corev1.PodPending, job))
				s.Ended(makeNamed("x", "node", corev1.PodSucceeded, job))
			},
			[]string{`x Running in gang on "node"`, missing, comes, more, missing}},
		"its Framework retries a task": {
			func(s *script) {
				s.succeeds("x", framework)
				s.Lives(attempt(makeNamed("y", "", corev1.PodPending, framework), 1))
			},
			[]string{comes}},
		"its Framework has a new task": {
			func(s *script) {
				s.succeeds("x", framework)
				s.Lives(attempt(makeNamed("y", "", corev1.PodPending, framework), 0))
			},
			[]string{missing, comes}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			d := &diary{}
			tc.life(&script{Join: New(d, ownLinks), diary: d})
			if !slices.Equal(d.entries, tc.want) {
				t.Errorf("the gangs were told\n%q, want\n%q", d.entries, tc.want)
			}
		})
	}
}

// TestItIsAskedSoonWhetherSomebodyWasThereWhenAnotherOneCame: nobody else tells it. More who come do not have it asked
// sooner, nor later.
func TestItIsAskedSoonWhetherSomebodyWasThereWhenAnotherOneCame(t *testing.T) {
	d := &diary{}
	s := &script{Join: New(d, ownLinks), diary: d}
	asks := func(when string, want ...string) {
		t.Helper()
		if !slices.Equal(d.asks, want) {
			t.Errorf("%s it is to be asked %q, want %q", when, d.asks, want)
		}
		d.asks = nil
	}
	x := makeNamed("x", "node", corev1.PodSucceeded)
	s.Lives(makeNamed("first", "", corev1.PodPending))
	asks("beside nobody who has ended")
	s.succeeds("x")
	asks("when somebody has left", "gang later")
	s.Lives(makeNamed("y", "", corev1.PodPending))
	asks("when somebody comes", "gang soon")
	s.Lives(makeNamed("z", "", corev1.PodPending))
	asks("when one more comes")
	if s.askOnce(); len(s.asking.Names()) != 1 {
		t.Fatalf("it is asked about %v, want x at once", s.asking.Names())
	}
	s.Lives(makeNamed("late", "", corev1.PodPending))
	asks("when one comes while it is asked")
	s.answer(x)
	asks("when the answer is too old", "gang soon")
	if s.askOnce(); len(s.asking.Names()) != 1 {
		t.Fatalf("it is asked about %v, want x once more", s.asking.Names())
	}
	s.answer(x)
	asks("when it is answered")
	if _, missing := s.Question(s.asking.Gang); missing {
		t.Error("somebody is missing still")
	}
}

// TestManyWhoComeBesideManyWhoHaveEndedCostWhatTheyAre, and not the one times the other.
func TestManyWhoComeBesideManyWhoHaveEndedCostWhatTheyAre(t *testing.T) {
	const n = 5000
	job := controlledBy("batch/v1", "Job", "job")
	for name, tc := range map[string]struct {
		of   []metav1.OwnerReference
		want int // who are missing
	}{
		"of nobody": {nil, n},
		"of a Job":  {[]metav1.OwnerReference{job}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			d := &diary{}
			s := &script{Join: New(d, ownLinks), diary: d}
			for i := range n {
				s.Ended(makeNamed(fmt.Sprint("ended-", i), "node", corev1.PodSucceeded, tc.of...))
			}
			d.entries, d.asks = nil, nil
			for i := range n {
				s.Lives(makeNamed(fmt.Sprint("new-", i), "", corev1.PodPending, tc.of...))
			}
			if missing := len(d.entries) - n; missing != tc.want {
				t.Errorf("it is told %d times that somebody is missing, want %d", missing, tc.want)
			}
			if asks := len(d.asks); asks != min(1, tc.want) {
				t.Errorf("it is to be asked %d times", asks)
			}
			// What they look through is empty, or one that they spare.
			if c := s.crews[dialect.Key{Namespace: "ns", Name: "gang"}]; len(c.succeeded) > 1 {
				t.Errorf("%d controllers are looked through for each who comes", len(c.succeeded))
			}
		})
	}
}
