// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package whatif

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/answers"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
)

// timed is a gang of one Pod that asks for a CPU and runs for a time, with a limit of a number of times that.
func timed(s *Snapshot, name string, expected time.Duration, limit int, change ...func(*corev1.Pod)) {
	group, pods := gangOf(name, 1, change...)
	group.Spec.Runtime = dialect.Runtime{Expected: expected, Limit: time.Duration(limit) * expected}
	s.Groups, s.Pods = append(s.Groups, group), append(s.Pods, pods...)
}

func runsSince(ago time.Duration, name string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		on(name)(pod)
		pod.Spec.TerminationGracePeriodSeconds = new(int64)
		pod.Status.StartTime = &metav1.Time{Time: noon.Add(-ago)}
	}
}

func all(dialect.Key) bool { return true }

// starts are the probable and the latest starts of all gangs in the queue, in minutes from noon; "-" is unknown.
func starts(line answers.Queue) map[string]string {
	in := func(at time.Time) string {
		if at.IsZero() {
			return "-"
		}
		return at.Sub(noon).Truncate(time.Minute).String()
	}
	told := make(map[string]string)
	for _, g := range line.Gangs {
		if told[g.Name] = "nothing"; g.ExpectedStart != nil {
			told[g.Name] = in(g.ExpectedStart.Probable) + " " + in(g.ExpectedStart.Latest)
		}
	}
	return told
}

func TestTheQueueSaysWhenGangsStart(t *testing.T) {
	s := &Snapshot{Now: noon, Nodes: []*corev1.Node{node("a", "1"), node("b", "1")}}
	timed(s, "runs", time.Hour, 2, runsSince(30*time.Minute, "a"))
	timed(s, "estimated", 3*time.Hour, 0, runsSince(0, "b"))
	timed(s, "first", time.Hour, 2)
	timed(s, "second", time.Hour, 2)
	timed(s, "third", time.Hour, 0)
	timed(s, "fourth", time.Hour, 2)
	for i, group := range s.Groups {
		group.Created = noon.Add(time.Duration(i) * time.Second)
	}
	want := map[string]string{
		"first":  "30m0s 1h30m0s", // when what runs on a has ended
		"second": "1h30m0s 3h31m0s",
		"third":  "2h30m0s 5h32m0s",
		"fourth": "3h0m0s -", // nothing limits the third one, nor what runs on b
	}
	if diff := cmp.Diff(want, starts(Order(s, all))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestTheFirstOfManyEndsIsExpectedBeforeTheirMedians: ten gangs run for up to ten hours, each time with the same chance.
func TestTheFirstOfManyEndsIsExpectedBeforeTheirMedians(t *testing.T) {
	s := &Snapshot{Now: noon}
	for i := range 10 {
		name := fmt.Sprint("node-", i)
		s.Nodes = append(s.Nodes, node(name, "1"))
		timed(s, fmt.Sprint("runs-", i), 10*time.Hour, 0, runsSince(0, name))
	}
	timed(s, "waits", 10*time.Hour, 0)
	s.Runs = func(group *dialect.Group, _ time.Duration, part float64) time.Duration {
		return time.Duration(part * float64(group.Spec.Runtime.Expected))
	}
	waits := s.Groups[len(s.Groups)-1].Key
	if in := ExpectedStarts(s, nil)[waits].Probable.Sub(noon); in <= 0 || in > 2*time.Hour {
		t.Errorf("the gang is expected to start in %s, want that within two hours: the median of each end is in five", in)
	}
}

func TestOfManyGangsTheFirstOnesKnowWhenTheyStart(t *testing.T) {
	s := &Snapshot{Now: noon, Nodes: []*corev1.Node{node("a", "1")}}
	timed(s, "runs", time.Hour, 2, runsSince(0, "a"))
	for i := range maxExpected + 1 {
		timed(s, "g"+strings.Repeat("i", i), time.Minute, 2)
	}
	known := 0
	for _, told := range starts(Order(s, all)) {
		if told != "nothing" {
			known++
		}
	}
	if known != maxExpected {
		t.Errorf("%d gangs know when they start, want %d", known, maxExpected)
	}
}

func TestNobodyIsToldAStartWhoMayNotReadAllPods(t *testing.T) {
	s := &Snapshot{Now: noon, Nodes: []*corev1.Node{node("a", "1")}, SomePods: true}
	timed(s, "waits", time.Hour, 2)
	if got := starts(Order(s, all))["waits"]; got != "nothing" {
		t.Errorf("it starts at %s", got)
	}
}

func TestWhySaysWhenAGangStartsAndWhatItWaitsFor(t *testing.T) {
	s := &Snapshot{Now: noon, Nodes: []*corev1.Node{node("a", "1")}}
	timed(s, "other/runs", time.Hour, 2, runsSince(30*time.Minute, "a"))
	timed(s, "waits", time.Hour, 0)
	why := Why(s, key("waits"))
	for _, want := range []string{
		"expected to start by 13:30 UTC at the latest, if running work uses all of its limits; probably by 12:30 UTC",
		"waits for the end of other/runs",
	} {
		if !slices.Contains(why.Evidence, want) {
			t.Errorf("the evidence is %q, want %q in it", why.Evidence, want)
		}
	}
	hidden := Order(s, func(key dialect.Key) bool { return key.Namespace == "team" }).Gangs[0].ExpectedStart
	if len(hidden.Awaits) > 0 || hidden.MoreAwaited != 1 {
		t.Errorf("who may not read the gang is told %+v of it", hidden)
	}
}

// TestWhatTheSchedulerSaysOfAStartCounts, as it knows which nodes it has reserved, until that time has passed.
func TestWhatTheSchedulerSaysOfAStartCounts(t *testing.T) {
	for in, want := range map[time.Duration]string{2 * time.Hour: "2h0m0s -", -time.Hour: "1h0m0s 2h0m0s"} {
		s := &Snapshot{Now: noon, Nodes: []*corev1.Node{node("a", "1")}}
		timed(s, "runs", time.Hour, 2, runsSince(0, "a"))
		timed(s, "waits", time.Hour, 0)
		s.Groups[1].ExpectedStart = &schedulingv1alpha1.ExpectedStart{Probable: metav1.NewTime(noon.Add(in))}
		if got := starts(Order(s, all))["waits"]; got != want {
			t.Errorf("told a start in %s, the queue says %s, want %s", in, got, want)
		}
	}
}
