// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
)

// A Pod that names a PodGroup which does not exist waits for it: Pods and group may
// come in any order. If the group does not come, the Pod is told for what it waits.

const (
	// groupGrace is how long a PodGroup is missing, and a Pod waits for it, before the
	// Pod is told so. Whoever makes both makes either first.
	groupGrace = 3 * time.Second
	// The reasons of PodScheduled=False of such a Pod: there is no such group; there
	// can't be any; the group has come, and lacks members. A cluster autoscaler looks
	// for none of them: more nodes would not help.
	reasonNoGroup    = "PodGroupNotFound"
	reasonNotServed  = "PodGroupsNotServed"
	reasonIncomplete = "PodGroupIncomplete"
)

// tellNoGroups has Pods be told that the API server serves no PodGroups. Before that
// nobody is told anything while not all PodGroups are known.
func (t *tracker) tellNoGroups() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.noGroups {
		return // it serves them by now
	}
	t.tellsNoGroups = true
	for key := range t.gangs {
		t.report(key, 0)
	}
}

// waitsForGroup says whether a Pod would wait for its place if its PodGroup existed.
// The caller holds the lock.
func (t *tracker) waitsForGroup(g *gang, m *member) bool {
	return g.group == nil && (t.synced || t.tellsNoGroups) && state(m, t.ours) == memberWaiting
}

// unmarkedGroupless are the Pods that wait for a PodGroup and have not been told that
// it does not exist, or were told, and it does by now. later is when to ask again, 0
// for not before something changes.
func (t *tracker) unmarkedGroupless(key types.NamespacedName) (unmarked []types.UID, later time.Duration) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	g := t.gangs[key]
	if g == nil {
		return nil, 0
	}
	now := t.now()
	for uid, m := range g.members {
		if t.isToldOld(g, m) {
			unmarked = append(unmarked, uid)
		}
		if !t.waitsForGroup(g, m) || isMarked(m.pod, t.grouplessMark(key).reason) {
			continue
		}
		left := groupGrace - now.Sub(g.missedSince(m))
		if left <= 0 {
			unmarked = append(unmarked, uid)
		} else if later == 0 || left < later {
			later = left
		}
	}
	return unmarked, later
}

// missedSince is since when a Pod waits for a PodGroup that is missing.
func (g *gang) missedSince(m *member) time.Time {
	return later(m.seen, g.groupless)
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// isToldOld says whether a Pod waits for members of its gang and was told something
// else before. The caller holds the lock.
func (t *tracker) isToldOld(g *gang, m *member) bool {
	return g.group != nil && !g.complete() && state(m, t.ours) == memberWaiting &&
		(isMarked(m.pod, reasonNoGroup) || isMarked(m.pod, reasonNotServed) || isMarked(m.pod, reasonNotAMember))
}

// grouplessMark tells a Pod for what it waits. The caller holds the lock.
func (t *tracker) grouplessMark(key types.NamespacedName) mark {
	if t.noGroups {
		return mark{reason: reasonNotServed, event: true, message: fmt.Sprintf(
			"the Pod waits for PodGroup %s, and the API server serves no PodGroups: the CustomResourceDefinition %s.%s is missing",
			key.Name, schedulingv1alpha1.PodGroupPlural, schedulingv1alpha1.GroupName)}
	}
	return mark{reason: reasonNoGroup, event: true,
		message: fmt.Sprintf("there is no PodGroup %s in the namespace %s, and the Pod waits for it", key.Name, key.Namespace)}
}
