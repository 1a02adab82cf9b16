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
	// successionGrace is the length of a period that begins when this scheduler begins to lead. If another scheduler
	// binds a Pod that was first seen before the end of the period, that does not count as a conflict: the previous
	// leader may have bound the Pod. The period is long because the watch may report such a Pod late, for instance
	// after a dead connection.
	successionGrace = 90 * time.Second
	// conflictPeriod is the time between two log lines about conflicting schedulers.
	conflictPeriod = 10 * time.Minute
)

// conflicts counts bindings by another scheduler that serves the same scheduler name. Both schedulers then place the
// same Pods, each uses room that the other has planned with, and gangs are bound in part. Only the administrator can
// end that.
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

// boundElsewhere records that another scheduler has bound a waiting member. `known` is when this scheduler first saw
// the Pod, by its own clock. The Pod's creation time would not do, because the API server's clock may differ.
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
