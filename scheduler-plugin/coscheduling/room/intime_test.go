// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package room

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	schedulertesting "k8s.io/kubernetes/pkg/scheduler/testing"

	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/provision"
)

// someTime says of Pods that they end, and that nobody knows when.
func someTime(pods []*framework.PodInfo) Ends {
	ends := make(Ends)
	for _, pod := range pods {
		ends[pod.Pod.UID] = time.Time{}
	}
	return ends
}

// TestFromWhenOnAGangHasItsPlace: its four members of a core are to go to a node of four cores, on which Pods of a core end some minutes
// after noon.
func TestFromWhenOnAGangHasItsPlace(t *testing.T) {
	const never, unknown = -1, 0
	tests := map[string]struct {
		minutes []int
		// from is in how many minutes it has its place, and after how many of the Pods. Never: nothing is reserved.
		from, left int
		// reserved is how many cores are kept from others now.
		reserved int64
	}{
		"nobody is there":               {from: 0, reserved: 4},
		"when the last one ends":        {minutes: []int{10, 30, 20}, from: 30, left: 3, reserved: 1},
		"some time, if one may run on":  {minutes: []int{10, unknown}, from: unknown, left: 2, reserved: 2},
		"nowhere, if one runs for ever": {minutes: []int{10, never}, from: never},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			jobs, ends := coresOn(t, "a", "job", len(tc.minutes)), make(Ends)
			for i, minutes := range tc.minutes {
				switch minutes {
				case never:
				case unknown:
					ends[jobs[i].Pod.UID] = time.Time{}
				default:
					ends[jobs[i].Pod.UID] = noon.Add(time.Duration(minutes) * time.Minute)
				}
			}
			node := nodeWith("a", amounts{cpu: "4"}, jobs...)
			r := NewInTime(gang("gang", 0, 0), coresOn(t, "a", "member", 4), nil, ends, cluster{"a": node}, noon)
			if tc.from == never {
				if r != nil {
					t.Fatalf("room is reserved from %v on", r.From)
				}
				return
			}
			want := noon.Add(time.Duration(tc.from) * time.Minute)
			if tc.from == unknown && len(jobs) > 0 {
				want = time.Time{}
			}
			if !r.From.Equal(want) || r.left != tc.left {
				t.Errorf("it has its place at %v when %d have ended, want %v and %d", r.From, r.left, want, tc.left)
			}
			if got := r.Reserved(node)[cpu]; got != tc.reserved*1000 {
				t.Errorf("%d millicores are kept from others now, want %d cores", got, tc.reserved)
			}
			if got := r.Kept()[cpu]; got != tc.reserved*1000 {
				t.Errorf("%d millicores are kept free on all nodes, want %d cores", got, tc.reserved)
			}
		})
	}
}

// TestRoomThatTheGangDoesNotNeed: a node of four cores has two Pods of two, and the gang needs two of them in ten minutes. By then both
// Pods have ended, so nothing is kept from others meanwhile; nor is if one has ended sooner.
func TestRoomThatTheGangDoesNotNeed(t *testing.T) {
	jobs := []*framework.PodInfo{podOn(t, "a", "one", amounts{cpu: "2"}), podOn(t, "a", "two", amounts{cpu: "2"})}
	ends := Ends{jobs[0].Pod.UID: noon.Add(10 * time.Minute), jobs[1].Pod.UID: noon.Add(10 * time.Minute)}
	r := NewInTime(gang("gang", 0, 0), coresOn(t, "a", "member", 2), nil, ends, cluster{"a": nodeWith("a", amounts{cpu: "4"}, jobs...)}, noon)
	for _, left := range [][]*framework.PodInfo{jobs, jobs[:1]} {
		if got := r.Reserved(nodeWith("a", amounts{cpu: "4"}, left...))[cpu]; got != 0 {
			t.Errorf("%d millicores are kept with %d Pods", got, len(left))
		}
	}
	if got := r.Reserved(nodeWith("a", amounts{cpu: "4"}))[cpu]; got != 2000 {
		t.Errorf("%d millicores are kept when both have ended", got)
	}
}

