// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/line"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/provision"
)

// arrival is for how long it counts what a group was let in for. The Pods of a job come within seconds.
const arrival = time.Minute

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
	mu      sync.RWMutex
	entries map[dialect.Key]entry
}

// entry is what is noted of a group.
type entry struct {
	uid types.UID
	// since is when it was let in; zero while it is not.
	since time.Time
	// why is why it is not let in.
	why string
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

// Counts says whether it counts for others what a group was let in for.
func (b *Book) Counts(key dialect.Key, group types.UID) bool {
	b.mu.RLock()
	defer b.mu.RUnlock()
	e, noted := b.entries[key]
	return noted && e.uid == group && !e.since.IsZero()
}

// Pass looks at all groups that wait to be let in, and those that count, and lets in who fits. It
// returns those of which there is news. Groups that are not among them are forgotten.
func (b *Book) Pass(groups []Group, cluster Cluster, now time.Time) (news []dialect.Key) {
	b.mu.Lock()
	defer b.mu.Unlock()
	before := b.entries
	b.entries = make(map[dialect.Key]entry)
	inOrder := slices.SortedFunc(slices.Values(groups), func(x, y Group) int { return x.Rank.Compare(y.Rank) })
	counted := make(map[dialect.Key]provision.Amounts)
	for _, g := range inOrder {
		e := before[g.Key]
		if e.uid != g.UID || e.since.IsZero() {
			continue
		}
		young := now.Sub(e.since) < arrival
		if young {
			counted[g.Key] = g.Rest
		}
		if young || g.Waits {
			b.entries[g.Key] = e
		}
	}
	taken := cluster.taken(counted)
	for _, g := range inOrder {
		if _, noted := b.entries[g.Key]; noted || !g.Waits {
			continue
		}
		e := entry{uid: g.UID}
		own := cluster.Kept[g.Key]
		if g.Rest.Within(cluster.Free.Less(taken.Less(own))) {
			e.since = now
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
