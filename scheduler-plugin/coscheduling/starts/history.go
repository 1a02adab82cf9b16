// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package starts

import (
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/kube"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/whatif"
)

// history observes the running gangs at each call of look, and learns from them how long gangs run. It is empty after a
// restart.
type history struct {
	learned *learned
	running map[types.UID]run
}

// run is a running gang, with its start.
type run struct {
	group *dialect.Group
	since time.Time
	until time.Time // when the gang was last seen running
}

// look records which gangs run, and learns from gangs that have ended: they no longer run, and their group is gone or a
// Pod of theirs has ended. Gangs with a disrupted Pod did not end by themselves, so nothing is learned from them.
func (h *history) look(s *whatif.Snapshot) {
	if h.learned == nil {
		h.learned = newLearned()
	}
	pods := make(map[dialect.Key][]*corev1.Pod)
	ended, disrupted, exists := sets.New[dialect.Key](), sets.New[dialect.Key](), sets.New[types.UID]()
	for _, pod := range s.Pods {
		key, named := s.Links.KeyOf(pod)
		switch {
		case !named:
		case kube.ConditionOf(pod, corev1.DisruptionTarget) != nil:
			disrupted.Insert(key)
		case kube.HasEnded(pod):
			ended.Insert(key)
		case pod.Status.StartTime != nil && pod.Status.Phase == corev1.PodRunning && pod.DeletionTimestamp == nil:
			pods[key] = append(pods[key], pod)
		}
	}
	before := h.running
	h.running = make(map[types.UID]run)
	for _, group := range s.Groups {
		exists.Insert(group.UID)
		if members := pods[group.Key]; len(members) > 0 {
			h.running[group.UID] = run{group, s.Now.Add(-whatif.Ran(members, s.Now)), s.Now}
		}
	}
	for _, uid := range slices.Sorted(maps.Keys(before)) {
		was := before[uid]
		_, runs := h.running[uid]
		if key := was.group.Key; !runs && !disrupted.Has(key) && (ended.Has(key) || !exists.Has(uid)) {
			h.learned.ended(key, was.group.Spec.Runtime.Expected, was.until.Sub(was.since))
		}
	}
}

// runs implements Snapshot.Runs.
func (h *history) runs(group *dialect.Group, ran time.Duration, part float64) time.Duration {
	return h.learned.expected(group.Key, group.Spec.Runtime.Expected, ran, part)
}
