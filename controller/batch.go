// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"sync"
	"sync/atomic"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/controller/lifecycle"
)

// actionResult is what came of one action.
type actionResult struct {
	outcome  lifecycle.Outcome
	podGroup *schedulingv1alpha1.PodGroup
	err      error
}

// doer runs one action.
type doer func(context.Context, lifecycle.Action) actionResult

// runBatch runs actions, so many of them at the same time, and returns the
// results. It begins no more actions once enough says so; those are left out.
func runBatch(ctx context.Context, actions []lifecycle.Action, parallel int, enough func() bool, do doer) []actionResult {
	if len(actions) == 1 {
		return []actionResult{do(ctx, actions[0])}
	}
	results := make([]actionResult, len(actions))
	next := make(chan int)
	var workers sync.WaitGroup
	for range min(parallel, len(actions)) {
		workers.Go(func() {
			for i := range next {
				results[i] = do(ctx, actions[i])
			}
		})
	}
	begun := 0
	for ; begun < len(actions) && (begun == 0 || !enough()); begun++ {
		next <- begun
	}
	close(next)
	workers.Wait()
	return results[:begun]
}

// runSlowly runs actions in batches, each twice as large as the one before, until
// one has most of them: from then on so many are under way all the time. It stops
// soon after the first error, and when enough says so. It returns the results of
// what it ran and the size of the batch to begin with next time.
func runSlowly(ctx context.Context, actions []lifecycle.Action, batch, most int, enough func() bool, do doer) ([]actionResult, int) {
	var failed atomic.Bool
	watched := func(ctx context.Context, action lifecycle.Action) actionResult {
		result := do(ctx, action)
		if result.err != nil {
			failed.Store(true)
		}
		return result
	}
	stop := func() bool { return failed.Load() || enough() }
	var results []actionResult
	for len(actions) > 0 && (len(results) == 0 || !stop()) {
		size := min(batch, len(actions))
		if batch >= most {
			size = len(actions)
		}
		ran := runBatch(ctx, actions[:size], min(batch, most), stop, watched)
		results = append(results, ran...)
		actions = actions[len(ran):]
		batch = min(2*batch, most)
	}
	if failed.Load() {
		return results, 1
	}
	return results, batch
}
