// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package lanes

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// TestStrangersKeepNoGuestOut, however many of them ask, for as long as a guest is remembered.
func TestStrangersKeepNoGuestOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lanes := New(2, 10)
		lanes.Welcome("known", time.Hour)
		for range 2 {
			if !lanes.Of("unknown").Enter(t.Context(), 0) {
				t.Error("a stranger has no place, though there are two")
			}
		}
		begun := time.Now()
		if lanes.Of("unknown").Enter(t.Context(), time.Second) || time.Since(begun) != time.Second {
			t.Errorf("a third stranger has a place, or was not waited for: %v", time.Since(begun))
		}
		if !lanes.Of("known").Enter(t.Context(), 0) {
			t.Error("a guest waits behind strangers")
		}
		time.Sleep(time.Hour)
		if lanes.Of("known").Enter(t.Context(), 0) {
			t.Error("who was let in an hour ago is a guest still")
		}
	})
}

// TestAPlaceIsForWhoWaits as soon as it is left, and for nobody who waits no more.
func TestAPlaceIsForWhoWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lane := New(1, 1).Strangers
		lane.Enter(t.Context(), 0)
		gone, leave := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, leave)
		if begun := time.Now(); lane.Enter(gone, time.Hour) || time.Since(begun) != time.Second {
			t.Errorf("who waits no more has a place, after %v", time.Since(begun))
		}
		time.AfterFunc(time.Second, lane.Leave)
		if begun := time.Now(); !lane.Enter(t.Context(), time.Hour) || time.Since(begun) != time.Second {
			t.Errorf("a place that was left is not taken, after %v", time.Since(begun))
		}
	})
}
