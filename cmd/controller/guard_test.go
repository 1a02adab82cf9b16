// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"
)

// inMemory has requests answered by a handler, after a while.
type inMemory struct {
	handler http.Handler
	takes   time.Duration
}

func (m inMemory) RoundTrip(r *http.Request) (*http.Response, error) {
	select {
	case <-time.After(m.takes):
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
	answer := httptest.NewRecorder()
	m.handler.ServeHTTP(answer, r)
	return answer.Result(), nil
}

// guarded is a handler behind a guard whose API server takes 100 ms for a review.
func guarded(t *testing.T) (http.Handler, *guard, *reviewer) {
	t.Helper()
	reviewer := &reviewer{}
	guard, err := newGuard(&rest.Config{
		Host: "http://api", Transport: inMemory{reviewer, 100 * time.Millisecond},
		ContentConfig: rest.ContentConfig{ContentType: "application/json"},
	})
	if err != nil {
		t.Fatal(err)
	}
	ok := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	return secureHandler(working(), ok, guard), guard, reviewer
}

// get asks for a path with a token, and returns the status.
func get(ctx context.Context, handler http.Handler, path, token string) int {
	request := httptest.NewRequestWithContext(ctx, http.MethodGet, path, nil)
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	answer := httptest.NewRecorder()
	handler.ServeHTTP(answer, request)
	return answer.Code
}

func TestWhatIsKnownWaitsForNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		handler, guard, _ := guarded(t)
		if got := get(t.Context(), handler, "/metrics", "reader"); got != http.StatusOK {
			t.Fatalf("the reader's first request is answered by %d", got)
		}
		for range maxReviews { // The API server is away.
			guard.lanes.Strangers.Enter(t.Context(), 0)
			guard.lanes.Guests.Enter(t.Context(), 0)
		}
		for name, tc := range map[string]struct {
			path, token string
			want        int
			waits       time.Duration
		}{
			"a probe":                         {"/healthz", "", http.StatusOK, 0},
			"a request without a token":       {"/metrics", "", http.StatusUnauthorized, 0},
			"a token that is too long":        {"/metrics", strings.Repeat("x", maxToken+1), http.StatusUnauthorized, 0},
			"a request whose answer is known": {"/metrics", "reader", http.StatusOK, 0},
			"a stranger":                      {"/metrics", "unknown", http.StatusTooManyRequests, queueTime},
			"a guest with another question":   {"/debug/pprof/heap", "reader", http.StatusTooManyRequests, queueTime},
		} {
			begun := time.Now()
			if got := get(t.Context(), handler, tc.path, tc.token); got != tc.want || time.Since(begun) != tc.waits {
				t.Errorf("%s is answered by %d after %v, want %d after %v", name, got, time.Since(begun), tc.want, tc.waits)
			}
		}
		for range maxServed {
			guard.served.Enter(t.Context(), 0)
		}
		if got := get(t.Context(), handler, "/healthz", ""); got != http.StatusOK {
			t.Errorf("a probe beside many scrapes is answered by %d", got)
		}
		if got := get(t.Context(), handler, "/metrics", "reader"); got != http.StatusTooManyRequests {
			t.Errorf("one scrape more than may be under way is answered by %d", got)
		}
	})
}

// TestStrangersCantBlindMonitoring: strangers ask with a token after the other, as fast as they are
// answered.
func TestStrangersCantBlindMonitoring(t *testing.T) {
	for name, tc := range map[string]struct {
		strangers int
		known     bool
		within    time.Duration // Each scrape is answered.
	}{
		"many of them, beside one who was let in before": {strangers: 200, known: true, within: time.Second},
		"some of them, beside one who is new":            {strangers: 32, within: 5 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				handler, _, reviewer := guarded(t)
				ctx, cancel := context.WithCancel(t.Context())
				if tc.known {
					get(ctx, handler, "/metrics", "reader")
				}
				var strangers sync.WaitGroup
				defer strangers.Wait()
				defer cancel()
				for i := range tc.strangers {
					strangers.Go(func() {
						for n := 0; ctx.Err() == nil; n++ {
							get(ctx, handler, "/metrics", fmt.Sprintf("token-%d-%d", i, n))
						}
					})
				}
				for range 4 {
					time.Sleep(15 * time.Second) // As far apart as scrapes are: the answer is kept no longer.
					before := time.Now()
					if got := get(ctx, handler, "/metrics", "reader"); got != http.StatusOK || time.Since(before) > tc.within {
						t.Errorf("a scrape is answered by %d after %v", got, time.Since(before))
					}
				}
				if asked := int(reviewer.tokens.Load()); asked > reviewBurst+80*reviewQPS+8 {
					t.Errorf("the API server was asked about %d tokens in a minute", asked)
				}
			})
		})
	}
}

