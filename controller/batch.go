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

// runSlowly runs actions, pace of them at the same time. A pace of 0 is not yet
// known: then it begins with one and doubles up to most. It stops soon after the
// first error, and when enough says so. It returns the results of what it ran, and
// whether all went well.
func runSlowly(ctx context.Context, actions []lifecycle.Action, pace, most int, enough func() bool, do doer) ([]actionResult, bool) {
	var failed atomic.Bool
	watched := func(ctx context.Context, action lifecycle.Action) actionResult {
		result := do(ctx, action)
		if result.err != nil {
			failed.Store(true)
		}
		return result
	}
	stop := func() bool { return failed.Load() || enough() }
	if pace > 0 {
		return runBatch(ctx, actions, pace, stop, watched), !failed.Load()
	}
	var results []actionResult
	for batch := 1; len(actions) > 0 && (len(results) == 0 || !stop()); batch = min(2*batch, most) {
		size := min(batch, len(actions))
		if batch == most {
			size = len(actions)
		}
		ran := runBatch(ctx, actions[:size], batch, stop, watched)
		results = append(results, ran...)
		actions = actions[len(ran):]
	}
	return results, !failed.Load()
}
