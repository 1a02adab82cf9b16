// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
)

// TestGangsOfOthersArePlacedWithoutLockstepsPodGroups: the API server serves none, and does so later.
func TestGangsOfOthersArePlacedWithoutLockstepsPodGroups(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		label := labelled("scheduling.x-k8s.io/pod-group", "theirs")
		w := newWorld(t, all(makeNodes("node", 1, 4), makePod("theirs-0", label), makePod("theirs-1", label), makeMembers("ours", 2))...)
		own := w.lock.Resources
		w.lock.Resources = nil
		w.serve(makeOtherGroup("theirs", 2))
		w.start()
		w.eventually("the gang of scheduler-plugins is placed", func() bool { return w.placed("theirs") == 2 })
		w.create(makeGroup("ours", 2))
		w.lock.Lock()
		w.lock.Resources = append([]*metav1.APIResourceList{}, append(own, w.lock.Resources...)...)
		w.lock.Unlock()
		w.condition("ours", metav1.ConditionFalse, schedulingv1alpha1.ReasonScheduled)
	})
}
