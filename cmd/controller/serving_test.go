// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/lockstep-k8s/lockstep/controller/pacing"
	"github.com/lockstep-k8s/lockstep/internal/fair"
)

// reviewer answers TokenReviews and SubjectAccessReviews: the token "reader" may get /metrics,
// "root" anything, "nobody" nothing; others are not known.
type reviewer struct {
	tokens, accesses atomic.Int32
	// away says that nobody can tell whose a token is, and unsure that nobody can tell what "nobody" may do.
	away, unsure atomic.Bool
}

func (v *reviewer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	switch {
	case strings.HasSuffix(r.URL.Path, "/tokenreviews"):
		v.tokens.Add(1)
		var review authenticationv1.TokenReview
		_ = json.NewDecoder(r.Body).Decode(&review)
		switch token := review.Spec.Token; {
		case v.away.Load():
			review.Status.Error = "the authenticator is away"
		case token == "reader", token == "root", token == "nobody":
			review.Status = authenticationv1.TokenReviewStatus{Authenticated: true, User: authenticationv1.UserInfo{Username: review.Spec.Token}}
		}
		_ = json.NewEncoder(w).Encode(review)
	case strings.HasSuffix(r.URL.Path, "/subjectaccessreviews"):
		v.accesses.Add(1)
		var review authorizationv1.SubjectAccessReview
		_ = json.NewDecoder(r.Body).Decode(&review)
		asked := review.Spec.NonResourceAttributes
		review.Status.Allowed = review.Spec.User == "root" ||
			review.Spec.User == "reader" && asked.Verb == "get" && asked.Path == "/metrics"
		if review.Spec.User == "nobody" && v.unsure.Load() {
			review.Status.EvaluationError = "a role is not found"
		}
		_ = json.NewEncoder(w).Encode(review)
	}
}

// served starts the secure port, with an API server that answers reviews, and returns its URL.
func served(t *testing.T, health *health) (string, *reviewer) {
	t.Helper()
	reviewer := &reviewer{}
	api := httptest.NewServer(reviewer)
	t.Cleanup(api.Close)
	guard, err := newGuard(&rest.Config{Host: api.URL, ContentConfig: rest.ContentConfig{ContentType: "application/json"}})
	if err != nil {
		t.Fatal(err)
	}
	certificates, err := newCertificates("", "")
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- serve(ctx, []server{{
			listener: listener, certificates: certificates, what: "health and metrics over TLS",
			handler: secureHandler(health, metricsHandler(prometheus.NewRegistry()), guard),
		}})
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return "https://" + listener.Addr().String(), reviewer
}

// ask makes a request, and returns the status and the body.
func ask(t *testing.T, method, url, token, body string) (int, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}} //nolint:gosec // It is self-signed.
	defer transport.CloseIdleConnections()
	response, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	said, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(said)
}

func TestMetricsAreForThoseWhomTheAPIServerAllows(t *testing.T) {
	url, reviewer := served(t, working())
	for name, tc := range map[string]struct {
		method, path, token, body string
		want                      int
	}{
		"a probe, without a token":           {"GET", "/healthz", "", "", http.StatusOK},
		"a probe, with a token of nobody":    {"GET", "/readyz", "unknown", "", http.StatusOK},
		"metrics, without a token":           {"GET", "/metrics", "", "", http.StatusUnauthorized},
		"metrics, with a token of nobody":    {"GET", "/metrics", "unknown", "", http.StatusUnauthorized},
		"metrics, of a user without rights":  {"GET", "/metrics", "nobody", "", http.StatusForbidden},
		"metrics, of their reader":           {"GET", "/metrics", "reader", "", http.StatusOK},
		"a profile, of the metrics' reader":  {"GET", "/debug/pprof/heap", "reader", "", http.StatusForbidden},
		"a profile, of the administrator":    {"GET", "/debug/pprof/heap", "root", "", http.StatusOK},
		"a path that is none, of a stranger": {"GET", "/secrets", "", "", http.StatusUnauthorized},
		"a level that is none":               {"PUT", "/debug/flags/v", "root", "loud", http.StatusBadRequest},
		"a level, of the metrics' reader":    {"PUT", "/debug/flags/v", "reader", "5", http.StatusForbidden},
		"a level of megabytes":               {"PUT", "/debug/flags/v", "root", strings.Repeat("1", 1<<20), http.StatusBadRequest},
	} {
		t.Run(name, func(t *testing.T) {
			if got, said := ask(t, tc.method, url+tc.path, tc.token, tc.body); got != tc.want {
				t.Errorf("the answer is %d, want %d: %.200s", got, tc.want, said)
			}
		})
	}
	tokens, accesses := reviewer.tokens.Load(), reviewer.accesses.Load()
	for range 50 {
		ask(t, "GET", url+"/metrics", "reader", "")
		ask(t, "GET", url+"/metrics", "unknown", "")
	}
	if tokens, accesses := reviewer.tokens.Load()-tokens, reviewer.accesses.Load()-accesses; tokens+accesses > 4 {
		t.Errorf("the API server was asked %d and %d times for 100 requests of the same two, want answers to be kept", tokens, accesses)
	}
}

