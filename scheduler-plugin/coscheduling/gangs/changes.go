// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package gangs

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/queue"
)

// NamespaceChanged handles a change of a namespace. The API server may now accept bindings there that it refused
// before, so gangs with refused bindings are planned again.
func (t *Gangs) NamespaceChanged(namespace string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for key, g := range t.gangs {
		if key.Namespace == namespace && g.bindings.refused > 0 {
			g.bindings.pardon()
			t.queue.Wake(key, t.config.Now())
			t.due.stir()
		}
	}
}

// SetLeaving records that members of gangs are being preempted or, if leaving is false, that their preemption has
// failed. It ignores Pods that are not members. If a gang that could spare the members has lost others meanwhile and
// now lacks its minimum, the rest of the gang is evicted, too.
func (t *Gangs) SetLeaving(pods []*corev1.Pod, leaving bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	whole := make(map[*gang]bool) // whether the gang had its minimum before
	for _, pod := range pods {
		g, m := t.memberOf(pod)
		if m == nil {
			continue
		}
		if _, known := whole[g]; !known {
			whole[g] = g.group != nil && lastHeld(g).HeldBy(g.existing(t.config.Current))
		}
		g.setLeaving(m, leaving)
		t.changed(g)
	}
	for g, was := range whole {
		if was && leaving {
			t.dissolveIfBroken(g)
		}
	}
}

// DissolveAgain handles Pods of gangs that were preempted as a whole. If other members of such a gang are left, they
// are evicted again.
func (t *Gangs) DissolveAgain(pods []*corev1.Pod) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, pod := range pods {
		if g, m := t.memberOf(pod); m != nil && g.preempted {
			t.dissolveIfBroken(g)
		}
	}
}

// Wake makes a gang be planned again as soon as its back-off allows.
func (t *Gangs) Wake(key dialect.Key) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.queue.Wake(key, t.config.Now())
	t.due.stir()
}

// Happened passes an event that may help a gang on to the queue. event returns the event, and is called only if an
// event of this kind could help a gang.
func (t *Gangs) Happened(kind queue.EventKind, event func() queue.Event) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.queue.Listens(kind) {
		return
	}
	t.queue.Happened(event(), t.config.Now())
	t.due.stir()
}

// Offer wakes the gangs that may use room which a gang has given up.
func (t *Gangs) Offer(by dialect.Key) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.offer(by)
}

// WakeWithin wakes the gangs that end before `from` if started now. From then on room is reserved for another gang; before, it was
// reserved from an earlier time on.
func (t *Gangs) WakeWithin(from time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.config.Now()
	t.queue.WakeWithin(from.Sub(now), now)
	t.due.stir()
}

// Rerank updates the ranks of all gangs after a PriorityClass was created or deleted.
func (t *Gangs) Rerank() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, g := range t.gangs {
		t.queue.Rerank(g.rank(), t.config.Now())
		g.noteRank() // the event below wakes the others
	}
	// A gang that has fallen in rank may have to give way.
	t.queue.Happened(queue.Event{Kind: queue.Anything}, t.config.Now())
	t.due.stir()
}

// SetKept records why room is reserved for a gang: news.Preempting, news.Reserved or, if none is reserved, "". nodes
// are the nodes for which members are to be nominated, by the UID of the Pod.
func (t *Gangs) SetKept(key dialect.Key, uid types.UID, kept string, nodes map[types.UID]string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if g := t.gangs[key]; g != nil && g.isOf(uid) {
		g.kept, g.nominees = kept, nodes
		if kept == "" {
			t.due.report(key, 0)
		}
	}
}
