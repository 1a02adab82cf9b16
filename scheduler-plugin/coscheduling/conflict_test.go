// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestAPodThatSomebodyElseHasBoundShowsAConflict, unless it was known before this scheduler led: then it
// was the one that led before. The clock of who says when it was created may be wrong.
func TestAPodThatSomebodyElseHasBoundShowsAConflict(t *testing.T) {
	for name, tc := range map[string]struct {
		known time.Duration // after the lead began
		want  int
	}{
		"it has come since":     {2 * time.Minute, 1},
		"it was there before":   {-time.Minute, 0},
		"it came with the lead": {time.Minute, 0},
	} {
		for _, skew := range []time.Duration{0, -time.Hour, time.Hour} {
			t.Run(fmt.Sprintf("%s, and the clock of others is %v ahead", name, skew), func(t *testing.T) {
				inBubble(t, func(t *testing.T) {
					counted := map[string]int{}
					r := newConflicts(func(schedulerName string) { counted[schedulerName]++ })
					r.begin()
					known := time.Now().Add(tc.known)
					pod := makePod("gang-0", onNode("node-0"))
					pod.CreationTimestamp = metav1.NewTime(known.Add(skew))
					r.boundElsewhere(t.Context(), pod, known)
					if counted[testScheduler] != tc.want || len(counted) > 1 {
						t.Errorf("counted %v, want %d of %s", counted, tc.want, testScheduler)
					}
				})
			})
		}
	}
}
