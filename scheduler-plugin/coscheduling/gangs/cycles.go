// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package gangs

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-k8s/lockstep/internal/times"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/queue"
)

// Cycles begins and ends the scheduling cycles of gangs. It is safe for concurrent use, and one cycle runs at a time.
type Cycles struct {
	Of *Gangs
}

// Next is the priority of the gang that is to be planned now, if there is one, and when
// to ask again if nothing happens before; zero for never.
func (c Cycles) Next() (priority int32, now bool, again time.Time) {
	t := c.Of
	t.mu.Lock()
	defer t.mu.Unlock()
	stage := t.stage(t.config.Now())
	next, now := t.queue.Next(t.config.Now())
	return next.Priority, now, times.Sooner(t.queue.Until(), stage)
}

// Begin begins the cycle of the gang that is next, and returns it as its cycle finds it. It
// returns false if none is to be planned now, its priority is lower than this, or it is no
// higher and the gang was not due at this time.
func (c Cycles) Begin(priority int32, dueAt time.Time) (View, bool) {
	view, ok := c.begin(priority, dueAt)
	c.classify(&view)
	return view, ok
}

// classify sets the class keys of a View that are not known yet. A key takes long to make, and all that watch need the lock:
// so they are made without it. Members that are alike share the text.
func (c Cycles) classify(view *View) {
	t := c.Of
	shared := make(map[string]string)
	var made []int
	for i, key := range view.ClassKeys {
		if key == "" {
			key = t.config.ClassKey(view.Waiting[i], view.Key.RoleOf(view.Waiting[i]))
			made = append(made, i)
		}
		if same, ok := shared[key]; ok {
			key = same
		}
		shared[key], view.ClassKeys[i] = key, key
	}
	if len(made) == 0 {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	g := t.gangs[view.Key]
	if g == nil {
		return
	}
	for _, i := range made {
		if m := g.members[view.Waiting[i].UID]; m != nil && m.pod == view.Waiting[i] {
			m.class = view.ClassKeys[i]
		}
	}
}

// begin is Begin without the class keys that are not known yet.
func (c Cycles) begin(priority int32, dueAt time.Time) (View, bool) {
	t := c.Of
	t.mu.Lock()
	defer t.mu.Unlock()
	next, ok := t.queue.Next(t.config.Now())
	if !ok || next.Priority < priority || next.Priority == priority && t.queue.DueSince().After(dueAt) {
		return View{}, false
	}
	g := t.gangs[next.Key]
	view := viewOf(g)
	view.Failures = t.queue.Failures(g.key)
	t.queue.Begin(g.key, g.waitsSince(t.config.Now()), t.config.Now())
	view.Since = t.queue.Since(g.key)
	return view, true
}

// Assume records where a cycle has put members, by UID, and says whether that still
// keeps the gang's minimum. If not, because the group or its members have changed since
// the cycle began, nothing is recorded.
func (c Cycles) Assume(view *View, nodes map[types.UID]string) bool {
	t := c.Of
	t.mu.Lock()
	defer t.mu.Unlock()
	g := t.gangs[view.Key]
	if g == nil || !g.isOf(view.Group.UID) || !g.assume(nodes, t.config.Current, t.config.Now()) {
		return false
	}
	announce(g)
	// Of the rest the cycle tells in a moment, unless it is gone.
	rest := len(nodes) < len(view.Waiting) && g.complete()
	if isStaged(g) {
		countStage(g)
	}
	if _, slow := slow(g, t.config.Now()); !slow.IsZero() {
		t.due.report(g.key, slow.Sub(t.config.Now())) // if it is not bound by then
	}
	t.queue.Placed(g.key, rest, t.config.Now())
	if !rest {
		t.enqueue(g) // members have come meanwhile
	}
	return true
}

// Alike ends the cycle of a gang whose shape is known to find no place now, and says whether
// it did.
func (c Cycles) Alike(key dialect.Key, shape string) bool {
	t := c.Of
	t.mu.Lock()
	defer t.mu.Unlock()
	_, ok := t.queue.Alike(key, shape, t.config.Now())
	if ok {
		t.due.report(key, 0)
	}
	return ok
}

// Refuse ends the cycle of a gang that found no place. The UID is that of the group that was
// planned: one that took its name since has nothing to do with it.
func (c Cycles) Refuse(key dialect.Key, uid types.UID, why queue.Refusal, terms queue.Terms) {
	t := c.Of
	t.mu.Lock()
	defer t.mu.Unlock()
	g := t.gangs[key]
	if g == nil || !g.isOf(uid) {
		return
	}
	if !g.complete() {
		t.queue.Leave(key, t.config.Now()) // its last member that waited has gone in its cycle
	}
	t.queue.Refused(key, why, terms, t.config.Now())
	t.due.report(key, 0)
}

// FailedBinding is a member that could not be bound.
type FailedBinding struct {
	Pod *corev1.Pod
	// Message says why, to be told.
	Message string
	// Refused says that the API server has refused the binding for good: by a policy or a webhook, or because the
	// namespace is being deleted.
	Refused bool
	// Terms are those by which the gang backs off.
	Terms queue.Terms
}

// Unassume records that a member could not be bound, and has its gang planned again
// after a back-off. The members of one placement that fail are one failure.
func (c Cycles) Unassume(f FailedBinding) {
	t := c.Of
	t.mu.Lock()
	defer t.mu.Unlock()
	g, m := t.memberOf(f.Pod)
	if m == nil || m.assumed == "" {
		return
	}
	if first := g.unassume(m, f.Message, f.Refused, t.config.Now()); first {
		t.queue.Unbound(g.key, f.Terms, t.config.Now())
	}
	t.changed(g)
	if m.attempt == givenBack {
		t.dissolveIfBroken(g)
	}
}

// IsFirst says whether a gang has the right to be helped now.
func (c Cycles) IsFirst(key dialect.Key) bool {
	t := c.Of
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.queue.IsFirst(key, t.config.Now())
}
