// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package adapter

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/lockstep-k8s/lockstep/controller/engine"
	"github.com/lockstep-k8s/lockstep/controller/engine/plan"
)

// decider makes the decisions for one owner (a job) of a kind whose status is always small, because the status records
// Pods only as counts and ranges of indexes.
type decider[O engine.Owner, S, N, M any] struct {
	engine.Whole[O, S]
	snapshot func(*engine.View[O, S], M) (N, error)
	decide   func(N, time.Time, plan.Entropy) (plan.Plan[S], M)
	// memory is the output of the last decision that the next one gets as input. It includes the decoded spec, so that
	// templates are decoded once for each version of an owner.
	memory M
}

// NewDecider returns a decider for an owner with a small status. decide is a pure function: snapshot builds its input
// N from the refreshed View, and decide gets the memory M that its last call returned.
func NewDecider[O engine.Owner, S, N, M any](
	snapshot func(*engine.View[O, S], M) (N, error), decide func(N, time.Time, plan.Entropy) (plan.Plan[S], M),
) engine.Decider[O, S] {
	return &decider[O, S, N, M]{snapshot: snapshot, decide: decide}
}

// Decide has the pure function decide, which speaks the engine's words.
func (d *decider[O, S, N, M]) Decide(view *engine.View[O, S], now time.Time, entropy plan.Entropy) (plan.Plan[S], error) {
	snapshot, err := d.snapshot(view, d.memory)
	if err != nil {
		return plan.Plan[S]{}, fmt.Errorf("reading the cache: %w", err)
	}
	next, memory := d.decide(snapshot, now, entropy)
	d.memory = memory
	return next, nil
}

// Encode encodes a status as it is stored.
func (d *decider[O, S, N, M]) Encode(status *S) ([]byte, error) { return json.Marshal(status) }