// TestAGangWaitsForAPodInItsWayThoughThereIsRoom for its two members: that Pod has their host port, for instance.
func TestAGangWaitsForAPodInItsWayThoughThereIsRoom(t *testing.T) {
	jobs := coresOn(t, "a", "job", 2)
	first, inTheWay := jobs[0].Pod.UID, jobs[1].Pod.UID
	nodes := cluster{"a": nodeWith("a", amounts{cpu: "4"}, jobs...)}
	for _, until := range []time.Time{noon.Add(time.Hour), {}} {
		ends := Ends{first: noon.Add(time.Minute), inTheWay: until}
		r := NewInTime(gang("gang", 0, 0), coresOn(t, "a", "member", 2), sets.New(inTheWay), ends, nodes, noon)
		for when, r := range map[string]*Reservation{"at first": r, "when renewed": r.Renewed(r.Gang, sets.New(inTheWay), ends, nodes, noon.Add(time.Second))} {
			if !r.From.Equal(until) || r.left != 1 {
				t.Errorf("%s it has its place at %v when %d have ended, want %v and 1", when, r.From, r.left, until)
			}
		}
	}
}

// TestAnotherPodIsInTheGangsWay than when the reservation was made. The search finds the same nodes, and knows that Pod.
func TestAnotherPodIsInTheGangsWay(t *testing.T) {
	jobs := coresOn(t, "a", "job", 1)
	nodes, ends := cluster{"a": nodeWith("a", amounts{cpu: "4"}, jobs...)}, Ends{jobs[0].Pod.UID: noon.Add(time.Hour)}
	members := coresOn(t, "a", "member", 2)
	before := NewInTime(gang("gang", 0, 0), members, nil, ends, nodes, noon)
	found := NewInTime(gang("gang", 0, 0), members, sets.New(jobs[0].Pod.UID), ends, nodes, noon)
	if got := Better(before.Renewed(before.Gang, nil, ends, nodes, noon), found, noon); !got.From.Equal(noon.Add(time.Hour)) {
		t.Errorf("it has its place at %v, want in an hour", got.From)
	}
}

// TestWhichWorkBackfills: a gang needs its room ten minutes after noon.
func TestWhichWorkBackfills(t *testing.T) {
	r := New(gang("gang", 5, 10), InTime, coresOn(t, "a", "member", 1), nil, noon)
	pod := schedulertesting.MakePod().Name("ordinary").Priority(4).Obj()
	for name, tc := range map[string]struct {
		from, until time.Time
		kept        bool
	}{
		"work that ends before":                    {noon.Add(10 * time.Minute), noon.Add(9 * time.Minute), false},
		"work that ends just then":                 {noon.Add(10 * time.Minute), noon.Add(10 * time.Minute), false},
		"no work that ends later":                  {noon.Add(10 * time.Minute), noon.Add(11 * time.Minute), true},
		"nor if nobody knows when it ends":         {noon.Add(10 * time.Minute), time.Time{}, true},
		"nor if nobody knows when the gang starts": {time.Time{}, noon, true},
		"nor if nobody knows anything":             {time.Time{}, time.Time{}, true},
	} {
		t.Run(name, func(t *testing.T) {
			r.From = tc.from
			if got := r.IsKeptFrom(PodTaker(pod, tc.until)); got != tc.kept {
				t.Errorf("a Pod leaves the room alone: %t", got)
			}
			if got := r.IsKeptFrom(GangTaker(gang("other", 4, 0).Rank, false, tc.until)); got != tc.kept {
				t.Errorf("a gang leaves the room alone: %t", got)
			}
		})
	}
}

