// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/cache"
)

// TestASlowWriteHoldsUpNobodyElse has one worker, and an API server that does not
// answer: other Frameworks are synced all the same, but the one that waits is not
// begun again before the answer.
func TestASlowWriteHoldsUpNobodyElse(t *testing.T) {
	w := newWorld(t, framework(50))
	w.fill()
	var writes atomic.Int32
	answer := make(chan struct{})
	w.updateError = func([]byte) error {
		writes.Add(1)
		<-answer
		return nil
	}
	var running sync.WaitGroup
	running.Go(func() { w.controller.work(t.Context(), &running) })
	defer running.Wait()
	defer w.controller.queue.ShutDown()
	defer sync.OnceFunc(func() { close(answer) })()

	await := func(what string, condition func() bool) {
		t.Helper()
		err := wait.PollUntilContextTimeout(t.Context(), time.Millisecond, time.Minute, true,
			func(context.Context) (bool, error) { return condition(), nil })
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
	}
	w.controller.queue.Add(key)
	await("no write is under way", func() bool { return writes.Load() == 1 })
	w.controller.queue.Add(key)
	w.controller.queue.Add(cache.NewObjectName(namespace, "other"))
	await("the worker waits for the API server", func() bool { return w.controller.queue.Len() == 0 })
	if got := writes.Load(); got != 1 {
		t.Errorf("%d writes of one Framework are under way, want 1", got)
	}
}
