//go:build e2e

// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"flag"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/lockstep-k8s/lockstep/e2e/testbed"
	"github.com/lockstep-k8s/lockstep/internal/localenv"
)

var seed = flag.Uint64("seed", 0, "seed of the moments at which the controller is killed and users act; 0 draws one")

// allKinds runs jobs of every kind.
var allKinds = localenv.WithVolcanoJobs(localenv.WithKubeflowJobs("takeJobs: All").Config)

// life creates jobs in a namespace, acts as their user, and checks how they end. pause waits for a
// random time below most: the moment is what is tested.
type life func(t *testing.T, namespace string, pause func(most time.Duration))

// TestControllerCrashes kills the controller at random moments while jobs of every kind are created,
// retried, commanded, suspended, rescaled and completed. Each job must end as its spec, its user and
// its Pods imply, as if nothing had happened, with the guarantees kept all the way.
func TestControllerCrashes(t *testing.T) {
	const (
		kills   = 25
		killing = time.Minute // On a slow machine fewer kills are as good: each takes longer.
	)
	drawn := *seed
	if drawn == 0 {
		drawn = uint64(time.Now().UnixNano())
	}
	t.Logf("to have the same moments again: -seed %d", drawn)
	lives := map[string]life{}
	for kind, of := range map[string]map[string]life{"Frameworks": frameworkLives(), "Volcano Jobs": volcanoLives(), "training jobs": trainingLives()} {
		for name, life := range of {
			lives[kind+" "+name] = life
		}
	}

	ctx, stop := context.WithCancel(t.Context())
	var killer sync.WaitGroup
	var killed int
	var failure error
	killer.Go(func() {
		killed, failure = killAgainAndAgain(ctx, kills, time.Now().Add(killing), rand.New(rand.NewPCG(drawn, 0)))
	})
	t.Run("lives", func(t *testing.T) {
		for i, name := range slices.Sorted(maps.Keys(lives)) {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				moments := rand.New(rand.NewPCG(drawn, uint64(i)+1))
				pause := func(most time.Duration) {
					testbed.PauseFor(t, time.Duration(moments.Int64N(int64(most))))
				}
				namespace := cluster.Namespace(t)
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

// killAgainAndAgain starts controllers and kills them at random moments, so often and until a time at
// most. The last controller runs until ctx ends.
func killAgainAndAgain(ctx context.Context, most int, until time.Time, random *rand.Rand) (killed int, err error) {
	for {
		controller, err := cluster.Cluster.StartController(ctx, allKinds)
		if err != nil {
			return killed, err
		}
		// A third dies while it starts.
		if random.IntN(3) > 0 {
			if err := controller.WaitReady(ctx); err != nil && ctx.Err() == nil {
				return killed, err
			}
		}
		moment := time.After(time.Duration(random.Int64N(int64(2 * time.Second))))
		if killed == most || time.Now().After(until) {
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