// TestAReservationMovesOnlyToABetterPlace: the gang is to go to node a, and there is node b.
func TestAReservationMovesOnlyToABetterPlace(t *testing.T) {
	for name, tc := range map[string]struct {
		a, b  []time.Duration // after noon the Pods there end; 0 is some day
		aGone bool
		want  string
	}{
		"it stays where it is as early":         {a: []time.Duration{time.Hour}, b: []time.Duration{time.Hour}, want: "a"},
		"nor does it move for a few minutes":    {a: []time.Duration{time.Hour}, b: []time.Duration{55 * time.Minute}, want: "a"},
		"it moves for a tenth of the wait":      {a: []time.Duration{time.Hour}, b: []time.Duration{53 * time.Minute}, want: "b"},
		"it moves to where fewer have to end":   {a: []time.Duration{time.Hour, time.Hour}, b: []time.Duration{time.Hour}, want: "b"},
		"but not if these end later":            {a: []time.Duration{time.Hour, time.Hour}, b: []time.Duration{61 * time.Minute}, want: "a"},
		"it moves to where the time is known":   {a: []time.Duration{0}, b: []time.Duration{time.Hour}, want: "b"},
		"it stays where it is known":            {a: []time.Duration{time.Hour}, b: []time.Duration{0}, want: "a"},
		"it stays if nothing is known":          {a: []time.Duration{0}, b: []time.Duration{0}, want: "a"},
		"it moves to where less has to end":     {a: []time.Duration{0, 0}, b: []time.Duration{0}, want: "b"},
		"it moves when the node is gone":        {a: []time.Duration{time.Minute}, b: []time.Duration{time.Hour}, aGone: true, want: "b"},
		"it moves when others take its room":    {a: []time.Duration{time.Minute, -1, -1}, b: []time.Duration{time.Hour}, want: "b"},
		"it ends when there is no place at all": {a: []time.Duration{-1}, b: []time.Duration{-1}, want: ""},
	} {
		t.Run(name, func(t *testing.T) {
			ends, nodes := make(Ends), cluster{}
			for node, times := range map[string][]time.Duration{"a": tc.a, "b": tc.b} {
				jobs := coresOn(t, node, node+"-job", len(times))
				for i, after := range times {
					switch {
					case after > 0:
						ends[jobs[i].Pod.UID] = noon.Add(after)
					case after == 0:
						ends[jobs[i].Pod.UID] = time.Time{}
					}
				}
				nodes[node] = nodeWith(node, amounts{cpu: "2"}, jobs...)
			}
			members := func(node string) []*framework.PodInfo { return coresOn(t, node, "member", 2) }
			own := New(gang("gang", 0, 0), InTime, members("a"), nil, noon)
			if tc.aGone {
				delete(nodes, "a")
			}
			other := NewInTime(gang("gang", 0, 0), members("b"), nil, ends, nodes, noon)
			got := Better(own.Renewed(own.Gang, nil, ends, nodes, noon), other, noon)
			if got == nil != (tc.want == "") || got != nil && !got.IsOn(tc.want) {
				t.Errorf("it is %+v, want one on %q", got, tc.want)
			}
		})
	}
}

// TestWhenAReservationIsRenewed: what is needed soon is renewed more often.
func TestWhenAReservationIsRenewed(t *testing.T) {
	for from, want := range map[time.Duration]time.Duration{
		-time.Hour: time.Minute, 0: time.Minute, 30 * time.Second: 30 * time.Second, 5 * time.Minute: time.Minute, 20 * time.Minute: 2 * time.Minute, 24 * time.Hour: 5 * time.Minute,
	} {
		if got := (&Reservation{From: noon.Add(from)}).RenewAt(noon).Sub(noon); got != want {
			t.Errorf("if the room is needed in %v, the reservation is renewed in %v, want %v", from, got, want)
		}
	}
	if got := (&Reservation{}).RenewAt(noon).Sub(noon); got != time.Minute {
		t.Errorf("if it is not known when the room is needed, the reservation is renewed in %v, want a minute", got)
	}
}

// renewed is a reservation of which the gang has had another cycle.
func renewed(r *Reservation, ends Ends, nodes Nodes, now time.Time) *Reservation {
	stays := r.Renewed(r.Gang, nil, ends, nodes, now)
	stays.Continue(r, nodes, now)
	return stays
}

