// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"strings"
	"testing"
	"time"

	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/news"
)

// TestAMemberAboveTheMinimumIsToldWhatItLacks, in its own condition and by an event: the conditions of its PodGroup say
// that all is well.
func TestAMemberAboveTheMinimumIsToldWhatItLacks(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, all(makeNodes("node", 1, 2), makeGroup("some", 1), makeMembers("some", 3))...)
		w.start()
		w.condition("some", metav1.ConditionFalse, schedulingv1alpha1.ReasonScheduled)
		w.eventually("the third member is told", func() bool { return w.marked("some-2") == 1 })
		told := w.scheduledCondition("some-2")
		for _, want := range []string{"PodGroup some has its minimum", "short of 1 cpu"} {
			if !strings.Contains(told.Message, want) {
				t.Errorf("message %q, want one with %q", told.Message, want)
			}
		}
		w.eventually("there is an event", func() bool { return w.recorded("FailedScheduling PodGroup some has its minimum") > 0 })
	})
}

// TestMembersThatWaitHaveEvents has all members of a gang have the condition, and some of them an event, so that a gang of
// thousands makes no storm.
func TestMembersThatWaitHaveEvents(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, all(makeNodes("node", 1, 2), makeGroup("gang", 50), makeMembers("gang", 50))...)
		w.start()
		w.eventually("all members are told", func() bool { return w.marked("gang") == 50 })
		time.Sleep(10 * time.Minute)
		if got := w.recorded("FailedScheduling"); got < 1 || got > 30 {
			t.Errorf("there are %d events, want a few", got)
		}
	})
}

// TestAGangIsToldThatAMemberIsNotBoundYet has one member of three wait for a volume that nobody provisions, while the
// others run.
func TestAGangIsToldThatAMemberIsNotBoundYet(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		late := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "local"}, Provisioner: "nobody.example.com", VolumeBindingMode: ptr.To(storagev1.VolumeBindingWaitForFirstConsumer)}
		w := newWorld(t, all(makeNodes("node", 3, 1), late, volumeClaims("ring", 1), makeGroup("ring", 3), makePod("ring-0", inGroup("ring"), withVolumeClaim),
			makePod("ring-1", inGroup("ring")), makePod("ring-2", inGroup("ring")))...)
		w.start()
		w.eventually("two members are bound", func() bool { return w.placed("ring") == 2 })
		told := w.condition("ring", metav1.ConditionTrue, schedulingv1alpha1.ReasonBinding)
		for _, want := range []string{"2 of at least 3 members are bound", "ring-0 has a place on node-", "PersistentVolumeClaim ring-0"} {
			if !strings.Contains(told.Message, want) {
				t.Errorf("message %q, want one with %q", told.Message, want)
			}
		}
		w.eventually("the Pod has an event", func() bool { return w.recorded(news.ReasonSlowBinding) == 1 })
	})
}
