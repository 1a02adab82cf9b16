// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package feed

import (
	"context"
	"reflect"
	"slices"
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

func (*cluster) End(context.Context, int, bool) {}

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

// evicting is a cluster that gives all Pods of a job nodes at once, and evicts the Pods of job 0 half an hour later, once.
type evicting struct {
	cluster
	jobs    []workload.Job
	evicted bool
	ends    []bool
}

func (c *evicting) Create(_ context.Context, job int) {
	for pod := range c.jobs[job].Pods {
		c.feed.Bound(job, pod, pod)
	}
	if job != 0 || c.evicted {
		return
	}
	c.evicted = true
	go func() {
		<-c.After(30 * time.Minute)
		for range c.jobs[job].Pods {
			c.feed.Evicted(job)
		}
	}()
}

func (c *evicting) End(_ context.Context, job int, done bool) {
	c.ends = append(c.ends, done)
	c.feed.Evicted(job)
	if !done {
		c.feed.Bound(job, 1, 7) // it was on its way
	}
}

// TestAJobThatIsPreemptedRunsAgainFromItsBegin: its first run counts as preempted, and the second one takes the whole run
// time.
func TestAJobThatIsPreemptedRunsAgainFromItsBegin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &evicting{jobs: []workload.Job{{Runtime: time.Hour, Pods: 2, Units: 1}, {Runtime: time.Hour, Pods: 1, Units: 1}}}
		c.begin = time.Now()
		c.feed = New("any", c.jobs, c, &c.cluster, 10*time.Minute)
		outcome, err := c.feed.Run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		half := 30 * time.Minute
		want := []workload.Run{
			{Job: 0, End: half, Nodes: []int{0, 1}, Preempted: true},
			{Job: 1, End: time.Hour, Nodes: []int{0}},
			{Job: 0, Start: half, End: half + time.Hour, Nodes: []int{0, 1}},
		}
		if !reflect.DeepEqual(outcome.Runs, want) || outcome.PartTime != 0 {
			t.Errorf("in part for %s, and the runs are\n%+v, want\n%+v", outcome.PartTime, outcome.Runs, want)
		}
		if !slices.Equal(c.ends, []bool{false, true, true}) {
			t.Errorf("of what was ended this was done: %v", c.ends)
		}
	})
}
