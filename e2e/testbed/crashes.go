// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package testbed

import (
	"context"
	"flag"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/lockstep-k8s/lockstep/internal/localenv"
)

// crashSeed makes the moments of UnderCrashes the same again.
var crashSeed = flag.Uint64("crash-seed", 0, "seed of the moments at which a controller is killed and users act; 0 draws one")

// Life is a job's in a namespace, from its creation to its end. pause waits for a random time
// below most: the moment is what is tested.
type Life func(t *testing.T, namespace string, pause func(most time.Duration))

// UnderCrashes leads lives beside each other, while controllers with these options are killed at
// random moments, one after the other: so often at most, and then the last one goes on.
func (c *Cluster) UnderCrashes(t *testing.T, o localenv.ControllerOptions, kills int, lives map[string]Life) {
	t.Helper()
	drawn := *crashSeed
	if drawn == 0 {
		drawn = uint64(time.Now().UnixNano())
	}
	t.Logf("to have the same moments again: -crash-seed %d", drawn)
	ctx, stop := context.WithCancel(t.Context())
	var killer sync.WaitGroup
	var killed int
	var failure error
	killer.Go(func() { killed, failure = c.killAgainAndAgain(ctx, o, kills, rand.New(rand.NewPCG(drawn, 0))) })
	t.Run("lives", func(t *testing.T) {
		for i, name := range slices.Sorted(maps.Keys(lives)) {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				moments := rand.New(rand.NewPCG(drawn, uint64(i)+1))
				pause := func(most time.Duration) { PauseFor(t, time.Duration(moments.Int64N(int64(most)))) }
				namespace := c.Namespace(t)
				pause(10 * time.Second)
				lives[name](t, namespace, pause)
			})
		}
	})
	stop()
	killer.Wait()
	if failure != nil {
		t.Error(failure)
	}
	t.Logf("the controller was killed %d times", killed)
}

// killAgainAndAgain starts controllers and kills them at random moments, until ctx ends; so often
// at most, and then the last one goes on.
func (c *Cluster) killAgainAndAgain(ctx context.Context, o localenv.ControllerOptions, most int, random *rand.Rand) (killed int, err error) {
	for {
		controller, err := c.Cluster.StartController(ctx, o)
		if err != nil {
			return killed, err
		}
		// A third dies while it starts.
		if random.IntN(3) > 0 {
			if err := controller.WaitReady(ctx); err != nil {
				return killed, ignoreEnd(ctx, err)
			}
		}
		moment := time.After(time.Duration(random.Int64N(int64(2 * time.Second))))
		if killed == most {
			moment = nil
		}
		select {
		case <-moment:
			controller.Kill()
			killed++
		case <-ctx.Done():
			controller.Kill()
			return killed, nil
		}
	}
}

// ignoreEnd is the error of something that ctx has not ended.
func ignoreEnd(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// PauseFor waits for a time: the moment is what is tested.
func PauseFor(t testing.TB, d time.Duration) {
	select {
	case <-time.After(d):
	case <-t.Context().Done():
	}
}
