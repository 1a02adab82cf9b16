// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package room

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/provision"
)

// TestWhatBecomesOfTheReservationOfAGangThatStarves: a gang of four members of a core is to go to node a, of four
// cores, where two Pods of a Job are to end first. It is looked at some times after noon,
// and may be without growing for a minute.
func TestWhatBecomesOfTheReservationOfAGangThatStarves(t *testing.T) {
	// A look is at what runs on the node then. With gone it is no more.
	type look struct {
		after   time.Duration
		jobs    int
		others  int // that were not there at noon
		gone    bool
		want    Verdict
		wantEnd time.Duration // after noon
	}
	const minute = time.Minute
	tests := map[string][]look{
		"it stays while the Pods run": {
			{after: 30 * time.Second, jobs: 2, want: Stay, wantEnd: 2 * minute},
		},
		"it is given up when none has ended for its patience": {
			{after: 59 * time.Second, jobs: 2, want: Stay, wantEnd: 2 * minute},
			{after: 60 * time.Second, jobs: 2, want: GiveUp, wantEnd: 2 * minute},
		},
		"it has more time when one has ended": {
			{after: 50 * time.Second, jobs: 1, want: Stay, wantEnd: 50*time.Second + 2*minute},
			{after: 109 * time.Second, jobs: 1, want: Stay, wantEnd: 50*time.Second + 2*minute},
			{after: 110 * time.Second, jobs: 1, want: GiveUp, wantEnd: 50*time.Second + 2*minute},
		},
		"an end that is seen late counts from when it is seen": {
			{after: 90 * time.Second, jobs: 1, want: Stay, wantEnd: 90*time.Second + 2*minute},
		},
		"nobody else may have what they leave, or it moves": {
			{after: 10 * time.Second, jobs: 1, others: 1, want: Move, wantEnd: 10*time.Second + 2*minute},
		},
		"it moves if somebody has its room": {
			{after: 10 * time.Second, jobs: 2, others: 1, want: Move, wantEnd: 2 * minute},
		},
		"it moves when all have ended, as the gang does not fit all the same": {
			{after: 10 * time.Second, want: Move, wantEnd: 10*time.Second + 2*minute},
		},
		"it moves when the node is gone, and has grown": {
			{after: 10 * time.Second, gone: true, want: Move, wantEnd: 10*time.Second + 2*minute},
		},
		"it does not grow by Pods that come back": {
			{after: 50 * time.Second, jobs: 1, want: Stay, wantEnd: 50*time.Second + 2*minute},
			{after: 60 * time.Second, jobs: 2, want: Stay, wantEnd: 50*time.Second + 2*minute},
			{after: 70 * time.Second, jobs: 1, want: Stay, wantEnd: 50*time.Second + 2*minute},
		},
	}
	for name, looks := range tests {
		t.Run(name, func(t *testing.T) {
			jobs := coresOn(t, "a", "job", 2)
			starving := NewStarvation(gang("gang", 0, 0), coresOn(t, "a", "member", 4), infos(jobs), time.Minute, noon)
			for _, look := range looks {
				nodes := cluster{"a": nodeWith("a", amounts{cpu: "4"}, append(jobs[:look.jobs:look.jobs], coresOn(t, "a", "other", look.others)...)...)}
				if look.gone {
					nodes = cluster{}
				}
				var got Verdict
				starving, got = starving.Look(nodes, noon.Add(look.after))
				if got != look.want {
					t.Errorf("after %s the verdict is %d, want %d", look.after, got, look.want)
				}
				if end := starving.End.Sub(noon); end != look.wantEnd {
					t.Errorf("after %s it ends %s after noon, want %s", look.after, end, look.wantEnd)
				}
				if starving.Patience() != time.Minute || starving.End.Sub(starving.PatientUntil()) != time.Minute {
					t.Errorf("after %s it has the patience %s, and ends %s after that", look.after, starving.Patience(), starving.End.Sub(starving.PatientUntil()))
				}
			}
		})
	}
}

// TestAReservationGetsTooOld, though it grows all the time, and moves.
func TestAReservationGetsTooOld(t *testing.T) {
	jobs := coresOn(t, "a", "job", 30)
	starving := NewStarvation(gang("gang", 0, 0), coresOn(t, "a", "member", 30), infos(jobs), time.Minute, noon)
	for second := 30; second <= 600; second += 30 {
		if second == 300 {
			starving = starving.MovedTo(starving.Gang, coresOn(t, "a", "member", 30), infos(jobs))
		}
		jobs = jobs[1:]
		var got Verdict
		starving, got = starving.Look(cluster{"a": nodeWith("a", amounts{cpu: "30"}, jobs...)}, noon.Add(time.Duration(second)*time.Second))
		want := Stay
		if second == 600 {
			want = GiveUp
		}
		if got != want {
			t.Fatalf("after %d s the verdict is %d, want %d", second, got, want)
		}
	}
}

