// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package feed

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lockstep-k8s/lockstep/internal/replay/workload"
)

// cluster gives a node to the first of the two Pods of each job.
type cluster struct {
	feed  *Feed
	begin time.Time
}

func (c *cluster) Now() time.Duration { return time.Since(c.begin) }

func (c *cluster) After(at time.Duration) <-chan time.Time { return time.After(at - c.Now()) }

func (c *cluster) Create(_ context.Context, job int) { c.feed.Bound(job, 0, job) }

func (*cluster) Started(context.Context, int) {}

func (*cluster) End(context.Context, int) {}

// TestGangsThatHoldEachOtherUpAreInPart until the replay gives them up.
func TestGangsThatHoldEachOtherUpAreInPart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		jobs := []workload.Job{{Runtime: time.Hour, Pods: 2, Units: 1}, {Submit: time.Minute, Runtime: time.Hour, Pods: 2, Units: 1}}
		c := &cluster{begin: time.Now()}
		c.feed = New("any", jobs, c, c, 10*time.Minute)
		outcome, err := c.feed.Run(t.Context())
		if want := 21 * time.Minute; err != nil || len(outcome.Runs) != 0 || outcome.PartTime != want {
			t.Errorf("%v: %d runs, in part for %s, want %s", err, len(outcome.Runs), outcome.PartTime, want)
		}
	})
}
