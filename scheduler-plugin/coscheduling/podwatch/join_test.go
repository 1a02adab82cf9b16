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

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
)

// diary notes what the gangs are told.
type diary struct {
	entries []string
	asks    []string
	assumed bool
}

func (d *diary) SetPod(gang dialect.Key, pod *corev1.Pod) { d.note(describe(gang, pod)) }
func (d *diary) DeletePod(gang dialect.Key, pod *corev1.Pod) {
	d.note(string(pod.UID) + " gone from " + gang.Name)
}
func (d *diary) IsAssumed(dialect.Key, *corev1.Pod) bool { return d.assumed }
func (d *diary) SetMissing(gang dialect.Key, pod *corev1.Pod) {
	d.note(string(pod.UID) + " missing in " + gang.Name)
}
func (d *diary) Ask(gang dialect.Key, soon bool) {
	when := " later"
	if soon {
		when = " soon"
	}
	d.asks = append(d.asks, gang.Name+when)
}
func (d *diary) note(entry string) { d.entries = append(d.entries, entry) }

// groupOf is the gang that a Pod names, without a name if it names none.
func groupOf(pod *corev1.Pod) dialect.Key {
	group, _ := ownLinks(pod)
	return group
}

// ownLinks read which gang of Lockstep a Pod names.
func ownLinks(pod *corev1.Pod) (dialect.Key, bool) {
	return (*dialect.Links)(nil).KeyOf(pod)
}

func describe(gang dialect.Key, pod *corev1.Pod) string {
	return fmt.Sprintf("%s %s in %s on %q", pod.UID, pod.Status.Phase, gang.Name, pod.Spec.NodeName)
}

func makePod(uid, group, node string, phase corev1.PodPhase) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a", UID: types.UID(uid)}}
	if group != "" {
		pod.Labels = map[string]string{schedulingv1alpha1.LabelPodGroup: group}
	}
	pod.Spec.NodeName, pod.Status.Phase = node, phase
	return pod
}

// script is a life, as the watches show it.
type script struct {
	*Join
	diary  *diary
	asking Question
}

