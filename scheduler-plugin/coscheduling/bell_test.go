// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"
)

// TestTheBellRingsOnceForTheHighest: however often it rings, one Pod of it is in the queue,
// with the highest priority for which it rang.
func TestTheBellRingsOnceForTheHighest(t *testing.T) {
	inner := &realQueue{pods: map[types.UID]*corev1.Pod{}}
	b := &bell{queue: inner}
	hangs := func(when string, want ...int32) {
		t.Helper()
		var got []int32
		for _, pod := range inner.pods {
			got = append(got, *pod.Spec.Priority)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("priorities in the queue %s (-want, +got):\n%s", when, diff)
		}
	}
	hear := func() (priority int32) {
		t.Helper()
		for uid, pod := range inner.pods {
			delete(inner.pods, uid)
			priority, ok := b.heard(pod)
			if !ok {
				t.Error("the bell's Pod is taken for another one")
			}
			return priority
		}
		return 0
	}
	b.ring(t.Context(), 5)
	b.ring(t.Context(), 5)
	b.ring(t.Context(), 3)
	hangs("when it rang for 5, and for 3", 5)
	b.ring(t.Context(), 7)
	hangs("when it rang for 7, too", 7)
	if got := hear(); got != 7 {
		t.Errorf("it is heard for %d, want 7", got)
	}
	hangs("when it was heard")
	b.ring(t.Context(), 1)
	hangs("when it rang again", 1)
	if _, ok := b.heard(makePod("ordinary", ofPriority(1))); ok {
		t.Error("an ordinary Pod is taken for the bell's")
	}
}

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
// keep the gang from its turn, if the others are the minimum.
func TestNoPluginKeepsTheBellFromRinging(t *testing.T) {
	w := newWorld(t, all(makeNodes("node", 1, 4), makeGroup("gang", 2), makeMembers("gang", 3))...)
	w.others = []fwk.Plugin{suspicious{map[string]bool{"gang-1": true, "gang-2": true}}}
	w.start()
	w.eventually("the members that are let in are placed", func() bool { return w.placed("gang") == 2 })
}
