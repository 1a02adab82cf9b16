// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package barrier_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lockstep-k8s/lockstep/barrier"
)

var errNoSuchHost = errors.New("no such host")

func TestResolveWaitsUntilTheNameHasAnAddress(t *testing.T) {
	tests := map[string]struct {
		// from is the try that is answered, 0 if none is.
		from     int
		stalls   bool
		stopped  time.Duration
		wantErr  error
		wantCode int
		wantTook time.Duration
		wantOut  string
	}{
		"it is there": {from: 1, wantOut: "master has the address 10.0.0.1, 10.0.0.2\n"},
		"it comes": {
			from: 3, wantTook: 4 * time.Second,
			wantOut: "try 1 of 4: master has no address yet: no such host\n" +
				"try 2 of 4: master has no address yet: no such host\nmaster has the address 10.0.0.1, 10.0.0.2\n",
		},
		"it does not come": {
			wantErr: barrier.ErrNoAddress, wantCode: barrier.ExitFailed, wantTook: 6 * time.Second,
			wantOut: strings.Join([]string{"try 1 of 4", "try 2 of 4", "try 3 of 4", "try 4 of 4", ""}, ": master has no address yet: no such host\n"),
		},
		"nobody answers": {
			stalls: true, wantErr: barrier.ErrNoAddress, wantCode: barrier.ExitFailed, wantTook: 46 * time.Second,
			wantOut: strings.Join([]string{"try 1 of 4", "try 2 of 4", "try 3 of 4", "try 4 of 4", ""}, ": master has no address yet: context deadline exceeded\n"),
		},
		"the Pod is deleted meanwhile": {
			stopped: time.Second, wantErr: barrier.ErrTerminated, wantCode: barrier.ExitTerminated, wantTook: time.Second,
			wantOut: "try 1 of 4: master has no address yet: no such host\n",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, stop := context.WithCancel(t.Context())
				defer stop()
				if tc.stopped > 0 {
					time.AfterFunc(tc.stopped, stop)
				}
				var out strings.Builder
				begin, tries := time.Now(), 0
				err := barrier.Resolve(ctx, barrier.Resolution{Name: "master", Tries: 4, Interval: 2 * time.Second}, func(ctx context.Context, host string) ([]string, error) {
					tries++
					switch {
					case host != "master":
						return nil, errors.New("another name")
					case tc.from > 0 && tries >= tc.from:
						return []string{"10.0.0.1", "10.0.0.2"}, nil
					case tc.stalls:
						<-ctx.Done()
						return nil, ctx.Err()
					default:
						return nil, errNoSuchHost
					}
				}, &out)
				if !errors.Is(err, tc.wantErr) || barrier.ExitCode(err) != tc.wantCode {
					t.Errorf("got %v, code %d, want %v, %d", err, barrier.ExitCode(err), tc.wantErr, tc.wantCode)
				}
				if took := time.Since(begin); took != tc.wantTook {
					t.Errorf("it took %s, want %s", took, tc.wantTook)
				}
				if diff := cmp.Diff(tc.wantOut, out.String()); diff != "" {
					t.Errorf("output (-want,+got):\n%s", diff)
				}
			})
		})
	}
}
