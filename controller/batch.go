// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"sync"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/controller/lifecycle"
)

// actionResult is what came of one action.
type actionResult struct {
	outcome  lifecycle.Outcome
	podGroup *schedulingv1alpha1.PodGroup
	err      error
}

// runBatch runs actions, some of them at the same time, and returns a result for
// each.
func runBatch(ctx context.Context, actions []lifecycle.Action, parallel int, do func(context.Context, lifecycle.Action) actionResult) []actionResult {
	results := make([]actionResult, len(actions))
	if len(actions) == 1 {
		results[0] = do(ctx, actions[0])
		return results
	}
	next := make(chan int)
	var workers sync.WaitGroup
	for range min(parallel, len(actions)) {
		workers.Go(func() {
			for i := range next {
				results[i] = do(ctx, actions[i])
			}
		})
	}
	for i := range actions {
		next <- i
	}
	close(next)
	workers.Wait()
	return results
}

// runSlowly runs actions in batches, each twice as large as the one before, up to
// most, and stops after the first batch with an error. It returns the results of
// what it ran and the size of the batch to begin with next time.
func runSlowly(ctx context.Context, actions []lifecycle.Action, batch, most int, do func(context.Context, lifecycle.Action) actionResult) ([]actionResult, int) {
	var results []actionResult
	for len(actions) > 0 {
		size := min(batch, len(actions))
		ran := runBatch(ctx, actions[:size], size, do)
		results = append(results, ran...)
		for _, result := range ran {
			if result.err != nil {
				return results, 1
			}
		}
		actions = actions[size:]
		batch = min(2*batch, most)
	}
	return results, batch
}
