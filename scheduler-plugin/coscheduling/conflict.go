// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"context"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/status"
)

const (
	// successionGrace is how long after this scheduler began to lead a Pod must first be seen to show a conflict. The leader
	// before may have bound earlier Pods: a watch may lag until its connection is found dead, and then by a back-off.
	successionGrace = 90 * time.Second
	// conflictPeriod is the time between two log lines about conflicting schedulers.
	conflictPeriod = 10 * time.Minute
)

// conflicts counts the bindings by another scheduler that serves a name which is served here. Both schedulers place the same
// Pods, each plans with room that the other one takes, and gangs are bound in part. Only the administrator can end that.
type conflicts struct {
	// count counts a binding by the scheduler name of its Pod.
	count func(schedulerName string)
	// began is when this scheduler began to schedule, nil before.
	began atomic.Pointer[time.Time]
	log   rate.Sometimes
}

func newConflicts(count func(schedulerName string)) *conflicts {
	return &conflicts{count: count, log: rate.Sometimes{First: 1, Interval: conflictPeriod}}
}

// boundElsewhere records a waiting member that another scheduler has bound. known is when this scheduler first saw the
// Pod, by its own clock: the clock of creation times may differ.
func (r *conflicts) boundElsewhere(ctx context.Context, pod *corev1.Pod, known time.Time) {
	if began := r.began.Load(); began == nil || !known.After(began.Add(successionGrace)) {
		return
	}
	r.count(pod.Spec.SchedulerName)
	r.log.Do(func() {
		klog.FromContext(ctx).Error(nil, "Another scheduler places Pods of a name that is served here: stop one of the two, or have it serve another name",
			"schedulerName", pod.Spec.SchedulerName, "this", status.FieldManager, "other", "whoever bound the Pod", "pod", klog.KObj(pod), "node", pod.Spec.NodeName)
	})
}

// begin records that this scheduler begins to schedule.
func (r *conflicts) begin() {
	now := time.Now()
	r.began.Store(&now)
}
