// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/line"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/room"
)

// TestOwnHoldIsNoEvent: a gang that gives up held room is not planned again for
// that, or one that moves its hold in each cycle would never rest.
func TestOwnHoldIsNoEvent(t *testing.T) {
	w := newWorld(t, all(makeGroup("gang", 1), makeMembers("gang", 1))...)
	stop := w.start()
	w.condition("gang", metav1.ConditionTrue, schedulingv1alpha1.ReasonNotEnoughResources)
	stop()
	member, err := framework.NewPodInfo(makePod("gang-0", inGroup("gang")))
	if err != nil {
		t.Fatal(err)
	}
	w.engine().offer(room.NewVacancy(room.Gang{Rank: line.Rank{Key: gangNamed("gang")}}, []*framework.PodInfo{member}, time.Time{}))
	tracker := w.tracker()
	tracker.mu.RLock()
	defer tracker.mu.RUnlock()
	if tracker.line.IsReady(gangNamed("gang")) {
		t.Error("the gang is to be planned again because of its own hold")
	}
}
