// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/lockstep-k8s/lockstep/podgroup"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/kube"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/line"
)

// hold is room that is kept for a gang that waits: its members on the nodes
// where they are to go. There are two kinds. One keeps the room that preemption
// makes, while the victims end. The other is a barrier for a gang that starves: its
// members are on nodes where work still runs, and what that work leaves behind when it
// ends is kept as well.
//
// Holds are not in the scheduler's cache. They exist in the cycle of a gang that
// is behind the holder in line, which finds the members assumed in its snapshot,
// and in the Filter plugin for ordinary Pods that are. A hold does not change.
type hold struct {
	rank     line.Rank
	uid      types.UID
	preempts bool
	// yields says that a hold for preemption has no victims: it only keeps the room of
	// Pods that end anyway, and only from work of lower priority.
	yields bool
	// until is the end of the hold: victims that won't go must not block others, and a
	// barrier has to grow.
	until   time.Time
	members []*framework.PodInfo
	// byNode is what the members take of each node, and awaited are the Pods whose end a
	// barrier waits for, with what they take.
	byNode  map[string]*usage
	awaited map[types.UID]fwk.PodInfo
	// begun is when a gang first had a barrier. Grown is when one of the awaited Pods was
	// last seen to be gone, and left is how many were not. Patience is how long a barrier
	// may be without growing.
	begun, grown time.Time
	left         int
	patience     time.Duration
}

func newHold(view *gangView, members []*framework.PodInfo, until time.Time) *hold {
	h := &hold{rank: view.rank, uid: view.group.UID, preempts: true, until: until, members: members,
		byNode: make(map[string]*usage)}
	for _, m := range members {
		node := m.Pod.Spec.NodeName
		if h.byNode[node] == nil {
			h.byNode[node] = &usage{}
		}
		h.byNode[node].addMember(m)
	}
	return h
}

// isAhead says whether an ordinary Pod has to leave the room alone. What others
// were evicted for is kept from all that don't outrank the gang. What a gang that
// starves waits for is kept from those of its priority that came after it: the
// ones before it are few, and have waited longer. It is not kept from a Pod of a
// DaemonSet, which can run nowhere else, nor wait for as long as gangs do.
func (h *hold) isAhead(pod *corev1.Pod) bool {
	if owner := metav1.GetControllerOf(pod); !h.preempts && owner != nil && owner.Kind == "DaemonSet" {
		return false
	}
	priority := corev1helpers.PodPriority(pod)
	if h.rank.Priority != priority {
		return h.rank.Priority > priority
	}
	return h.preempts && !h.yields || !h.preempts && h.rank.Created.Before(pod.CreationTimestamp.Time)
}

// nodes are where room is held, in order, once for each member.
func (h *hold) nodes() []string {
	names := make([]string, len(h.members))
	for i, m := range h.members {
		names[i] = m.Pod.Spec.NodeName
	}
	slices.Sort(names)
	return names
}

// holds are the holds of a scheduler, by gang. They are set on the scheduling
// goroutine, read by Filter plugins, and pruned by whoever notices. It is safe
// for concurrent use, and the zero holds are none.
type holds struct {
	mu     sync.RWMutex
	byGang map[types.NamespacedName]*hold
}

// of is the hold of a gang, or nil.
func (h *holds) of(key types.NamespacedName) *hold {
	h.mu.RLock()
	defer h.mu.RUnlock()
	return h.byGang[key]
}

// set makes new the hold of a gang, nil for none, and returns the one before.
func (h *holds) set(key types.NamespacedName, new *hold) (before *hold) {
	h.mu.Lock()
	defer h.mu.Unlock()
	before = h.byGang[key]
	switch {
	case new == nil:
		delete(h.byGang, key)
	case h.byGang == nil:
		h.byGang = map[types.NamespacedName]*hold{key: new}
	default:
		h.byGang[key] = new
	}
	return before
}

// ahead are the holds that an ordinary Pod has to leave alone.
func (h *holds) ahead(pod *corev1.Pod) []*hold {
	h.mu.RLock()
	defer h.mu.RUnlock()
	var ahead []*hold
	for _, one := range h.byGang {
		if one.isAhead(pod) {
			ahead = append(ahead, one)
		}
	}
	return ahead
}

// inOrder are the holds, that of the gang first in line first.
func (h *holds) inOrder() []*hold {
	h.mu.RLock()
	defer h.mu.RUnlock()
	return slices.SortedFunc(maps.Values(h.byGang), func(a, b *hold) int { return a.rank.Compare(b.rank) })
}

// prune drops the holds of gangs that don't wait any more, and those that have
// lasted too long.
func (e *engine) prune() {
	now := e.tracker.now()
	for _, h := range e.holds.inOrder() {
		switch key := h.rank.Key; {
		case !e.tracker.waits(key, h.uid):
			e.drop(key)
		case now.After(h.until):
			e.drop(key)
			if !h.preempts {
				// Its gang has had no turn in which to notice.
				e.tracker.giveUpHelp(key, h.patience)
			}
		}
	}
}

