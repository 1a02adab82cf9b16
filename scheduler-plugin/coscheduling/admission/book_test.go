// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
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
	pass(time.Minute, first, second)
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
