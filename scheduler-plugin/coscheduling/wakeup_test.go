// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
)

// suspicious is a plugin that lets no Pod into the queue that it does not know.
type suspicious struct{ knows map[string]bool }

func (suspicious) Name() string { return "Suspicious" }

func (s suspicious) PreEnqueue(_ context.Context, pod *corev1.Pod) *fwk.Status {
	if s.knows[pod.Name] {
		return nil
	}
	return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, "unknown")
}

// TestNoPluginKeepsTheBellFromRinging, and one that keeps the first member back does not
// keep the gang from its cycle, if the others are the minimum.
func TestNoPluginKeepsTheBellFromRinging(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, all(makeNodes("node", 1, 4), makeGroup("gang", 2), makeMembers("gang", 3))...)
		w.others = []fwk.Plugin{suspicious{map[string]bool{"gang-1": true, "gang-2": true}}}
		w.start()
		w.eventually("the members that are let in are placed", func() bool { return w.placed("gang") == 2 })
	})
}
