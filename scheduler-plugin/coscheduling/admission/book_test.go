// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/line"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/provision"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func keyOf(name string) dialect.Key {
	return dialect.Key{Dialect: dialect.Volcano, Namespace: "ns", Name: name}
}

func cores(n int64) provision.Amounts { return provision.Amounts{"cpu": 1000 * n} }

// asking is a group that waits to be let in. The smaller its age, the sooner it was created.
func asking(name string, age int, rest provision.Amounts) Group {
	key := keyOf(name)
	return Group{Key: key, UID: types.UID("uid-" + name), Rank: line.Rank{Key: key, Created: noon.Add(time.Duration(age) * time.Second)}, Rest: rest, Waits: true}
}

// isIn says whether a group was let in.
func (b *Book) isIn(name string) bool {
	why, known := b.Says(keyOf(name), types.UID("uid-"+name))
	return known && why == ""
}

// why is why a group is not let in.
func (b *Book) why(name string) string {
	why, _ := b.Says(keyOf(name), types.UID("uid-"+name))
	return why
}

func TestWhoIsLetIn(t *testing.T) {
	important := asking("important", 9, cores(4))
	important.Rank.Priority = 1
	for name, tc := range map[string]struct {
		groups  []Group
		cluster Cluster
		want    string // who is let in
	}{
		"who fits":                           {[]Group{asking("a", 1, cores(4))}, Cluster{All: cores(8), Free: cores(4)}, "a"},
		"not who asks for more than is free": {[]Group{asking("a", 1, cores(5))}, Cluster{All: cores(8), Free: cores(4)}, ""},
		"not who asks for what no node has":  {[]Group{asking("a", 1, provision.Amounts{"example.com/gpu": 1})}, Cluster{All: cores(8), Free: cores(8)}, ""},
		"who asks for nothing":               {[]Group{asking("a", 1, nil)}, Cluster{}, "a"},
		"who asks for places among the Pods of nodes, as far as there are some": {
			[]Group{asking("a", 1, provision.Amounts{"pods": 3}), asking("b", 2, provision.Amounts{"pods": 1})},
			Cluster{All: provision.Amounts{"pods": 9}, Free: provision.Amounts{"pods": 2}}, "b"},
		"not who fits only beside what is kept for others": {[]Group{asking("a", 1, cores(3))},
			Cluster{All: cores(8), Free: cores(4), Kept: map[dialect.Key]provision.Amounts{keyOf("other"): cores(2)}}, ""},
		"who has the room kept that is asked for": {[]Group{asking("a", 1, cores(4))},
			Cluster{All: cores(8), Free: cores(4), Kept: map[dialect.Key]provision.Amounts{keyOf("a"): cores(4)}}, "a"},
		"the oldest of those that don't fit beside each other": {
			[]Group{asking("b", 2, cores(3)), asking("a", 1, cores(3))}, Cluster{All: cores(8), Free: cores(4)}, "a"},
		"the most important of them": {[]Group{asking("a", 1, cores(3)), important}, Cluster{All: cores(8), Free: cores(4)}, "important"},
		"who is behind one that does not fit": {
			[]Group{asking("a", 1, cores(5)), asking("b", 2, cores(3))}, Cluster{All: cores(8), Free: cores(4)}, "b"},
	} {
		t.Run(name, func(t *testing.T) {
			var book Book
			book.Pass(tc.groups, tc.cluster, noon)
			var in []string
			for _, g := range tc.groups {
				if book.isIn(g.Key.Name) {
					in = append(in, g.Key.Name)
				}
			}
			if got := strings.Join(in, " "); got != tc.want {
				t.Errorf("let in are %q, want %q", got, tc.want)
			}
		})
	}
}

// TestWhyAGroupIsNotLetIn: the message names no amount that changes with each Pod.
func TestWhyAGroupIsNotLetIn(t *testing.T) {
	var book Book
	book.Pass([]Group{asking("a", 1, cores(5)), asking("b", 2, cores(9))}, Cluster{All: cores(8), Free: cores(4)}, noon)
	const wait = " that it asks for fit into the cluster beside what is used and kept"
	if got, want := book.why("a"), "its Pods may be created when the 5 cpu"+wait; got != want {
		t.Errorf("it is told %q, want %q", got, want)
	}
	if got, want := book.why("b"), "its Pods may be created when the 9 cpu"+wait+", which is more than all nodes have"; got != want {
		t.Errorf("it is told %q, want %q", got, want)
	}
}

