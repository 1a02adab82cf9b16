// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/line"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/provision"
)

const (
	// arrival is for how long it counts what a group was let in for, from when its status says so. The
	// Pods of a job come within seconds.
	arrival = time.Minute
	// telling is for how long it counts at most while its status does not say so: the API server may
	// be slow, or another program may write the status.
	telling = 5 * time.Minute
)

// Group is a group that waits to be let in, or was let in a short while ago.
type Group struct {
	Key dialect.Key
	UID types.UID
	// Rank is its place in line.
	Rank line.Rank
	// Rest is what it asks for, without what its Pods take that have a place; nil for nothing.
	Rest provision.Amounts
	// Waits says that its status does not say yet that it is let in.
	Waits bool
	// Came says that its minimum of Pods has come: they wait or are placed. One Pod could be moved from group
	// to group.
	Came bool
	// Expects says that its status lets its Pods be created, and no more than that: there were none yet.
	Expects bool
}

// Cluster is how much room there is.
type Cluster struct {
	// All is what all nodes have that take Pods, and Free what of that nobody uses.
	All, Free provision.Amounts
	// Kept is what is kept for which gang, of what is free.
	Kept map[dialect.Key]provision.Amounts
}

// Book notes who is let in, and why others are not. It is safe for concurrent use, and the zero Book
// knows nobody.
type Book struct {
	mu sync.RWMutex
	// begun says that there was a Pass. Before the first one a scheduler may have let groups in, and ended.
	begun   bool
	entries map[dialect.Key]entry
	// debts are of namespaces whose groups kept room that their Pods did not come for.
	debts line.Debts
}

// entry is what is noted of a group.
type entry struct {
	uid types.UID
	// letIn is when it was let in; zero while it is not. Told is when its status was first seen to say so.
	letIn, told time.Time
	// counts says that it counts for others what it was let in for.
	counts bool
	// came says that its Pods have come.
	came bool
	// why is why it is not let in.
	why string
}

// isYoung says whether the Pods of a group that was let in may still be on their way.
func (e *entry) isYoung(now time.Time) bool {
	if e.told.IsZero() {
		return now.Sub(e.letIn) < telling
	}
	return now.Sub(e.told) < arrival
}

// Says says why a group is not let in; why is empty if it is. It is not known before a Pass has seen
// the group, nor when it was let in long ago.
func (b *Book) Says(key dialect.Key, group types.UID) (why string, known bool) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	e, noted := b.entries[key]
	if !noted || e.uid != group {
		return "", false
	}
	return e.why, true
}

// Counts says whether it counts for others what a group was let in for. Before the first Pass that is to be asked of
// all.
func (b *Book) Counts(key dialect.Key, group types.UID) bool {
	b.mu.RLock()
	defer b.mu.RUnlock()
	e, noted := b.entries[key]
	return !b.begun || noted && e.uid == group && e.counts
}

// Pass looks at all groups that wait to be let in, and those that count, and lets in who fits. It
// returns those of which there is news. Groups that are not among them are forgotten. In the first Pass those
// count that a scheduler before this one may have let in just now.
func (b *Book) Pass(groups []Group, cluster Cluster, now time.Time) (news []dialect.Key) {
	b.mu.Lock()
	defer b.mu.Unlock()
	before, first := b.entries, !b.begun
	if first {
		before, b.begun = make(map[dialect.Key]entry), true
	}
	b.entries = make(map[dialect.Key]entry)
	counted := make(map[dialect.Key]provision.Amounts)
	for _, g := range groups {
		if first && g.Expects {
			// Whether Pods have come and are gone nobody knows, so the namespace owes nothing for it.
			before[g.Key] = entry{uid: g.UID, letIn: now, told: now, counts: true, came: true}
		}
		e := before[g.Key]
		if e.uid != g.UID || e.letIn.IsZero() {
			continue
		}
		if !g.Waits && e.told.IsZero() {
			e.told = now
		}
		e.came = e.came || g.Came
		before[g.Key] = e
		switch {
		case e.counts && e.isYoung(now):
			counted[g.Key] = g.Rest
			b.entries[g.Key] = e
		case g.Waits:
			e.counts = false
			b.entries[g.Key] = e
		}
	}
	b.charge(before, now)
	taken := cluster.taken(counted)
	for _, g := range b.inOrder(groups, now) {
		if _, noted := b.entries[g.Key]; noted || !g.Waits {
			continue
		}
		e := entry{uid: g.UID, came: g.Came}
		own := cluster.Kept[g.Key]
		if g.Rest.Within(cluster.Free.Less(taken.Less(own))) {
			e.letIn, e.counts = now, true
			taken.Add(g.Rest.Less(own))
		} else {
			e.why = explain(g.Rest, cluster.All)
		}
		b.entries[g.Key] = e
		if was, noted := before[g.Key]; !noted || was.uid != e.uid || was.why != e.why {
			news = append(news, g.Key)
		}
	}
	return news
}

// charge charges the namespaces of groups that don't count any more, for the time that they did, if their
// Pods did not come. Else a namespace would keep all others out, by as many groups as it makes.
func (b *Book) charge(before map[dialect.Key]entry, now time.Time) {
	for key, e := range before {
		after := b.entries[key]
		if stays := after.uid == e.uid && after.counts; !e.counts || e.came || stays {
			continue
		}
		if b.debts == nil {
			b.debts = make(line.Debts)
		}
		b.debts.Owe(key.Namespace, min(now.Sub(e.letIn), telling+arrival), now)
	}
}

// inOrder are groups by rank, those of namespaces in debt last.
func (b *Book) inOrder(groups []Group, now time.Time) []Group {
	debtor := func(g Group) int {
		if b.debts[g.Key.Namespace].After(now) {
			return 1
		}
		return 0
	}
	return slices.SortedFunc(slices.Values(groups), func(x, y Group) int {
		return cmp.Or(cmp.Compare(debtor(x), debtor(y)), x.Rank.Compare(y.Rank))
	})
}

// taken is what is kept for gangs, or counts for those that were let in, of each the larger amount: what
// is kept for a group is what it was let in for.
func (c *Cluster) taken(counted map[dialect.Key]provision.Amounts) provision.Amounts {
	sum := make(provision.Amounts)
	for gang, kept := range c.Kept {
		sum.Add(kept)
		sum.Add(counted[gang].Less(kept))
	}
	for gang, rest := range counted {
		if _, isKept := c.Kept[gang]; !isKept {
			sum.Add(rest)
		}
	}
	return sum
}

// explain says why a group is not let in. It leaves out how much is lacking, which changes with each Pod
// that comes or ends: each change would be a write, for each group that waits.
func explain(rest, all provision.Amounts) string {
	text := fmt.Sprintf("its Pods may be created when the %s that it asks for fit into the cluster beside what is used and kept", rest)
	if !rest.Within(all) {
		text += ", which is more than all nodes have"
	}
	return text
}
