// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
)

// TestASuccessorWhoseClockIsBehindWaitsNoLonger: a leader with a clock that is ahead, by more than a minute or by less, has
// put something off for a minute, and dies at once.
func TestASuccessorWhoseClockIsBehindWaitsNoLonger(t *testing.T) {
	for name, tc := range map[string]struct {
		framework func() *frameworkv1.Framework
		// begin has the wait begin.
		begin func(w *world)
	}{
		"for a retry of the Framework": {
			framework: func() *frameworkv1.Framework {
				f := framework(role("w", 1))
				f.Spec.RetryPolicy.FancyRetryPolicy = true
				return f
			},
			begin: func(w *world) {
				w.options.MaxConflictDelaySeconds = 60
				w.runPods()
				w.setPhase("fw-w-0", corev1.PodFailed, int32(frameworkv1.CodeContainerTransientConflictFailed))
				w.settle()
			},
		},
		"for a Pod to run": {
			framework: func() *frameworkv1.Framework {
				f := framework(role("w", 1))
				f.Spec.TaskRoles[0].PreparingTimeoutSeconds = ptr.To[int32](60)
				return f
			},
			begin: func(*world) {},
		},
	} {
		for _, ahead := range []time.Duration{time.Hour, 40 * time.Second} {
			t.Run(name+", by "+ahead.String(), func(t *testing.T) {
				w := newWorld(t, tc.framework())
				w.run()
				tc.begin(w)
				w.now = w.now.Add(-ahead)
				w.controller = w.remembered(w.written)
				w.run()
				put := transcript(w.readBack(w.written))
				w.now = w.now.Add(58 * time.Second)
				w.run()
				if got := transcript(w.readBack(w.written)); got != put {
					t.Errorf("too early the status is %s, and was %s", got, put)
				}
				w.now = w.now.Add(4 * time.Second)
				w.run()
				if got := transcript(w.readBack(w.written)); got == put {
					t.Errorf("after a minute the status still is %s", got)
				}
			})
		}
	}
}
