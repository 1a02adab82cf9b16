// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package place

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"

	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/ends"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/gangs"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/room"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/victims"
)

// mayPreemptOverrun reports whether the gang may preempt work that runs longer than its estimate.
func mayPreemptOverrun(s *seeker) bool {
	own := s.cluster.Own
	return s.cluster.PreemptOverrun && s.gang.First && s.gang.MayPreempt && own != nil && own.Reason == room.InTime
}

// overrunWork returns the work that the gang may preempt because it runs longer than its estimate. This is work on the
// nodes reserved for the gang that does not outrank the gang. If the gang fits without this work, all other work that
// the gang waited for has ended.
func overrunWork(s *seeker) prey {
	pods, of := sets.New[types.UID](), sets.New[dialect.Key]()
	for _, name := range s.cluster.Own.Nodes() {
		node, err := s.cluster.Snapshot.Get(name)
		if err != nil {
			continue // the node is gone
		}
		for _, info := range node.GetPods() {
			pods.Insert(info.GetPod().UID)
			if key, named := s.cluster.KeyOf(info.GetPod()); named {
				of.Insert(key)
			}
		}
	}
	now, priority := s.cluster.Now(), s.gang.Rank.Priority
	overruns := func(pod *corev1.Pod, expected time.Duration) bool {
		return expected > 0 && victims.Ran(pod, now) > expected
	}
	return func(pod *corev1.Pod, standing *gangs.Standing) bool {
		if standing == nil {
			return pods.Has(pod.UID) && corev1helpers.PodPriority(pod) <= priority && overruns(pod, ends.Estimate(pod))
		}
		return of.Has(standing.Group.Key) && standing.Rank.Priority <= priority && overruns(pod, standing.Group.Spec.Runtime.Expected)
	}
}
