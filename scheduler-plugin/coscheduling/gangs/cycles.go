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

// Cycles begins and ends the scheduling cycles of gangs. Only one cycle runs at a time. Cycles is safe for concurrent
// use.
type Cycles struct {
	Of *Gangs
}

// Next returns the priority of the gang to plan now; `now` is false if there is none. `again` is when to call Next
// again if nothing happens before, zero for never.
func (c Cycles) Next() (priority int32, now bool, again time.Time) {
	t := c.Of
	t.mu.Lock()
	defer t.mu.Unlock()
	stage := t.stage(t.config.Now())
	next, now := t.queue.Next(t.config.Now())
	return next.Priority, now, times.Sooner(t.queue.Until(), stage)
}

// Begin begins the cycle of the next gang, and returns a View of the gang. The result is false if no gang may have a
// cycle now. It is also false if the next gang has a lower priority than the given one, or has the given priority and
// became due after dueAt.
func (c Cycles) Begin(priority int32, dueAt time.Time) (View, bool) {
	view, ok := c.begin(priority, dueAt)
	c.classify(&view)
	return view, ok
}

// classify computes the class keys that a View lacks. As this takes long, it happens without the lock, which all
// watches need. Equal keys share one string.
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

// begin is Begin without classify.
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
	view.Since, view.IsFirst = t.queue.Since(g.key), t.queue.IsFirst(g.key)
	return view, true
}

// Assume records the nodes that a cycle has chosen for members, by the UID of the Pod. The result is false, and nothing
// is recorded, if the group or its members have changed since the cycle began, so that the minimum would not hold with
// these nodes.
func (c Cycles) Assume(view *View, nodes map[types.UID]string) bool {
	t := c.Of
	t.mu.Lock()
	defer t.mu.Unlock()
	g := t.gangs[view.Key]
	if g == nil || !g.isOf(view.Group.UID) || !g.assume(nodes, t.config.Current, t.config.Now()) {
		return false
	}
	announce(g)
	// The same cycle goes on with the rest, unless the rest is gone.
	rest := len(nodes) < len(view.Waiting) && g.complete()
	if isStaged(g) {
		countStage(g)
	}
	if _, slow := slow(g, t.config.Now()); !slow.IsZero() {
		t.due.report(g.key, slow.Sub(t.config.Now())) // reports a slow binding
	}
	t.queue.Placed(g.key, rest, t.config.Now())
	if !rest {
		t.enqueue(g) // members have come meanwhile
	}
	return true
}

// RefuseAlike refuses the gang in its cycle if a gang of the same shape was refused just before. It reports whether it has
// refused the gang. `runs` is how long the gang runs, 0 if unknown.
func (c Cycles) RefuseAlike(key dialect.Key, shape string, runs time.Duration) bool {
	t := c.Of
	t.mu.Lock()
	defer t.mu.Unlock()
	_, ok := t.queue.RefuseAlike(key, shape, runs, t.config.Now())
	if ok {
		t.due.report(key, 0)
	}
	return ok
}

// Refuse ends the cycle of a gang that found no place. uid is the UID of the PodGroup that was planned. If the gang has
// another PodGroup now, Refuse does nothing.
func (c Cycles) Refuse(key dialect.Key, uid types.UID, why queue.Refusal, terms queue.Terms) {
	t := c.Of
	t.mu.Lock()
	defer t.mu.Unlock()
	g := t.gangs[key]
	if g == nil || !g.isOf(uid) {
		return
	}
	if !g.complete() {
		t.queue.Leave(key, t.config.Now()) // the last waiting member has gone during the cycle
	}
	t.queue.Refused(key, why, terms, t.config.Now())
	t.due.report(key, 0)
}

// FailedBinding is a member that could not be bound.
type FailedBinding struct {
	Pod *corev1.Pod
	// Message is the reason for users.
	Message string
	// Refused reports that the API server will not accept the binding later either: a policy or a webhook refuses it,
	// or the namespace is being deleted.
	Refused bool
	// Terms are the gang's back-off times.
	Terms queue.Terms
}

// Unassume records that a member could not be bound. The gang is planned again after a back-off. All failures of one
// placement count as one failure.
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