// TestWhoWasLetInBeforeASchedulerBeganCounts, as its Pods may be on their way, and costs others no more than a minute,
// and its namespace nothing.
func TestWhoWasLetInBeforeASchedulerBeganCounts(t *testing.T) {
	var book Book
	cluster := Cluster{All: cores(8), Free: cores(8)}
	before, runs, waits := asking("before", 1, cores(6)), asking("runs", 2, cores(6)), asking("waits", 3, cores(6))
	before.Waits, before.Expects = false, true
	runs.Waits, runs.Came = false, true
	if !book.Counts(before.Key, before.UID) {
		t.Fatal("it is not asked about groups that were let in")
	}
	book.Pass([]Group{before, runs, waits}, cluster, noon)
	if book.isIn("waits") || !book.Counts(before.Key, before.UID) || book.Counts(runs.Key, runs.UID) {
		t.Errorf("the group that waits is let in: %t, want false; what counts is %t for one without Pods, and %t for one with Pods", book.isIn("waits"), book.Counts(before.Key, before.UID), book.Counts(runs.Key, runs.UID))
	}
	at := noon.Add(arrival)
	book.Pass([]Group{before, waits}, cluster, at)
	if !book.isIn("waits") {
		t.Error("its Pods have not come in a minute, and it keeps others out")
	}
	if debt := book.debts["ns"]; debt.After(at) {
		t.Error("its namespace is charged for what nobody has seen")
	}
	late := asking("late", 4, cores(1))
	late.Waits, late.Expects = false, true
	book.Pass([]Group{late}, cluster, at.Add(time.Hour))
	if book.Counts(late.Key, late.UID) {
		t.Error("a group counts that somebody else has let in, long after the scheduler began")
	}
}

// TestWhatAGroupWasLetInForCountsForAWhile, until its Pods have come, so that no two are let in for one room. A
// group whose Pods never come costs others no more than that.
func TestWhatAGroupWasLetInForCountsForAWhile(t *testing.T) {
	var book Book
	cluster := Cluster{All: cores(8), Free: cores(8)}
	first, second := asking("first", 1, cores(6)), asking("second", 2, cores(6))
	book.Pass([]Group{first}, cluster, noon)
	first.Waits = false // its phase says so by now
	at := noon
	pass := func(after time.Duration, groups ...Group) {
		at = noon.Add(after)
		book.Pass(groups, cluster, at)
	}
	pass(time.Second, first, second)
	if book.isIn("second") {
		t.Fatal("two are let in for one room")
	}
	if !book.Counts(first.Key, first.UID) || book.Counts(second.Key, second.UID) {
		t.Error("it is not known who was let in lately")
	}
	first.Rest = cores(2) // some of its Pods have a place
	cluster.Free = cores(4)
	pass(2*time.Second, first, second)
	if book.isIn("second") {
		t.Fatal("a group is let in for room that another one was let in for")
	}
	cluster.Free = cores(8)
	pass(time.Minute-time.Second, first, second)
	if !book.isIn("second") {
		t.Fatal("what its Pods take counts twice")
	}
	pass(time.Minute+time.Second, first, second)
	if book.Counts(first.Key, first.UID) {
		t.Error("a group that was let in counts for longer than its Pods need to come")
	}
}

// TestAGroupThatWasLetInStaysIn, also if its status could not be written for long, and though there is no room any
// more. Another group of its name is another one.
func TestAGroupThatWasLetInStaysIn(t *testing.T) {
	var book Book
	group := asking("a", 1, cores(4))
	book.Pass([]Group{group}, Cluster{All: cores(8), Free: cores(4)}, noon)
	book.Pass([]Group{group}, Cluster{All: cores(8)}, noon.Add(time.Hour))
	if !book.isIn("a") {
		t.Error("it is not let in any more")
	}
	other := group
	other.UID = "another"
	if _, known := book.Says(other.Key, other.UID); known {
		t.Error("another group of its name is known")
	}
	book.Pass([]Group{other}, Cluster{All: cores(8)}, noon.Add(time.Hour))
	if why, known := book.Says(other.Key, other.UID); !known || why == "" {
		t.Error("another group of its name is let in")
	}
}

// TestAGroupCountsUntilItsStatusSaysThatItIsIn, and for a minute from then: nobody creates its Pods before. A
// status that is never written costs others no more than some minutes.
func TestAGroupCountsUntilItsStatusSaysThatItIsIn(t *testing.T) {
	for name, tc := range map[string]struct {
		told time.Duration // when its status says so
		want time.Duration // when the other one is let in
	}{
		"at once":      {time.Second, time.Minute + time.Second},
		"late":         {3 * time.Minute, 4 * time.Minute},
		"not any more": {time.Hour, 5 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			var book Book
			first, second := asking("first", 1, cores(6)), asking("second", 2, cores(6))
			for at := time.Duration(0); !book.isIn("second"); at += time.Second {
				if at > tc.want {
					t.Fatalf("another group is not let in for its room after %v", at)
				}
				first.Waits = at < tc.told
				book.Pass([]Group{first, second}, Cluster{All: cores(8), Free: cores(8)}, noon.Add(at))
				if book.isIn("second") && at < tc.want {
					t.Fatalf("another group is let in for its room after %v, want %v", at, tc.want)
				}
			}
		})
	}
}

