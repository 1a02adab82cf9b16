// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// wants has a visitor ask for turns for a minute, and says how many he has got at once. All are given back in the end.
func wants(ctx context.Context, t *turns, visitor string, pages int, large bool) (got int) {
	given := make(chan struct{}, pages)
	for range pages {
		go func() {
			ctx, cancel := context.WithTimeout(ctx, time.Minute)
			defer cancel()
			done, err := t.take(ctx, visitor, large)
			if err != nil {
				return
			}
			given <- struct{}{}
			<-ctx.Done()
			done()
		}()
	}
	synctest.Wait()
	return len(given)
}

func TestPagesThatReadALotKeepNoOtherWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := newTurns()
		for _, visitor := range []string{"ada", "bob", "eve", "joe"} {
			wants(t.Context(), turns, visitor, 2, true)
		}
		if got := wants(t.Context(), turns, "grace", 3, false); got != 3 {
			t.Errorf("beside 8 large pages, 2 of which are made, %d of 3 small ones are", got)
		}
		time.Sleep(2 * time.Minute)
	})
}

func TestAVisitorWaitsForHimselfAndNotForOneWhoAsksForALot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := newTurns()
		if got := wants(t.Context(), turns, "eve", 100, false); got != maxMakingOfOne {
			t.Errorf("of 100 pages of one visitor %d are made at the same time, want %d", got, maxMakingOfOne)
		}
		if got := wants(t.Context(), turns, "ada", 1, false); got != 1 {
			t.Error("another visitor waits for him")
		}
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if len(turns.of) > 0 {
			t.Errorf("visitors are remembered who have gone: %v", turns.of)
		}
		if got := wants(t.Context(), turns, "ada", 3, false); got != 3 {
			t.Error("turns were not given back")
		}
		time.Sleep(2 * time.Minute)
	})
}
