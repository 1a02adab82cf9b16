// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package starts

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/whatif"
)

// history learns from the gangs that run, each time that somebody looks. It is empty after a restart.
type history struct {
	learned *learned
	running map[types.UID]run
}

// run is a gang that runs since a time.
type run struct {
	group *dialect.Group
	since time.Time
	until time.Time // when it was last seen to run
}

// look notes which gangs run, and learns from those that run no more.
func (h *history) look(s *whatif.Snapshot) {
	if h.learned == nil {
		h.learned = newLearned()
	}
	pods := make(map[dialect.Key][]*corev1.Pod)
	for _, pod := range s.Pods {
		if key, named := s.Links.KeyOf(pod); named && pod.Status.StartTime != nil && pod.Status.Phase == corev1.PodRunning && pod.DeletionTimestamp == nil {
			pods[key] = append(pods[key], pod)
		}
	}
	before := h.running
	h.running = make(map[types.UID]run)
	for _, group := range s.Groups {
		if members := pods[group.Key]; len(members) > 0 {
			h.running[group.UID] = run{group, s.Now.Add(-whatif.Ran(members, s.Now)), s.Now}
		}
	}
	for uid, was := range before {
		if _, runs := h.running[uid]; !runs {
			h.learned.ended(was.group.Key, was.group.Spec.Runtime.Expected, was.until.Sub(was.since))
		}
	}
}

// runs is Snapshot.Runs.
func (h *history) runs(group *dialect.Group, ran time.Duration) time.Duration {
	return h.learned.expected(group.Key, group.Spec.Runtime.Expected, ran)
}
