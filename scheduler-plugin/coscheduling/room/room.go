// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package room

import (
	"iter"
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/provision"
)

// Room is all that is kept, one Claim for each gang at most. In the scheduler claims come
// and go on the scheduling goroutine, Filter plugins read them, and whoever notices drops
// those that are over. It is safe for concurrent use, and the zero Room keeps nothing.
type Room struct {
	mu     sync.RWMutex
	byGang map[dialect.Key]Claim
	// ordered has them in order, and byNode those that have members on a node, by gang.
	ordered []Claim
	byNode  map[string]map[dialect.Key]Claim
}

// Of is the claim of a gang, nil if it has none.
func (r *Room) Of(gang dialect.Key) Claim {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.byGang[gang]
}

// NodeFor is where a member of a gang goes when Pods have gone that end soon; see Claim. It
// is empty if nothing is kept for the gang of this UID.
func (r *Room) NodeFor(gang dialect.Key, uid types.UID, member types.UID) string {
	if claim := r.Of(gang); claim != nil && claim.Gang().UID == uid {
		return claim.NodeFor(member)
	}
	return ""
}

// Keep keeps room for a gang, in the place of what was kept for it before. If that was
// elsewhere, or the gang was ahead of more, it is returned, as others may have it now; otherwise
// nil is.
func (r *Room) Keep(claim Claim) (left Claim) {
	r.mu.Lock()
	defer r.mu.Unlock()
	before := r.remove(claim.Gang().Rank.Key)
	r.put(claim)
	if before == nil || onSameNodes(before, claim) && before.Gang().Rank.Compare(claim.Gang().Rank) >= 0 {
		return nil
	}
	return before
}

// Drop ends the claim of a gang, and returns it; nil if it had none.
func (r *Room) Drop(gang dialect.Key) Claim {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.remove(gang)
}

// End ends a claim, and says whether it did: the gang may have another one by now, which
// stays.
func (r *Room) End(claim Claim) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	key := claim.Gang().Rank.Key
	if r.byGang[key] != claim {
		return false
	}
	r.remove(key)
	return true
}

// put adds a claim of a gang that has none. The caller holds the lock.
func (r *Room) put(claim Claim) {
	if r.byGang == nil {
		r.byGang, r.byNode = make(map[dialect.Key]Claim), make(map[string]map[dialect.Key]Claim)
	}
	key := claim.Gang().Rank.Key
	r.byGang[key] = claim
	at, _ := slices.BinarySearchFunc(r.ordered, claim, compareClaims)
	r.ordered = slices.Insert(r.ordered, at, claim)
	for _, member := range claim.Members() {
		node := member.Pod.Spec.NodeName
		if r.byNode[node] == nil {
			r.byNode[node] = make(map[dialect.Key]Claim)
		}
		r.byNode[node][key] = claim
	}
}

// remove takes the claim of a gang away, and returns it; nil if it has none. The caller holds the lock.
func (r *Room) remove(gang dialect.Key) Claim {
	claim := r.byGang[gang]
	if claim == nil {
		return nil
	}
	delete(r.byGang, gang)
	if at, found := slices.BinarySearchFunc(r.ordered, claim, compareClaims); found {
		r.ordered = slices.Delete(r.ordered, at, at+1)
	}
	for _, member := range claim.Members() {
		node := member.Pod.Spec.NodeName
		if delete(r.byNode[node], gang); len(r.byNode[node]) == 0 {
			delete(r.byNode, node)
		}
	}
	return claim
}

// compareClaims orders claims by the ranks of their gangs. The order is total.
func compareClaims(a, b Claim) int {
	return a.Gang().Rank.Compare(b.Gang().Rank)
}

// IsEmpty says whether nothing is kept.
func (r *Room) IsEmpty() bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return len(r.byGang) == 0
}

// InOrder are all claims, that of the gang first in line first.
func (r *Room) InOrder() []Claim {
	return r.inOrder(func(Claim) bool { return true })
}

// Expired are the claims that have lasted too long, in order. They stay until they are
// ended.
func (r *Room) Expired(now time.Time) []Claim {
	return r.inOrder(func(c Claim) bool { return now.After(c.End()) })
}

// AheadOfGang are the claims that a gang has to leave alone, in order: of those that are
// ahead of it in line.
func (r *Room) AheadOfGang(gang Behind) []Claim {
	return r.inOrder(func(c Claim) bool {
		rank := c.Gang().Rank
		return rank.Key != gang.Rank.Key && rank.Compare(gang.Rank) <= 0 && c.IsKeptFromGang(gang)
	})
}

// KeepsFromPod says whether an ordinary Pod has to leave any claim alone.
func (r *Room) KeepsFromPod(pod *corev1.Pod) bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return slices.ContainsFunc(r.ordered, func(c Claim) bool { return c.IsKeptFromPod(pod) })
}

// MayTake says whether an ordinary Pod may go to a node with its request, beside what it has to leave
// alone there. A node where nothing is reserved is none of its business. Claims on other nodes cost
// nothing.
func (r *Room) MayTake(pod *corev1.Pod, request fwk.Resource, node fwk.NodeInfo) bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	var leaves []Claim
	for _, claim := range r.byNode[node.Node().Name] {
		if claim.IsKeptFromPod(pod) {
			leaves = append(leaves, claim)
		}
	}
	return mayTake(request, node, leaves)
}

// ProvisionsOn are the claims of members to come that take of a node.
func (r *Room) ProvisionsOn(node string) []*Provision {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return provisionsAmong(maps.Values(r.byNode[node]))
}

// ToCome is how much room is kept for members to come of the gangs of a namespace but one, and for
// how many gangs. It counts whatever keeps it: a gang that waits may have such room held, too.
func (r *Room) ToCome(namespace string, but dialect.Key) (all provision.Amounts, gangs int) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	all = make(provision.Amounts)
	for key, claim := range r.byGang {
		if toCome := claim.ToCome(); key.Namespace == namespace && key != but && !toCome.IsZero() {
			all.Add(toCome)
			gangs++
		}
	}
	return all, gangs
}

// MembersToCome is for how many members to come of all gangs but one room is kept.
func (r *Room) MembersToCome(but dialect.Key) int {
	r.mu.RLock()
	defer r.mu.RUnlock()
	n := int64(0)
	for key, claim := range r.byGang {
		if key != but {
			n += claim.ToCome()[corev1.ResourcePods]
		}
	}
	return int(n)
}

// Provisions are all claims of members to come.
func (r *Room) Provisions() []*Provision {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return provisionsAmong(slices.Values(r.ordered))
}

func provisionsAmong(claims iter.Seq[Claim]) []*Provision {
	var some []*Provision
	for c := range claims {
		if p, ok := c.(*Provision); ok {
			some = append(some, p)
		}
	}
	return some
}

func (r *Room) inOrder(wanted func(Claim) bool) []Claim {
	r.mu.RLock()
	defer r.mu.RUnlock()
	var some []Claim
	for _, c := range r.ordered {
		if wanted(c) {
			some = append(some, c)
		}
	}
	return some
}