// TestWhyATokenIsNotKnown: the API server's authenticator is away for a moment.
func TestWhyATokenIsNotKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		handler, _, reviewer := guarded(t)
		logger := ktesting.NewLogger(t, ktesting.NewConfig(ktesting.BufferLogs(true), ktesting.Verbosity(2)))
		ctx := klog.NewContext(t.Context(), logger)
		reviewer.away.Store(true)
		if got := get(ctx, handler, "/metrics", "reader"); got != http.StatusUnauthorized {
			t.Errorf("a token that can't be told is answered by %d, want 401", got)
		}
		get(ctx, handler, "/metrics", "")
		reviewer.away.Store(false)
		if got := get(ctx, handler, "/metrics", "reader"); got != http.StatusOK {
			t.Errorf("as soon as it can be told, it is answered by %d", got)
		}
		log := logger.GetSink().(ktesting.Underlier).GetBuffer().String()
		for _, reason := range []string{"the authenticator is away", "it has no bearer token"} {
			if !strings.Contains(log, reason) {
				t.Errorf("the log does not say %q:\n%s", reason, log)
			}
		}
		if strings.Contains(log, "reader") {
			t.Errorf("the log has a token:\n%s", log)
		}
	})
}

// TestNobodyFillsTheLog who merely reaches the port: by requests that he breaks off, or by many.
func TestNobodyFillsTheLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		handler, _, _ := guarded(t)
		logger := ktesting.NewLogger(t, ktesting.NewConfig(ktesting.BufferLogs(true), ktesting.Verbosity(2)))
		lines := func() int {
			return strings.Count(logger.GetSink().(ktesting.Underlier).GetBuffer().String(), "\n")
		}
		ctx := klog.NewContext(t.Context(), logger)
		for i := range 100 {
			broken, breakOff := context.WithCancel(ctx)
			time.AfterFunc(time.Millisecond, breakOff)
			get(broken, handler, "/metrics", fmt.Sprint("guess-", i))
		}
		if got := lines(); got > 0 {
			t.Errorf("of 100 requests that were broken off there are %d lines", got)
		}
		for range 1000 {
			get(ctx, handler, "/"+strings.Repeat("ä", 1000), "")
		}
		if got := lines(); got != linesAtOnce {
			t.Errorf("of 1000 requests without a token there are %d lines, want %d", got, linesAtOnce)
		}
		time.Sleep(lineEvery)
		get(ctx, handler, "/metrics", "")
		if got := lines(); got != linesAtOnce+1 {
			t.Errorf("later refusals are in no line: there are %d", got)
		}
		if log := logger.GetSink().(ktesting.Underlier).GetBuffer().String(); !utf8.ValidString(log) || strings.Contains(log, `\x`) || len(log) > 64<<10 {
			t.Errorf("the log has %d bytes, or half a character", len(log))
		}
	})
}

// TestWhatNobodyAllowsIsForbidden, also where somebody can't tell: as soon as he can, it is asked anew.
func TestWhatNobodyAllowsIsForbidden(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		handler, _, reviewer := guarded(t)
		logger := ktesting.NewLogger(t, ktesting.NewConfig(ktesting.BufferLogs(true), ktesting.Verbosity(2)))
		ctx := klog.NewContext(t.Context(), logger)
		reviewer.unsure.Store(true)
		for range 2 {
			if got := get(ctx, handler, "/metrics", "nobody"); got != http.StatusForbidden {
				t.Errorf("it is answered by %d", got)
			}
		}
		if asked := reviewer.accesses.Load(); asked != 2 {
			t.Errorf("the API server was asked %d times, want 2", asked)
		}
		if log := logger.GetSink().(ktesting.Underlier).GetBuffer().String(); !strings.Contains(log, "a role is not found") || strings.HasPrefix(log, "E") {
			t.Errorf("the log says:\n%s", log)
		}
	})
}
