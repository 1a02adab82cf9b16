// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package localenv

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestAwaitTriesAgainAfterAnErrorAndUntilItIsTrue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answers := []error{errors.New("refused"), nil, nil}
		looks := 0
		err := Await(t.Context(), "three looks", func(context.Context) (bool, string, error) {
			looks++
			// Done with an error is not done: what was seen may be wrong.
			return looks != 2, "", answers[looks-1]
		})
		if err != nil || looks != 3 {
			t.Errorf("it looked %d times and returned %v, want 3 and no error", looks, err)
		}
	})
}

func TestAwaitTellsWhatItWaitedForAndWhatItSaw(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tired := errors.New("timed out after a minute")
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Minute, tired)
		defer cancel()
		began := time.Now()
		refused := errors.New("refused")
		err := Await(ctx, "Godot", func(context.Context) (bool, string, error) { return false, "a boy", refused })
		if !errors.Is(err, tired) || !errors.Is(err, refused) || time.Since(began) != time.Minute {
			t.Errorf("after %v it returned %v", time.Since(began), err)
		}
		for _, want := range []string{"waiting for Godot", "last seen: a boy", "last error: refused"} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%q does not say %q", err, want)
			}
		}
	})
}
