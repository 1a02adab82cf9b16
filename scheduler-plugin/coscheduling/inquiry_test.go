// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// TestAKindIsAskedForUntilItCanBeRead: every ten seconds, and every minute if what lacks is a right.
func TestAKindIsAskedForUntilItCanBeRead(t *testing.T) {
	for found, period := range map[service]time.Duration{notServed: 10 * time.Second, broken: 10 * time.Second, forbidden: time.Minute} {
		t.Run(string(found), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				asked := 0
				q := &inquiry{ctx: t.Context(), ask: func(context.Context) (service, error) {
					switch asked++; asked {
					case 1:
						return "", errors.New("the API server is busy")
					case 2:
						return found, nil
					default:
						return served, nil
					}
				}}
				began := time.Now()
				if !q.untilServed(found) {
					t.Error("it is given up")
				}
				if took := time.Since(began); asked != 3 || took != 3*period {
					t.Errorf("it was asked for %d times in %v, want 3 times, every %v", asked, took, period)
				}
			})
		})
	}
}