// TestAReservationThatMovesIsNoYounger: it has as little time left as before.
func TestAReservationThatMovesIsNoYounger(t *testing.T) {
	a, b := coresOn(t, "a", "job", 2), coresOn(t, "b", "other", 3)
	there := cluster{"a": nodeWith("a", amounts{cpu: "4"}, a...), "b": nodeWith("b", amounts{cpu: "4"}, b...)}
	first := NewStarvation(gang("gang", 0, 0), coresOn(t, "a", "member", 4), infos(coresOn(t, "a", "job", 3)), time.Minute, noon)
	grown, _ := first.Look(there, noon.Add(10*time.Second))
	higher := gang("gang", 5, 0)
	starving := grown.MovedTo(higher, coresOn(t, "b", "member", 4), infos(b))
	if starving.Gang != higher {
		t.Errorf("it is kept for %v, want %v", starving.Gang, higher)
	}
	if end := starving.End.Sub(noon); end != 130*time.Second {
		t.Errorf("it ends %s after noon, want 2m10s", end)
	}
	if _, verdict := starving.Look(there, noon.Add(69*time.Second)); verdict != Stay {
		t.Errorf("after 69 s the verdict is %d, want that it stays", verdict)
	}
	if _, verdict := starving.Look(there, noon.Add(70*time.Second)); verdict != GiveUp {
		t.Errorf("after 70 s the verdict is %d, want that it is given up", verdict)
	}
	there["b"] = nodeWith("b", amounts{cpu: "4"}, b[:2]...)
	if more, _ := starving.Look(there, noon.Add(69*time.Second)); !more.PatientUntil().After(starving.PatientUntil()) {
		t.Error("it has no more time when a Pod ends where it is now")
	}
}

// TestAReservationDoesNotGrowByWhatEndsElsewhere: Pods that end anyway are awaited too, wherever
// they are.
func TestAReservationDoesNotGrowByWhatEndsElsewhere(t *testing.T) {
	job, elsewhere := coresOn(t, "a", "job", 1)[0], coresOn(t, "b", "other", 1)[0]
	starving := NewStarvation(gang("gang", 0, 0), coresOn(t, "a", "member", 4), infos([]*framework.PodInfo{job, elsewhere}), time.Minute, noon)
	seen, verdict := starving.Look(cluster{"a": nodeWith("a", amounts{cpu: "4"}, job)}, noon.Add(10*time.Second))
	if verdict != Stay || seen.End != starving.End {
		t.Errorf("the verdict is %d, and it ends %s later; want that it stays, and has not grown", verdict, seen.End.Sub(starving.End))
	}
}

// TestALookDoesNotChangeAReservation, as Filter plugins read it meanwhile.
func TestALookDoesNotChangeAReservation(t *testing.T) {
	jobs := coresOn(t, "a", "job", 2)
	starving := NewStarvation(gang("gang", 0, 0), coresOn(t, "a", "member", 4), infos(jobs), time.Minute, noon)
	end := starving.End
	grown, _ := starving.Look(cluster{"a": nodeWith("a", amounts{cpu: "4"}, jobs[0])}, noon.Add(time.Second))
	if grown == starving || starving.End != end {
		t.Errorf("the reservation ends at %s, it ended at %s", starving.End, end)
	}
	same, _ := grown.Look(cluster{"a": nodeWith("a", amounts{cpu: "4"}, jobs[0])}, noon.Add(2*time.Second))
	if same != grown {
		t.Error("a reservation that has not grown is another one")
	}
}

// TestWhatIsReserved: four members of a core are to come to a node of four, where a Pod
// of a Job and one of a service take a core each. The end of the first is awaited.
func TestWhatIsReserved(t *testing.T) {
	members := coresOn(t, "a", "member", 4)
	job, service := coresOn(t, "a", "job", 1)[0], coresOn(t, "a", "service", 1)[0]
	elsewhere := coresOn(t, "b", "job-elsewhere", 1)[0]
	starving := NewStarvation(gang("gang", 0, 0), members, infos([]*framework.PodInfo{job, elsewhere}), time.Minute, noon)
	four := amounts{cpu: "4"}
	for name, tc := range map[string]struct {
		got, want provision.Amounts
	}{
		"what the Pod that ends takes is not reserved yet": {starving.Reserved(nodeWith("a", four, job, service)), provision.Amounts{cpu: 3000, "pods": 3}},
		"what it leaves is":                        {starving.Reserved(nodeWith("a", four, service)), provision.Amounts{cpu: 4000, "pods": 4}},
		"what a service leaves was not counted on": {starving.Reserved(nodeWith("a", four, job)), provision.Amounts{cpu: 3000, "pods": 3}},
		"nothing of other nodes":                   {starving.Reserved(nodeWith("b", four, elsewhere)), provision.Amounts{}},
	} {
		if !tc.got.Equal(tc.want) {
			t.Errorf("%s: %s is reserved, want %s", name, tc.got, tc.want)
		}
	}
}

func TestWhatEndsByItself(t *testing.T) {
	deadline := int64(60)
	tests := map[string]struct {
		spec corev1.PodSpec
		want bool
	}{
		"a Pod of a Job":                    {spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyOnFailure}, want: true},
		"a Pod that is never restarted":     {spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever}, want: true},
		"a service with a deadline":         {spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyAlways, ActiveDeadlineSeconds: &deadline}, want: true},
		"no Pod that is always restarted":   {spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyAlways}},
		"nor one that says nothing of that": {},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := EndsByItself(&corev1.Pod{Spec: tc.spec}); got != tc.want {
				t.Errorf("it ends: %t, want %t", got, tc.want)
			}
		})
	}
}