// TestAReservationKeepsNoMoreIdleThanItsGangWillUse, or than it has waited: two members have their room on a node of which one half is
// idle.
func TestAReservationKeepsNoMoreIdleThanItsGangWillUse(t *testing.T) {
	job := coresOn(t, "a", "job", 1)
	nodes := cluster{"a": nodeWith("a", amounts{cpu: "2"}, job...)}
	for name, tc := range map[string]struct {
		runs, waited time.Duration
		most         int // minutes
	}{
		"a gang that runs for 20 minutes, and has just come":    {20 * time.Minute, time.Minute, 40},
		"a gang that runs for a minute, and waits for longer":   {time.Minute, 15 * time.Minute, 30},
		"a gang that runs for a minute, and has just come":      {time.Minute, time.Minute, 20},
		"a gang that is not known to end, and has just come":    {0, time.Minute, 20},
		"a gang that is not known to end, and waits for longer": {0, 15 * time.Minute, 30},
	} {
		t.Run(name, func(t *testing.T) {
			r := NewInTime(gang("gang", 0, 0), coresOn(t, "a", "member", 2), nil, someTime(job), nodes, noon)
			for minute := 1; minute <= 50; minute++ {
				r = renewed(r, someTime(job), nodes, noon.Add(time.Duration(minute)*time.Minute))
				if may := r.MayHold(tc.runs, noon.Add(-tc.waited), 0); may != (minute <= tc.most) {
					t.Fatalf("after %d min it may hold its room for longer: %t", minute, may)
				}
			}
		})
	}
}

// TestAReservationThatOthersMayUseUntilAKnownTimeIsKept: the job that the gang waits for ends in an hour, by then in
// another one, and so on.
func TestAReservationThatOthersMayUseUntilAKnownTimeIsKept(t *testing.T) {
	job := coresOn(t, "a", "job", 1)
	nodes := cluster{"a": nodeWith("a", amounts{cpu: "2"}, job...)}
	inAnHour := func(now time.Time) Ends { return Ends{job[0].Pod.UID: now.Add(time.Hour)} }
	now := noon
	r := NewInTime(gang("gang", 0, 0), coresOn(t, "a", "member", 2), nil, inAnHour(now), nodes, now)
	for range 1000 {
		now = now.Add(time.Minute)
		if r = renewed(r, inAnHour(now), nodes, now); !r.MayHold(time.Minute, noon, 0) {
			t.Fatalf("after %v the gang may not hold its room for longer", now.Sub(noon))
		}
	}
	// When nobody knows any more when the job ends, the nodes may be idle for ten minutes.
	r = renewed(r, someTime(job), nodes, now)
	for range 11 {
		now = now.Add(2 * time.Minute)
		r = renewed(r, someTime(job), nodes, now)
	}
	if r.MayHold(time.Minute, noon, 0) {
		t.Errorf("the gang may still hold its room")
	}
}

// holdForAnHour has a gang renew its reservation each minute for an hour, and returns it, with what is owed in the end. A tenth of the
// cluster may be idle.
func holdForAnHour(members []*framework.PodInfo, ends Ends, nodes Nodes, all provision.Amounts) (*Reservation, time.Duration) {
	var idle Idle
	r, now := NewInTime(gang("gang", 0, 0), members, nil, ends, nodes, noon), noon
	for range 60 {
		now = now.Add(time.Minute)
		r = renewed(r, ends, nodes, now)
		idle.Charge(r, 10, func() provision.Amounts { return all }, now)
	}
	return r, idle.Owed(now)
}