func TestWhatGangsAreToldOfTheirPods(t *testing.T) {
	waits := makePod("a", "gang", "", corev1.PodPending)
	runs := makePod("a", "gang", "node", corev1.PodRunning)
	succeeded := makePod("a", "gang", "node", corev1.PodSucceeded)
	failed := makePod("a", "gang", "", corev1.PodFailed)
	elsewhere := makePod("a", "other", "node", corev1.PodRunning)
	nowhere := makePod("a", "", "node", corev1.PodRunning)
	const (
		isWaiting   = `a Pending in gang on ""`
		isRunning   = `a Running in gang on "node"`
		isSucceeded = `a Succeeded in gang on "node"`
		isGone      = "a gone from gang"
		isMissing   = "a missing in gang"
	)
	tests := map[string]struct {
		life func(*script)
		want []string
	}{
		"it succeeds, as the watch of living Pods says first": {
			func(s *script) { s.Lives(runs); s.LivesNoMore(runs, true); s.Ended(succeeded) },
			[]string{isRunning, isMissing, isSucceeded}},
		"it succeeds, as the watch of ended Pods says first": {
			func(s *script) { s.Lives(runs); s.Ended(succeeded); s.LivesNoMore(runs, true) },
			[]string{isRunning, isSucceeded}},
		"it has succeeded, is gone, and another one has its name, as the watch of ended Pods says late": {
			func(s *script) {
				s.Ended(succeeded)
				s.Lives(makePod("b", "gang", "", corev1.PodPending))
				s.ask()
				s.answer()
				s.Ended(succeeded)
				s.EndedNoMore(succeeded)
			},
			[]string{isSucceeded, isMissing, `b Pending in gang on ""`, isGone}},
		"it has succeeded after another one that had its name, of which the watch of living Pods tells late": {
			func(s *script) {
				s.Ended(succeeded)
				s.Lives(makePod("b", "gang", "", corev1.PodPending))
				s.ask()
				s.answer(succeeded)
			},
			[]string{isSucceeded, isMissing, `b Pending in gang on ""`, isSucceeded}},
		"it has succeeded, and the watch of living Pods is far behind": {
			func(s *script) { s.Ended(succeeded); s.Lives(waits); s.Lives(runs); s.LivesNoMore(runs, true) },
			[]string{isSucceeded}},
		"it has succeeded and is deleted, and the watch of living Pods is behind": {
			func(s *script) {
				s.Lives(waits)
				s.Ended(succeeded)
				s.EndedNoMore(succeeded)
				s.Lives(runs)
				s.LivesNoMore(runs, true)
				s.EndedNoMore(succeeded)
			},
			[]string{isWaiting, isSucceeded, isGone}},
		"it is deleted after it has succeeded": {
			func(s *script) {
				s.Lives(runs)
				s.LivesNoMore(runs, true)
				s.Ended(succeeded)
				s.EndedNoMore(succeeded)
			},
			[]string{isRunning, isMissing, isSucceeded, isGone}},
		"it is deleted outright": {
			func(s *script) { s.Lives(runs); s.LivesNoMore(runs, true); s.ask(); s.answer() },
			[]string{isRunning, isMissing, isGone}},
		"it is deleted outright while somebody asks already": {
			func(s *script) {
				s.Lives(runs)
				s.Lives(makePod("b", "gang", "node", corev1.PodRunning))
				s.LivesNoMore(runs, true)
				s.ask()
				s.LivesNoMore(makePod("b", "gang", "node", corev1.PodRunning), true)
				s.answer()
			},
			[]string{isRunning, `b Running in gang on "node"`, isMissing, "b missing in gang", isGone}},
		"it waits and is deleted": {
			func(s *script) { s.Lives(waits); s.LivesNoMore(waits, true) },
			[]string{isWaiting, isGone}},
		"it was given a node, and is deleted before it is bound": {
			func(s *script) { s.diary.assumed = true; s.Lives(waits); s.LivesNoMore(waits, true) },
			[]string{isWaiting, isGone}},
		"it was given a node, and has gone unseen": {
			func(s *script) {
				s.diary.assumed = true
				s.Lives(waits)
				s.LivesNoMore(waits, false)
				s.ask()
				s.answer(succeeded)
				s.Ended(succeeded)
			},
			[]string{isWaiting, isMissing, isSucceeded, isSucceeded}},
		"it fails before it has a node": {
			func(s *script) { s.Lives(waits); s.LivesNoMore(waits, true); s.Ended(failed); s.EndedNoMore(failed) },
			[]string{isWaiting, isGone, `a Failed in gang on ""`, isGone}},
		"it succeeds, and the watch of ended Pods is broken": {
			func(s *script) {
				s.Lives(runs)
				s.LivesNoMore(runs, true)
				s.ask()
				s.answer(succeeded)
				s.ask()
				s.answer(succeeded)
				s.ask()
				s.answer()
			},
			[]string{isRunning, isMissing, isSucceeded, isSucceeded, isGone}},
		"it is found before the answer comes": {
			func(s *script) { s.Lives(runs); s.LivesNoMore(runs, true); s.ask(); s.Ended(succeeded); s.answer() },
			[]string{isRunning, isMissing, isSucceeded}},
		"it is shown again before the answer comes": {
			func(s *script) {
				s.Lives(runs)
				s.LivesNoMore(runs, false)
				s.ask()
				s.Lives(runs)
				s.LivesNoMore(runs, false)
				s.answer()
			},
			[]string{isRunning, isMissing, isRunning, isMissing}},
		"it is relabelled": {
			func(s *script) { s.Lives(runs); s.Lives(elsewhere); s.Lives(nowhere); s.LivesNoMore(nowhere, true) },
			[]string{isRunning, isGone, `a Running in other on "node"`, "a gone from other"}},
		"it is relabelled after it has succeeded": {
			func(s *script) { s.Ended(succeeded); s.Ended(makePod("a", "other", "node", corev1.PodSucceeded)) },
			[]string{isSucceeded, isGone, `a Succeeded in other on "node"`}},
		"it loses its label as it succeeds, and the watch of living Pods is behind": {
			func(s *script) { s.Ended(succeeded); s.Lives(runs); s.Lives(nowhere); s.EndedNoMore(succeeded) },
			[]string{isSucceeded, isGone}},
		"it is shown to have ended by two watches": {
			func(s *script) {
				s.Ended(succeeded)
				s.Ended(succeeded)
				s.EndedNoMore(succeeded)
				s.EndedNoMore(succeeded)
			},
			[]string{isSucceeded, isSucceeded, isGone}},
		"it is relabelled after it has succeeded, and goes from one watch to another": {
			func(s *script) {
				s.Ended(succeeded)
				s.Ended(makePod("a", "other", "node", corev1.PodSucceeded))
				s.EndedNoMore(succeeded)
			},
			[]string{isSucceeded, isGone, `a Succeeded in other on "node"`}},
		"it has ended, and names no group": {
			func(s *script) {
				s.Ended(makePod("a", "", "node", corev1.PodSucceeded))
				s.EndedNoMore(makePod("a", "", "node", corev1.PodSucceeded))
			}, nil},
		"it has succeeded, and lives again as etcd was restored": {
			func(s *script) {
				s.Lives(runs)
				s.LivesNoMore(runs, true)
				s.Ended(succeeded)
				s.Lives(runs)
				s.EndedNoMore(succeeded)
				s.Lives(runs)
			},
			[]string{isRunning, isMissing, isSucceeded, isRunning, isRunning}},
		"the same, as the watch of ended Pods shows first": {
			func(s *script) {
				s.Lives(runs)
				s.Ended(succeeded)
				s.LivesNoMore(runs, true)
				s.EndedNoMore(succeeded)
				s.Lives(runs)
			},
			[]string{isRunning, isSucceeded, isGone, isRunning}},
		"it lives again, and succeeds again": {
			func(s *script) {
				s.Lives(runs)
				s.LivesNoMore(runs, true)
				s.Ended(succeeded)
				s.Lives(runs)
				s.LivesNoMore(runs, true)
				s.Ended(succeeded)
				s.EndedNoMore(succeeded)
			},
			[]string{isRunning, isMissing, isSucceeded, isRunning, isMissing, isSucceeded, isGone}},
		"it names no group": {
			func(s *script) { s.Lives(nowhere); s.LivesNoMore(nowhere, true) }, nil},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			d := &diary{}
			s := &script{Join: New(d, ownLinks), diary: d}
			tc.life(s)
			if !slices.Equal(d.entries, tc.want) {
				t.Errorf("the gangs were told\n%q, want\n%q", d.entries, tc.want)
			}
		})
	}
}

