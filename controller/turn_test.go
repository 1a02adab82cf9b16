// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"fmt"
	"slices"
	"testing"

	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	"github.com/lockstep-k8s/lockstep/controller/pacing"
)

func TestNamespacesTakeTurns(t *testing.T) {
	queue := newFairQueue(clock.RealClock{})
	defer queue.ShutDown()
	for i := range 1000 {
		queue.Add(cache.NewObjectName("busy", fmt.Sprint("fw-", i)))
	}
	queue.Add(cache.NewObjectName("calm", "alone"))
	first, _ := queue.Get()
	second, _ := queue.Get()
	if first.Namespace != "busy" || second.Namespace != "calm" {
		t.Errorf("%s and %s are first, want one of each namespace", first, second)
	}
	third, _ := queue.Get()
	if want := cache.NewObjectName("busy", "fw-1"); third != want {
		t.Errorf("%s is third, want %s", third, want)
	}
}

// TestANamespaceHasABoundedNumberOfSyncsInFlight, and what is beyond it begins as soon
// as one has landed.
func TestANamespaceHasABoundedNumberOfSyncsInFlight(t *testing.T) {
	f := newFlights()
	name := func(namespace string, i int) cache.ObjectName { return cache.NewObjectName(namespace, fmt.Sprint(i)) }
	for i := range pacing.MaxFlights {
		if !f.begin(name("a", i)) {
			t.Fatalf("sync %d may not begin", i)
		}
	}
	if f.begin(name("a", pacing.MaxFlights)) {
		t.Error("a sync begins beyond the bound")
	}
	if !f.begin(name("b", 0)) {
		t.Error("another namespace may not begin")
	}
	if resumed := f.end(name("b", 0)); len(resumed) > 0 {
		t.Errorf("%v may begin when a sync of another namespace has landed", resumed)
	}
	want := []cache.ObjectName{name("a", pacing.MaxFlights)}
	if resumed := f.end(name("a", 0)); !slices.Equal(resumed, want) {
		t.Errorf("%v may begin, want %v", resumed, want)
	}
}

// TestEachNamespaceHasOneSyncInFlightAtLeast, however many there are in all.
func TestEachNamespaceHasOneSyncInFlightAtLeast(t *testing.T) {
	f := newFlights()
	for i := range pacing.MaxFlightsInAll {
		if !f.begin(cache.NewObjectName(fmt.Sprint("ns-", i/pacing.MaxFlights), fmt.Sprint(i))) {
			t.Fatalf("sync %d may not begin", i)
		}
	}
	if !f.begin(cache.NewObjectName("late", "first")) {
		t.Error("the first sync of a namespace may not begin")
	}
	second := cache.NewObjectName("late", "second")
	if f.begin(second) {
		t.Error("the second sync of a namespace begins beyond the bound")
	}
	if resumed := f.end(cache.NewObjectName("ns-0", "0")); !slices.Equal(resumed, []cache.ObjectName{second}) {
		t.Errorf("%v may begin when one has landed, want %s", resumed, second)
	}
}