// TestWhatWasKeptIdleHasToBePaid: half of a cluster of four cores is idle for an hour, which is paid for in five hours, from the first
// minute on.
func TestWhatWasKeptIdleHasToBePaid(t *testing.T) {
	nodes := cluster{"a": nodeWith("a", amounts{cpu: "2"})}
	r, owed := holdForAnHour(coresOn(t, "a", "member", 2), nil, nodes, provision.Amounts{cpu: 4000})
	if want := 4*time.Hour + time.Minute; owed != want {
		t.Errorf("%v are owed, want %v", owed, want)
	}
	for owes, want := range map[time.Duration]bool{time.Hour: true, 2 * time.Hour: false} {
		if may := r.MayHold(0, noon.Add(-time.Hour), owes); may != want {
			t.Errorf("a gang that has waited for an hour may keep its room idle for an hour if %v are owed: %t, want %t", owes, may, want)
		}
	}
}

func TestWhatIsOwedIsPaidAsTimePasses(t *testing.T) {
	idle := Idle{paidBy: noon.Add(time.Hour)}
	for after, want := range map[time.Duration]time.Duration{0: time.Hour, 20 * time.Minute: 40 * time.Minute, 2 * time.Hour: 0} {
		if got := idle.Owed(noon.Add(after)); got != want {
			t.Errorf("%v later %v are owed, want %v", after, got, want)
		}
	}
}

// TestOnlyWhatIsIdleIsCharged: nineteen members of 10m have their place, and one of a whole node waits. So less than a thousandth of the
// cluster is idle for an hour.
func TestOnlyWhatIsIdleIsCharged(t *testing.T) {
	job := podOn(t, "b", "job", amounts{cpu: "100"})
	nodes := cluster{"a": nodeWith("a", amounts{cpu: "100"}), "b": nodeWith("b", amounts{cpu: "100"}, job)}
	members := []*framework.PodInfo{podOn(t, "b", "whole", amounts{cpu: "100"})}
	for i := range 19 {
		members = append(members, podOn(t, "a", fmt.Sprint("tiny-", i), amounts{cpu: "10m"}))
	}
	if _, owed := holdForAnHour(members, Ends{job.Pod.UID: time.Time{}}, nodes, provision.Amounts{cpu: 200_000}); owed > time.Minute {
		t.Errorf("%v are owed", owed)
	}
}

// TestNoMoreThanTheWholeClusterIsIdle: most nodes do not list the devices that members request, as the devices are of another kind. One
// node lists eight.
func TestNoMoreThanTheWholeClusterIsIdle(t *testing.T) {
	nodes := make(cluster)
	var members []*framework.PodInfo
	for i := range 100 {
		name := fmt.Sprint("node-", i)
		nodes[name] = nodeWith(name, amounts{cpu: "8"})
		members = append(members, podOn(t, name, fmt.Sprint("member-", i), amounts{cpu: "1", "example.com/gpu": "8"}))
	}
	if _, owed := holdForAnHour(members, nil, nodes, provision.Amounts{cpu: 800_000, "example.com/gpu": 8}); owed > 10*time.Hour {
		t.Errorf("%v are owed for an hour", owed)
	}
}

// TestALargeGangThatRunsForLongMayHaveRoomReserved: all of its members together run for centuries.
func TestALargeGangThatRunsForLongMayHaveRoomReserved(t *testing.T) {
	nodes := cluster{"a": nodeWith("a", amounts{cpu: "40"})}
	r := NewInTime(gang("gang", 0, 0), coresOn(t, "a", "member", 40), nil, nil, nodes, noon)
	if !r.MayHold(10*365*24*time.Hour, noon, 0) {
		t.Error("nothing may be held for it")
	}
}

// TestWhatIsReserved: four members of a core are to come to a node of four, where a Pod
// of a Job and one of a service take a core each. The end of the first is awaited.
func TestWhatIsReserved(t *testing.T) {
	members := coresOn(t, "a", "member", 4)
	job, service := coresOn(t, "a", "job", 1)[0], coresOn(t, "a", "service", 1)[0]
	elsewhere := coresOn(t, "b", "job-elsewhere", 1)[0]
	starving := New(gang("gang", 0, 0), InTime, members, infos([]*framework.PodInfo{job, elsewhere}), noon)
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