// drop ends a gang's hold and lets others try for the room.
func (e *engine) drop(key types.NamespacedName) {
	h := e.holds.set(key, nil)
	if h == nil {
		return
	}
	e.tracker.setHeld(key, heldNot)
	e.offer(h)
}

// offer lets others try for the room of a hold. Ordinary Pods are told that a Pod
// has ended there, of which gangs need not hear.
func (e *engine) offer(h *hold) {
	e.tracker.offer(h.rank.Key)
	e.queue.SchedulingQueue.MoveAllToActiveOrBackoffQueue(klog.FromContext(e.ctx),
		framework.EventAssignedPodDelete, h.members[0].Pod, nil, nil)
}

// keep holds room for the cycle's gang.
func (c *cycle) keep(h *hold) {
	before := c.holds.set(c.view.key, h)
	if before != nil && !slices.Equal(before.nodes(), h.nodes()) {
		c.offer(before)
	}
	kind := heldForStarving
	if h.preempts {
		kind = heldForPreemption
	}
	c.tracker.setHeld(c.view.key, kind)
}

// respect puts the members of the holds that concern the cycle's gang into the
// snapshot.
//
// A gang that is broken, with members placed but too few, does not respect what
// is held for one that starves: that one may be waiting for this one's members
// to end, and they for the ones that are missing.
func (c *cycle) respect() error {
	c.prune()
	broken := c.view.broken()
	for _, h := range c.holds.inOrder() {
		if h.rank.Key == c.view.key || h.rank.Compare(c.view.rank) > 0 || broken && !h.preempts ||
			h.yields && h.rank.Priority == c.view.rank.Priority {
			continue
		}
		for _, m := range h.members {
			if _, err := c.snapshot.Get(m.Pod.Spec.NodeName); err != nil {
				continue // the node is gone
			}
			if err := c.snapshot.AssumePod(m); err != nil {
				return fmt.Errorf("holding room for %s: %w", klog.KObj(m.Pod), err)
			}
			c.heldPods = append(c.heldPods, m.Pod)
		}
		c.ahead = append(c.ahead, h)
	}
	return nil
}

// leaveHolds takes the holds out of the snapshot, in reverse order.
func (c *cycle) leaveHolds(ctx context.Context) {
	logger := klog.FromContext(ctx)
	for _, pod := range slices.Backward(c.heldPods) {
		if err := c.snapshot.ForgetPod(logger, pod); err != nil {
			// The next UpdateSnapshot forgets it.
			logger.Error(err, "Forgetting held room in the snapshot failed", "pod", klog.KObj(pod))
		}
	}
	c.heldPods = nil
}

// aheadMessage names the gangs for which room is held back, or is empty.
func (c *cycle) aheadMessage() string {
	if len(c.ahead) == 0 {
		return ""
	}
	text := "; room is held back for PodGroup " + c.ahead[0].rank.Key.String() + ", which is ahead"
	if n := len(c.ahead) - 1; n > 0 {
		text += fmt.Sprintf(", and %d more", n)
	}
	return text
}

// held says whether and why room is held for a gang.
type held int

const (
	heldNot held = iota
	heldForPreemption
	heldForStarving
)

// setHeld records whether room is held for a gang.
func (t *tracker) setHeld(key types.NamespacedName, h held) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if g := t.gangs[key]; g != nil {
		g.held = h
	}
}

// waits says whether a gang still lacks its minimum. For members above the minimum no
// room is held: it may have been lowered since.
func (t *tracker) waits(key types.NamespacedName, uid types.UID) bool {
	t.mu.RLock()
	defer t.mu.RUnlock()
	g := t.gangs[key]
	return g != nil && g.group != nil && g.group.UID == uid && g.complete() && g.lacksMinimum()
}

// giveUpHelp has a gang give up its right to be helped for a while.
func (t *tracker) giveUpHelp(key types.NamespacedName, d time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.line.GiveUpHelp(key, d, t.now())
	t.stir()
}

// offer tells the line that a gang has given up room.
func (t *tracker) offer(by types.NamespacedName) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.line.Happened(line.Event{Kind: line.Anything, By: by}, t.now())
	t.stir()
}

// places are copies of members that name their nodes.
func places(placements []*kube.Placement) []*framework.PodInfo {
	infos := make([]*framework.PodInfo, len(placements))
	for i, p := range placements {
		infos[i] = p.Assumed
	}
	return infos
}

// gracePeriod is how long a Pod may take to end when it is deleted.
func gracePeriod(pod *corev1.Pod) time.Duration {
	if seconds := pod.Spec.TerminationGracePeriodSeconds; seconds != nil {
		return time.Duration(*seconds) * time.Second
	}
	return corev1.DefaultTerminationGracePeriodSeconds * time.Second
}

// whole says whether the members that are placed are the minimum.
func (v *gangView) whole() bool {
	return podgroup.Holds(&v.group.Spec, v.placed)
}

// broken says whether members are placed, but too few.
func (v *gangView) broken() bool {
	return v.placed.Total > 0 && !v.whole()
}

func compareKeys(a, b types.NamespacedName) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}