func TestTheLevelOfTheLogIsSetAtRunTime(t *testing.T) {
	url, _ := served(t, working())
	before := verbosity()
	defer ask(t, "PUT", url+"/debug/flags/v", "root", fmt.Sprint(before))
	if status, said := ask(t, "PUT", url+"/debug/flags/v", "root", "7"); status != http.StatusOK {
		t.Fatalf("the answer is %d: %s", status, said)
	}
	if got := verbosity(); got != 7 {
		t.Errorf("the level is %d, want 7", got)
	}
}

// verbosity is the level of the log.
func verbosity() int {
	level := 0
	for klog.V(klog.Level(level + 1)).Enabled() {
		level++
	}
	return level
}

// working is the health of a leader without trouble.
func working() *health {
	h := &health{loops: map[string]loop{"frameworks": idle(true)}}
	h.served.Store(true)
	h.leads.Store(true)
	return h
}

// idle is a loop without syncs.
func idle(ready bool) loop {
	return loop{ready: func() bool { return ready }, longest: func() (fair.Key, time.Duration) { return fair.Key{}, 0 }}
}

func TestReadyMeansThatItWorksOrCouldTakeOver(t *testing.T) {
	for name, tc := range map[string]struct {
		served, leads, filled bool
		heard                 time.Duration // ago; 0 is never
		want                  string        // Empty: ready.
	}{
		"a leader with filled caches":                 {served: true, leads: true, filled: true},
		"a leader whose caches are not filled":        {served: true, leads: true, want: "caches"},
		"a cluster without the CRDs":                  {leads: true, filled: true, want: "CRDs"},
		"a standby that has just heard of the leader": {served: true, heard: time.Second},
		"a standby that has heard of none yet":        {served: true, want: "not read yet"},
		"a standby that is cut off":                   {served: true, heard: time.Minute, want: "last read 1m0s ago"},
	} {
		t.Run(name, func(t *testing.T) {
			h := &health{loops: map[string]loop{"frameworks": idle(tc.filled)}}
			h.served.Store(tc.served)
			h.leads.Store(tc.leads)
			if tc.heard > 0 {
				h.heard.Store(time.Now().Add(-tc.heard).UnixNano())
			}
			switch err := h.checkReady(); {
			case tc.want == "" && err != nil:
				t.Errorf("it is not ready: %v", err)
			case tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)):
				t.Errorf("what is said is %v, want %q", err, tc.want)
			}
		})
	}
}

func TestASyncThatHangsMakesTheProcessUnhealthy(t *testing.T) {
	running := time.Duration(0)
	h := &health{loops: map[string]loop{"podgroups": {longest: func() (fair.Key, time.Duration) {
		return fair.Key{Kind: "secret-kind"}, running
	}}}}
	if running = pacing.StuckAfter; h.checkAlive() != nil {
		t.Errorf("a sync that has been running for %v makes it unhealthy: %v", running, h.checkAlive())
	}
	running = pacing.StuckAfter + time.Second
	err := h.checkAlive()
	if err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("after %v the check says %v, want that a sync hangs, without its name", running, err)
	}
}

func TestACertificateNeedsItsKey(t *testing.T) {
	if _, err := newCertificates("tls.crt", ""); err == nil {
		t.Error("a certificate without a key is taken")
	}
	if _, err := newCertificates("absent.crt", "absent.key"); err == nil || errors.Unwrap(err) == nil {
		t.Errorf("files that are not there give %v", err)
	}
}
