// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package fair

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
)

// named is the key of an object, of the only kind.
func named(namespace, name string) Key {
	return Key{ObjectName: cache.NewObjectName(namespace, name)}
}

// TestKindsShareTheTurnsOfTheirNamespace: who has a thousand objects of one kind gets no
// more turns by having some of another.
func TestKindsShareTheTurnsOfTheirNamespace(t *testing.T) {
	queue := NewQueue("test", clock.RealClock{})
	defer queue.ShutDown()
	for i := range 1000 {
		for _, kind := range []string{"Framework", "Job"} {
			queue.Add(Key{Kind: kind, ObjectName: cache.NewObjectName("busy", fmt.Sprint(i))})
		}
	}
	queue.Add(Key{Kind: "Framework", ObjectName: cache.NewObjectName("calm", "alone")})
	first, _ := queue.Get()
	second, _ := queue.Get()
	third, _ := queue.Get()
	if first.Namespace != "busy" || second.Namespace != "calm" || third.Namespace != "busy" || third.Kind == first.Kind {
		t.Errorf("%v, %v and %v are first, want a turn for each namespace, and both kinds in that of the busy one", first, second, third)
	}
}

func TestNamespacesTakeTurns(t *testing.T) {
	queue := NewQueue("test", clock.RealClock{})
	defer queue.ShutDown()
	for i := range 1000 {
		queue.Add(named("busy", fmt.Sprint("fw-", i)))
	}
	queue.Add(named("calm", "alone"))
	first, _ := queue.Get()
	second, _ := queue.Get()
	if first.Namespace != "busy" || second.Namespace != "calm" {
		t.Errorf("%s and %s are first, want one of each namespace", first, second)
	}
	third, _ := queue.Get()
	if want := named("busy", "fw-1"); third != want {
		t.Errorf("%s is third, want %s", third, want)
	}
}

// TestANamespaceHasABoundedNumberOfSyncsInFlight, and what is beyond it begins as soon
// as one has ended.
func TestANamespaceHasABoundedNumberOfSyncsInFlight(t *testing.T) {
	limits := Limits{Namespace: 32, All: 1024}
	f := newFlights(limits)
	name := func(namespace string, i int) Key { return named(namespace, fmt.Sprint(i)) }
	for i := range limits.Namespace {
		if !f.begin(name("a", i)) {
			t.Fatalf("sync %d may not begin", i)
		}
	}
	if f.begin(name("a", limits.Namespace)) {
		t.Error("a sync begins beyond the bound")
	}
	if !f.begin(name("b", 0)) {
		t.Error("another namespace may not begin")
	}
	if resumed := f.end(name("b", 0)); len(resumed) > 0 {
		t.Errorf("%v may begin when a sync of another namespace has ended", resumed)
	}
	want := []Key{name("a", limits.Namespace)}
	if resumed := f.end(name("a", 0)); !slices.Equal(resumed, want) {
		t.Errorf("%v may begin, want %v", resumed, want)
	}
}

// TestEachNamespaceHasOneSyncInFlightAtLeast, however many there are in all.
func TestEachNamespaceHasOneSyncInFlightAtLeast(t *testing.T) {
	limits := Limits{Namespace: 32, All: 1024}
	f := newFlights(limits)
	for i := range limits.All {
		if !f.begin(named(fmt.Sprint("ns-", i/limits.Namespace), fmt.Sprint(i))) {
			t.Fatalf("sync %d may not begin", i)
		}
	}
	if !f.begin(named("late", "first")) {
		t.Error("the first sync of a namespace may not begin")
	}
	second := named("late", "second")
	if f.begin(second) {
		t.Error("the second sync of a namespace begins beyond the bound")
	}
	if resumed := f.end(named("ns-0", "0")); !slices.Equal(resumed, []Key{second}) {
		t.Errorf("%v may begin when one has ended, want %s", resumed, second)
	}
}

// TestASyncThatHangsCostsItsWorkerItsPatience, and no object has two syncs at a time.
func TestASyncThatHangsCostsItsWorkerItsPatience(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		queue := NewQueue("test", clock.RealClock{})
		var mu sync.Mutex
		begun := map[string]int{}
		answer := make(chan struct{})
		const patience = 200 * time.Millisecond
		workers := NewWorkers(queue, Limits{Namespace: 32, All: 1024}, patience, func(_ context.Context, key Key) {
			mu.Lock()
			begun[key.Name]++
			mu.Unlock()
			if key.Name == "hangs" {
				<-answer
			}
		}, nil)
		var running sync.WaitGroup
		running.Go(func() { workers.Work(t.Context(), &running) })
		for _, name := range []string{"hangs", "goes", "hangs"} {
			queue.Add(named("ns", name))
			synctest.Wait()
			time.Sleep(patience)
		}
		synctest.Wait()
		mu.Lock()
		if begun["hangs"] != 1 || begun["goes"] != 1 {
			t.Errorf("the syncs begun are %v, want one of each object", begun)
		}
		mu.Unlock()
		close(answer)
		synctest.Wait()
		mu.Lock()
		if begun["hangs"] != 2 {
			t.Errorf("after the answer %d syncs of the object were begun, want 2", begun["hangs"])
		}
		mu.Unlock()
		queue.ShutDown()
		running.Wait()
	})
}

// TestWhatIsParkedGoesOn although more objects of a namespace wait than may at a time.
func TestWhatIsParkedGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		queue := NewQueue("test", clock.RealClock{})
		var ended atomic.Int32
		workers := NewWorkers(queue, Limits{Namespace: 4, All: 1024}, 200*time.Millisecond, func(context.Context, Key) {
			time.Sleep(30 * time.Second)
			ended.Add(1)
		}, nil)
		var running sync.WaitGroup
		running.Go(func() { workers.Work(t.Context(), &running) })
		for i := range 20 {
			queue.Add(named("ns", fmt.Sprint(i)))
		}
		time.Sleep(29 * time.Second)
		if got := workers.InFlight("ns"); got != 4 {
			t.Errorf("%d syncs are in flight, want 4", got)
		}
		time.Sleep(5 * time.Minute)
		if got := ended.Load(); got != 20 {
			t.Errorf("%d of 20 objects were synced", got)
		}
		queue.ShutDown()
		running.Wait()
	})
}

// TestASyncThatHangsIsKnown, and how long it does, until it has ended.
func TestASyncThatHangsIsKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		queue := NewQueue("test", clock.RealClock{})
		answer := make(chan struct{})
		workers := NewWorkers(queue, Limits{Namespace: 32, All: 1024}, 200*time.Millisecond, func(_ context.Context, key Key) {
			if key.Name == "hangs" {
				<-answer
			}
		}, nil)
		var running sync.WaitGroup
		running.Go(func() { workers.Work(t.Context(), &running) })
		queue.Add(named("ns", "hangs"))
		time.Sleep(time.Hour)
		queue.Add(named("ns", "goes"))
		time.Sleep(time.Hour)
		if key, longest := workers.Longest(); key != named("ns", "hangs") || longest != 2*time.Hour {
			t.Errorf("%s has been running for %v, want ns/hangs for 2h", key, longest)
		}
		close(answer)
		synctest.Wait()
		if key, longest := workers.Longest(); longest != 0 {
			t.Errorf("%s has been running for %v, want none", key, longest)
		}
		queue.ShutDown()
		running.Wait()
	})
}