// TestAPodThatComesToNameAnotherGangLeavesTheOneThatKnowsIt: it names a gang by a rule, and one of a dialect that is
// turned on later. What it is found to name then says nothing of who knows it.
func TestAPodThatComesToNameAnotherGangLeavesTheOneThatKnowsIt(t *testing.T) {
	waits := makePod("a", "", "", corev1.PodPending)
	runs := makePod("a", "", "node", corev1.PodRunning)
	succeeded := makePod("a", "", "node", corev1.PodSucceeded)
	again := func(s *script, pod *corev1.Pod) { s.LivesAgain(func() *corev1.Pod { return pod }) }
	byRule, later := dialect.Key{Namespace: "ns", Name: "gang"}, dialect.Key{Namespace: "ns", Name: "late"}
	const isRunning = `a Running in gang on "node"`
	for name, tc := range map[string]struct {
		before, after func(*script)
		want          []string
		// nothing has it come to name no gang.
		nothing bool
	}{
		"it is shown again": {
			func(s *script) { s.Lives(runs) }, func(s *script) { again(s, runs) },
			[]string{isRunning, "a gone from gang", `a Running in late on "node"`}, false},
		"it is gone before": {
			func(s *script) { s.Lives(waits) }, func(s *script) { s.LivesNoMore(waits, true) },
			[]string{`a Pending in gang on ""`, "a gone from gang"}, false},
		"it is missing, and lives": {
			func(s *script) { s.Lives(runs); s.LivesNoMore(runs, true) }, func(s *script) { s.Lives(runs); s.ask(); s.answer() },
			[]string{isRunning, "a missing in gang", "a gone from gang", `a Running in late on "node"`}, false},
		"it is missing, and gone": {
			func(s *script) { s.Lives(runs) }, func(s *script) { s.LivesNoMore(runs, true); s.ask(); s.answer() },
			[]string{isRunning, "a missing in gang", "a gone from gang"}, false},
		"it has ended": {
			func(s *script) { s.Ended(succeeded) }, func(s *script) { s.Ended(succeeded); s.EndedNoMore(succeeded) },
			[]string{`a Succeeded in gang on "node"`, "a gone from gang", `a Succeeded in late on "node"`, "a gone from late"}, false},
		"it has ended, and is gone before it is shown": {
			func(s *script) { s.Ended(succeeded) }, func(s *script) { s.EndedNoMore(succeeded) },
			[]string{`a Succeeded in gang on "node"`, "a gone from gang"}, false},
		"it names none any more": {
			func(s *script) { s.Lives(runs) }, func(s *script) { again(s, runs); s.LivesNoMore(runs, true) },
			[]string{isRunning, "a gone from gang"}, true},
		"it has ended, and names none any more": {
			func(s *script) { s.Ended(succeeded) }, func(s *script) { s.Ended(succeeded); s.EndedNoMore(succeeded) },
			[]string{`a Succeeded in gang on "node"`, "a gone from gang"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			d, names := &diary{}, byRule
			s := &script{Join: New(d, func(*corev1.Pod) (dialect.Key, bool) { return names, names != dialect.Key{} }), diary: d}
			tc.before(s)
			names = later
			if tc.nothing {
				names = dialect.Key{}
			}
			tc.after(s)
			if !slices.Equal(d.entries, tc.want) {
				t.Errorf("the gangs were told\n%q, want\n%q", d.entries, tc.want)
			}
			for _, gang := range []dialect.Key{byRule, later} {
				if _, missing := s.Question(gang); missing {
					t.Errorf("somebody is missing in %s for ever", gang.Name)
				}
			}
		})
	}
}

