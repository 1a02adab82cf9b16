// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package gangs

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/queue"
)

// NamespaceChanged handles a change of a namespace: the API server may accept bindings there that it refused before.
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

// SetLeaving records that members of gangs are being preempted or, with leaving false, that this has failed. Pods that
// are no members are ignored. A gang that seemed able to spare the members, but has lost others meanwhile, is
// dissolved.
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

// DissolveAgain dissolves the gangs of some Pods again, where a gang was preempted as a whole and members are left.
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

// Happened passes an event that may help a gang to the queue. event is called only if the queue listens to the kind.
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

// Rerank updates the ranks of all gangs after a PriorityClass was created or deleted.
func (t *Gangs) Rerank() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, g := range t.gangs {
		t.queue.Rerank(g.rank(), t.config.Now())
		g.fell() // the event below wakes the others
	}
	// A gang that has fallen in rank may have to give way.
	t.queue.Happened(queue.Event{Kind: queue.Anything}, t.config.Now())
	t.due.stir()
}

// SetKept records why room is reserved for a gang: news.Preempting, news.Reserved or, without a reservation, "". nodes
// are the nodes for which members are to be nominated, by Pod UID.
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
