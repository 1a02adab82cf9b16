// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"github.com/lockstep-k8s/lockstep/controller/engine/plan"
)

// batch runs actions concurrently. Several goroutines call its function `do`; only the caller's goroutine calls the
// others.
type batch struct {
	// do runs one action.
	do func(plan.Action) result
	// begin is how many actions run concurrently at first. `most` returns how many may run now. Each success lets one
	// more begin, so that the number doubles with each round of answers; each failure halves the number.
	begin int
	most  func() int
	// `enough` reports that no more actions are to be started. It is not called before the first action.
	enough func() bool
	// skip reports that an action can't succeed, by what is known from the results of others.
	skip func(plan.Action) bool
	// begun is called with each action that begins.
	begun func()
	// learn is called with each result.
	learn func(result)
}

// run runs actions. If too many of them fail, or `enough` returns true, run starts no more actions, and returns the
// rest.
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
