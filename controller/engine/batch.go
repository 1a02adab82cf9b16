// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"github.com/lockstep-k8s/lockstep/controller/engine/plan"
)

// batch runs actions in parallel. Several goroutines call do; only the caller's goroutine calls the other functions.
type batch struct {
	// do runs one action.
	do func(plan.Action) result
	// begin is how many actions are under way at first, and most says how many may be at present: each success lets one
	// more begin, so that the number doubles with every answer, and each failure halves the number.
	begin int
	most  func() int
	// enough says that no more are to be begun, after the first. Those are left.
	enough func() bool
	// skip says that an action is in vain, after what has been learnt from others.
	skip func(plan.Action) bool
	// begun is called with each action that begins.
	begun func()
	// learn is called with each result.
	learn func(result)
}

// run runs actions. If enough of them fail, it starts no more, and returns the actions that it has not started.
func (b batch) run(actions []plan.Action) (left []plan.Action) {
	results := make(chan result)
	window, underWay, begun := max(1, b.begin), 0, 0
	for {
		for len(actions) > 0 && underWay < min(window, b.most()) && (begun == 0 || !b.enough()) {
			action := actions[0]
			actions = actions[1:]
			if b.skip(action) {
				continue
			}
			begun++
			underWay++
			b.begun()
			go func() { results <- b.do(action) }()
		}
		if underWay == 0 {
			return actions
		}
		done := <-results
		underWay--
		if done.err == nil {
			window = min(window+1, b.most())
		} else {
			window = max(1, window/2)
		}
		b.learn(done)
	}
}
