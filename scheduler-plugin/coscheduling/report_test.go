// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/util/workqueue"
)

// TestWritersRest: conditions are written by the writer that never rests while
// members are being bound, and by all when that is over.
func TestWritersRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		queue := workqueue.NewTypedRateLimitingQueue(workqueue.NewTypedItemExponentialFailureRateLimiter[string](time.Second, time.Second))
		ctx, cancel := context.WithCancel(t.Context())
		defer func() {
			cancel()
			queue.ShutDown()
		}()
		var binding atomic.Bool
		var written, writing atomic.Int32
		slowly := func(context.Context, string) error {
			writing.Add(1)
			defer writing.Add(-1)
			time.Sleep(time.Minute)
			written.Add(1)
			return nil
		}
		binding.Store(true)
		go work(ctx, queue, func() bool { return false }, slowly)
		for range 3 {
			go work(ctx, queue, binding.Load, slowly)
		}
		for _, gang := range []string{"a", "b", "c", "d", "e"} {
			queue.Add(gang)
		}
		time.Sleep(90 * time.Second)
		if got := written.Load(); got != 1 {
			t.Errorf("%d were written in a minute and a half of bindings, want one", got)
		}
		binding.Store(false)
		time.Sleep(time.Second)
		if got := writing.Load(); got != 4 {
			t.Errorf("%d are being written when the bindings are done, want 4", got)
		}
		time.Sleep(time.Minute)
		if got := written.Load(); got != 5 {
			t.Errorf("%d of 5 were written in the end", got)
		}
	})
}
