// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package gangs

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/queue"
)

// NamespaceChanged records that a namespace has changed: bindings there may be accepted from now on.
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

// SetLeaving records that members of gangs are being preempted, or that it came
// to nothing. Other Pods are none of its business. A gang that seemed able to spare them, and
// has lost others meanwhile, is dissolved.
func (t *Gangs) SetLeaving(pods []*corev1.Pod, leaving bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	whole := make(map[*gang]bool) // whether it was, of those concerned
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

// DissolveAgain asks for the rest to be dissolved of the gangs of some Pods that were preempted as a whole, and of which
// something is left.
func (t *Gangs) DissolveAgain(pods []*corev1.Pod) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, pod := range pods {
		if g, m := t.memberOf(pod); m != nil && g.preempted {
			t.dissolveIfBroken(g)
		}
	}
}

// Wake has the gang planned again as soon as its back-off allows.
func (t *Gangs) Wake(key dialect.Key) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.queue.Wake(key, t.config.Now())
	t.due.stir()
}

// Happened tells the gangs of an event of a kind that may help one. The event is only made
// if one listens to its kind.
func (t *Gangs) Happened(kind queue.EventKind, event func() queue.Event) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.queue.Listens(kind) {
		return
	}
	t.queue.Happened(event(), t.config.Now())
	t.due.stir()
}

// Offer tells the others that a gang has given up room.
func (t *Gangs) Offer(by dialect.Key) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.offer(by)
}

// Rerank gives all gangs their places in the queue anew: a PriorityClass has come or gone.
func (t *Gangs) Rerank() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, g := range t.gangs {
		t.queue.Rerank(g.rank(), t.config.Now())
		g.fell() // all are told below
	}
	// A gang that others outrank only now may give way to them.
	t.queue.Happened(queue.Event{Kind: queue.Anything}, t.config.Now())
	t.due.stir()
}

// SetKept records for what room is kept for a gang, news.Preempting or news.Reserved; empty
// if none is. Nodes are those for which members are to be nominated meanwhile.
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
