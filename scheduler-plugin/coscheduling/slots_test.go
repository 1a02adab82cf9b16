// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
)

// begin has n requests of a namespace wait for slots until ctx ends.
func begin(ctx context.Context, s *slots, namespace string, n int) {
	for range n {
		go func() { _ = s.take(ctx, namespace) }()
	}
	synctest.Wait()
}

// TestNamespacesShareSlots: one that is alone has nearly all, and keeps no other from having some. When
// slots are given back, those have them that have few.
func TestNamespacesShareSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		s := newSlots(64)
		step := func(what string, want map[string]int) {
			t.Helper()
			if diff := cmp.Diff(want, s.used); diff != "" {
				t.Errorf("%s (-want, +got):\n%s", what, diff)
			}
		}
		begin(ctx, s, "a", 1000)
		step("one that is alone", map[string]int{"a": 60})
		begin(ctx, s, "b", 1000)
		step("another one beside it", map[string]int{"a": 60, "b": 4})
		begin(ctx, s, "c", 1000)
		step("one for which none is left", map[string]int{"a": 60, "b": 4, "c": 1})
		for range 40 {
			s.leave("a")
		}
		step("when the first has given some back", map[string]int{"a": 21, "b": 21, "c": 21})
		cancel()
		synctest.Wait()
		if len(s.waiting) > 0 {
			t.Errorf("%v wait that have given up", s.waiting)
		}
	})
}

// TestSlotsAreForAllThatWait, however few there are: none is lost, and all of them have been used when
// they were wanted.
func TestSlotsAreForAllThatWait(t *testing.T) {
	for _, size := range []int{1, 2, 3, 64} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSlots(size)
				for i := range 300 {
					namespace := fmt.Sprint(i % 7)
					go func() {
						if err := s.take(t.Context(), namespace); err != nil {
							t.Error(err)
						}
						runtime.Gosched()
						s.leave(namespace)
					}()
				}
				synctest.Wait()
				if s.inUse() || len(s.waiting) > 0 || len(s.used) > 0 {
					t.Errorf("%d slots of %v are in use at the end, and %v wait", s.all, s.used, s.waiting)
				}
			})
		})
	}
}

// TestWhoGivesUpLeavesNoSlotTaken: the next one has it.
func TestWhoGivesUpLeavesNoSlotTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSlots(1)
		if err := s.take(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		given := make(chan error)
		go func() { given <- s.take(ctx, "a") }()
		synctest.Wait()
		cancel()
		if err := <-given; !errors.Is(err, context.Canceled) {
			t.Errorf("who gives up is told %v", err)
		}
		s.leave("a")
		if err := s.take(t.Context(), "a"); err != nil || !s.inUse() {
			t.Errorf("the slot is not to be had: %v", err)
		}
	})
}
