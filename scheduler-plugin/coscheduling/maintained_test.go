// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	schedulertesting "k8s.io/kubernetes/pkg/scheduler/testing"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/maintenance"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/place"
)

// maintainedFrom has nodes be maintained from a time on.
func (w *world) maintainedFrom(name, at string) {
	w.t.Helper()
	w.changeNode(name, func(node *corev1.Node) {
		delete(node.Annotations, schedulingv1alpha1.AnnotationMaintenanceFrom)
		if at != "" {
			metav1.SetMetaDataAnnotation(&node.ObjectMeta, schedulingv1alpha1.AnnotationMaintenanceFrom, at)
		}
	})
}

// TestNothingStartsThatRunsIntoMaintenance in an hour, but what ends before, and Pods of DaemonSets.
func TestNothingStartsThatRunsIntoMaintenance(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, makeNodes("node", 1, 16)...)
		w.noBackoff = true
		w.maintainedFrom("node-0", time.Now().Add(time.Hour).Format(time.RFC3339))
		w.start()
		ordinary := func(name, seconds string, options ...podOption) *corev1.Pod {
			return makePod(name, append(options, func(p *schedulertesting.PodWrapper) {
				if seconds != "" {
					p.Annotation(schedulingv1alpha1.AnnotationExpectedRuntime, seconds)
				}
			})...)
		}
		for group, seconds := range map[string]int32{"long": 7200, "short": 1200} {
			w.create(makeGroup(group, 2, runsFor(seconds)))
			for _, member := range makeMembers(group, 2) {
				w.create(member)
			}
		}
		w.create(makeGroup("unknown", 1))
		w.create(makePod("unknown-0", inGroup("unknown")))
		w.create(ordinary("ordinary-long", "7200"))
		w.create(ordinary("ordinary-unknown", ""))
		w.create(ordinary("ordinary-short", "1200"))
		w.create(ordinary("daemon", "", func(p *schedulertesting.PodWrapper) {
			p.OwnerReferences = []metav1.OwnerReference{{Kind: "DaemonSet", Name: "agents", Controller: new(true)}}
		}))
		w.eventually("what ends before has started", func() bool {
			return w.placed("short") == 2 && w.placed("ordinary-short") == 1 && w.placed("daemon") == 1
		})
		w.eventually("the rest is told that it waits", func() bool {
			return w.marked("long") == 2 && w.marked("unknown") == 1 && w.marked("ordinary-long") == 1 && w.marked("ordinary-unknown") == 1
		})
		if message := w.condition("long", metav1.ConditionTrue, schedulingv1alpha1.ReasonNotEnoughResources).Message; !strings.Contains(message, place.Closed) {
			t.Errorf("the gang is told %q", message)
		}
		w.maintainedFrom("node-0", "")
		ended := time.Now()
		w.eventually("all has started without maintenance", func() bool {
			return w.placed("long") == 2 && w.placed("unknown") == 1 && w.placed("ordinary") == 3
		})
		if waited := time.Since(ended); waited > time.Second {
			t.Errorf("after the end of the maintenance the last Pod has waited %v", waited)
		}
	})
}

// TestAMaintenanceThatIsNoTimeDoesNotCount, and the node is told so.
func TestAMaintenanceThatIsNoTimeDoesNotCount(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, all(makeNodes("node", 1, 1), makeGroup("gang", 1), makePod("gang-0", inGroup("gang")))...)
		w.maintainedFrom("node-0", "tomorrow")
		w.start()
		w.eventually("the gang is placed", func() bool { return w.placed("gang") == 1 })
		w.eventually("the node is told", func() bool {
			for len(w.recorder.Events) > 0 {
				if strings.Contains(<-w.recorder.Events, maintenance.ReasonInvalidMaintenance) {
					return true
				}
			}
			return false
		})
	})
}