func (s *script) ask() {
	for range 2 {
		s.asking, _ = s.Question(dialect.Key{Namespace: "ns", Name: "gang"})
	}
}

func (s *script) answer(ended ...*corev1.Pod) {
	s.Answer(s.asking, ended)
}

// TestWhoIsMissingIsAskedAboutUntilFound: not at once, for the other watch may show the Pod
// in a moment; then as long as it does not, and no longer.
func TestWhoIsMissingIsAskedAboutUntilFound(t *testing.T) {
	gang := dialect.Key{Namespace: "ns", Name: "gang"}
	runs, succeeded := makePod("a", "gang", "node", corev1.PodRunning), makePod("a", "gang", "node", corev1.PodSucceeded)
	j := New(&diary{}, ownLinks)
	question := func(when string, wantAsked, wantMissing bool) Question {
		t.Helper()
		q, missing := j.Question(gang)
		if q.Empty() == wantAsked || missing != wantMissing {
			t.Errorf("%s: there is something to ask: %t, want %t; somebody is missing: %t, want %t", when, !q.Empty(), wantAsked, missing, wantMissing)
		}
		return q
	}
	j.Lives(runs)
	question("while it lives", false, false)
	j.LivesNoMore(runs, true)
	question("when it is not shown any more", false, true)
	q := question("a while later", true, true)
	if !j.Answer(q, []*corev1.Pod{succeeded}) {
		t.Error("nobody is missing, though the watch of ended Pods has not shown the Pod")
	}
	question("when it is known to have ended", true, true)
	j.Ended(succeeded)
	question("when it is shown", false, false)
	if j.Answer(q, nil) {
		t.Error("the answer makes somebody missing who was found")
	}
}
