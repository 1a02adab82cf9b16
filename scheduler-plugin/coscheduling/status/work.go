// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/lockstep-k8s/lockstep/internal/fair"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
)

// patience is how long a worker waits for one write before it begins with another gang. A write may meet a webhook that
// hangs, and the API server gives up only after 30 s. Namespaces take turns at the workers.
const (
	patience = 200 * time.Millisecond
	// allFlights is how many gangs of all namespaces may be handled at the same time, in addition to one gang of each
	// namespace.
	allFlights = 64
)

// work is a queue of gangs or of Pods, with a function that handles each. After a failure there is a back-off, which no
// event of the gang shortens: a webhook that refuses one write refuses the next one, too.
type work struct {
	queue   fair.Queue
	workers *fair.Workers
	failed  *fair.Backoff
	gangOf  func(fair.Key) fair.Key // whose back-off counts
	do      func(context.Context, fair.Key) error
}

// newWork returns a queue; its metrics have the given name. flights is how many gangs of one namespace may be handled
// at the same time.
func newWork(name string, flights int, failed *fair.Backoff, gangOf func(fair.Key) fair.Key, do func(context.Context, fair.Key) error) *work {
	w := &work{queue: fair.NewQueue(name, clock.RealClock{}), failed: failed, gangOf: gangOf, do: do}
	w.workers = fair.NewWorkers(w.queue, fair.Limits{Namespace: flights, All: allFlights}, patience, w.process, nil)
	return w
}

// after queues a gang to be handled after d. It does not block.
func (w *work) after(gang dialect.Key, d time.Duration) {
	w.queue.AddAfter(queued(gang), d)
}

// run handles the queue with the given number of workers until ctx ends. While `rest` returns true, only one of the
// workers takes new keys.
func (w *work) run(ctx context.Context, workers int, rest func() bool) {
	var running sync.WaitGroup
	defer running.Wait()
	defer w.queue.ShutDown()
	running.Go(func() { w.workers.Work(ctx, &running) })
	for range workers - 1 {
		running.Go(func() {
			w.workers.WorkWhen(ctx, &running, func(ctx context.Context) bool {
				return wait.PollUntilContextCancel(ctx, restPeriod, true, func(context.Context) (bool, error) { return !rest(), nil }) == nil
			})
		})
	}
	<-ctx.Done()
}

func (w *work) process(ctx context.Context, key fair.Key) {
	gang := w.gangOf(key)
	if wait := time.Until(w.failed.Due(gang)); wait > 0 {
		w.queue.AddAfter(key, wait)
		return
	}
	err := w.do(ctx, key)
	if err == nil || ctx.Err() != nil {
		w.failed.Succeeded(gang)
		return
	}
	klog.FromContext(ctx).Error(err, "Reporting on a pod group failed, trying again", "podGroup", gangIn(gang).String())
	wait := w.failed.Failed(gang, time.Now())
	if key != gang {
		wait += restPeriod // after other Pods of the gang, where some writes may succeed
	}
	w.queue.AddAfter(key, wait)
}

// itself returns the key of a gang unchanged.
func itself(gang fair.Key) fair.Key { return gang }

// queued returns the key of a gang in a queue.
func queued(gang dialect.Key) fair.Key {
	return fair.Key{Kind: string(rune(gang.Dialect)), ObjectName: cache.NewObjectName(gang.Namespace, gang.Name)}
}

// gangIn returns the gang of a key.
func gangIn(key fair.Key) dialect.Key {
	return dialect.Key{Dialect: dialect.Dialect(key.Kind[0]), Namespace: key.Namespace, Name: key.Name}
}