// TestGroupsWithoutPodsKeepOtherNamespacesOutForAMinute, however many a tenant makes, and whether or not it
// deletes them again. Those whose Pods come are nobody's fault.
func TestGroupsWithoutPodsKeepOtherNamespacesOutForAMinute(t *testing.T) {
	const arrives = 10 // the other group comes after a number of seconds
	for name, tc := range map[string]struct {
		lasts int  // for how many seconds a group of the tenant's exists from when it was let in; 0 for ever
		came  bool // its Pods come
		want  int  // until when the other group is let in, in seconds
	}{
		"that stay":                   {want: 62},
		"that are deleted":            {lasts: 59, want: 62},
		"that are deleted at once":    {lasts: 2, want: arrives + 2},
		"but not those that get some": {came: true, want: 5 * 61},
	} {
		t.Run(name, func(t *testing.T) {
			var book Book
			var groups []Group
			since := make(map[dialect.Key]int)
			for i := range 5 {
				g := asking(string(rune('a'+i)), i, cores(8))
				g.Key.Namespace, g.Rank.Key.Namespace, g.Came = "greedy", "greedy", tc.came
				groups = append(groups, g)
			}
			other := asking("other", arrives, cores(1))
			at := 0
			for ; !book.isIn("other"); at++ {
				if at > 400 {
					t.Fatal("another namespace is kept out for ever")
				}
				if at == arrives {
					groups = append(groups, other)
				}
				book.Pass(groups, Cluster{All: cores(8), Free: cores(8)}, noon.Add(time.Duration(at)*time.Second))
				groups = slices.DeleteFunc(groups, func(g Group) bool {
					begun, in := since[g.Key]
					return in && tc.lasts > 0 && at-begun >= tc.lasts
				})
				for i := range groups {
					if book.Counts(groups[i].Key, groups[i].UID) && groups[i].Waits {
						groups[i].Waits, since[groups[i].Key] = false, at
					}
				}
			}
			if at > tc.want+2 || at < tc.want-2 {
				t.Errorf("a group of another namespace is let in after %d seconds, want %d", at, tc.want)
			}
		})
	}
}

// TestADebtEnds: a namespace whose group got no Pods goes last for nine times as long as that counted.
func TestADebtEnds(t *testing.T) {
	for after, want := range map[time.Duration]string{17 * time.Second: "ns", 19 * time.Second: "debtor"} {
		var book Book
		cluster := Cluster{All: cores(8), Free: cores(8)}
		gone, next := asking("gone", 1, cores(8)), asking("next", 2, cores(8))
		gone.Key.Namespace, next.Key.Namespace = "debtor", "debtor"
		book.Pass([]Group{gone}, cluster, noon)
		book.Pass(nil, cluster, noon.Add(2*time.Second))
		book.Pass([]Group{asking("other", 3, cores(8)), next}, cluster, noon.Add(2*time.Second+after))
		in := "ns"
		if book.Counts(next.Key, next.UID) {
			in = "debtor"
		}
		if in != want {
			t.Errorf("%v after the group was deleted, that of the namespace %s is let in, want %s", after, in, want)
		}
	}
}

// TestWhomAPassIsNewsFor: those whose status is to be written.
func TestWhomAPassIsNewsFor(t *testing.T) {
	var book Book
	a, b := asking("a", 1, cores(4)), asking("b", 2, cores(4))
	for i, tc := range []struct {
		groups []Group
		free   int64
		want   int
	}{
		{[]Group{a, b}, 4, 2}, {[]Group{a, b}, 4, 0}, {[]Group{a, b}, 8, 1}, {[]Group{a, b}, 8, 0},
	} {
		if got := book.Pass(tc.groups, Cluster{All: cores(8), Free: cores(tc.free)}, noon); len(got) != tc.want {
			t.Errorf("pass %d is news for %v, want %d", i, got, tc.want)
		}
	}
}

// TestGroupsThatAreGoneAreForgotten.
func TestGroupsThatAreGoneAreForgotten(t *testing.T) {
	var book Book
	book.Pass([]Group{asking("a", 1, cores(4)), asking("b", 1, cores(9))}, Cluster{All: cores(8), Free: cores(4)}, noon)
	book.Pass(nil, Cluster{}, noon.Add(time.Second))
	if len(book.entries) > 0 {
		t.Errorf("%v are still known", book.entries)
	}
}
