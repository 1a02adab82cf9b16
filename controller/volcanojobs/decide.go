// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package volcanojobs

import (
	"encoding/json"
	"fmt"
	"time"

	batchv1alpha1 "github.com/lockstep-k8s/lockstep/apis/batch/v1alpha1"
	"github.com/lockstep-k8s/lockstep/controller/engine"
	"github.com/lockstep-k8s/lockstep/controller/engine/plan"
	"github.com/lockstep-k8s/lockstep/controller/volcano"
)

// decider decides on one Job. Its status is always small: what it has of Pods are numbers
// and ranges of indexes.
type decider struct {
	engine.Whole[*Job, batchv1alpha1.JobStatus]
	core *Core
	// memory is what the last decision wants to know again. The meaning of the spec is a
	// part of it, so that templates are decoded once for each version of a Job.
	memory volcano.Memory
}

// Decide has package volcano decide, which speaks the engine's words.
func (d *decider) Decide(view *view, now time.Time, _ plan.Entropy) (plan.Plan[batchv1alpha1.JobStatus], error) {
	snapshot, err := d.core.snapshot(view)
	if err != nil {
		return plan.Plan[batchv1alpha1.JobStatus]{}, fmt.Errorf("reading the cache: %w", err)
	}
	snapshot.Memory = d.memory
	next, memory := d.core.decide(snapshot, now)
	d.memory = memory
	return next, nil
}

// Encode encodes a status as it is stored.
func (d *decider) Encode(status *batchv1alpha1.JobStatus) ([]byte, error) {
	return json.Marshal(status)
}
