// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package faultproxy

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Fault says which requests are broken, and how.
type Fault struct {
	hits func(*http.Request) bool
	// every is 2 if each second one of them is broken. 0 and 1 mean all of them.
	every int
	act   action
	// endsWatches ends the watches that are open when the fault begins.
	endsWatches bool
}

// action answers a request, or forwards it, or ends its connection without an answer.
type action func(w http.ResponseWriter, r *http.Request, forward http.Handler)

// Late delays each request, but for watches.
func Late(d time.Duration) Fault {
	return Fault{hits: isNoWatch, act: func(w http.ResponseWriter, r *http.Request, forward http.Handler) {
		select {
		case <-time.After(d):
			forward.ServeHTTP(w, r)
		case <-r.Context().Done():
		}
	}}
}

// Conflicts refuses each n-th write of an object that exists, as if another had changed it.
func Conflicts(n int) Fault {
	return Fault{hits: isChange, every: n, act: refuse(http.StatusConflict, metav1.StatusReasonConflict, 0)}
}

// TooMany refuses each n-th request with 429, and asks for a number of seconds of quiet.
func TooMany(n, seconds int) Fault {
	return Fault{hits: isNoWatch, every: n, act: refuse(http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests, seconds)}
}

// Errors refuses each n-th request with 500.
func Errors(n int) Fault {
	return Fault{hits: isNoWatch, every: n, act: refuse(http.StatusInternalServerError, metav1.StatusReasonInternalError, 0)}
}

// Unavailable refuses all requests with 503, and ends the watches.
func Unavailable() Fault {
	return Fault{hits: isAny, endsWatches: true, act: refuse(http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable, 0)}
}

// LostReplies does each n-th write and ends its connection in place of an answer.
func LostReplies(n int) Fault {
	return Fault{hits: isWrite, every: n, act: func(_ http.ResponseWriter, r *http.Request, forward http.Handler) {
		forward.ServeHTTP(httptest.NewRecorder(), r)
		panic(http.ErrAbortHandler)
	}}
}

// ExpiredVersions ends the watches, and refuses with 410 to go on from where they were.
func ExpiredVersions() Fault {
	return Fault{hits: isContinuedWatch, endsWatches: true, act: refuse(http.StatusGone, metav1.StatusReasonExpired, 0)}
}

// Cut ends all connections and lets none be made.
func Cut() Fault {
	return Fault{hits: isAny, endsWatches: true, act: func(http.ResponseWriter, *http.Request, http.Handler) {
		panic(http.ErrAbortHandler)
	}}
}

func refuse(code int, reason metav1.StatusReason, seconds int) action {
	return func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
		status := metav1.Status{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
			Status:   metav1.StatusFailure, Code: int32(code), Reason: reason, Message: "the fault proxy refuses this",
		}
		if seconds > 0 {
			w.Header().Set("Retry-After", strconv.Itoa(seconds))
			status.Details = &metav1.StatusDetails{RetryAfterSeconds: int32(seconds)}
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		_ = json.NewEncoder(w).Encode(status) // the component may be gone
	}
}

func isAny(*http.Request) bool { return true }

func isWatch(r *http.Request) bool {
	watch, _ := strconv.ParseBool(r.URL.Query().Get("watch"))
	return watch
}

func isNoWatch(r *http.Request) bool { return !isWatch(r) }

// isContinuedWatch is false of watches that begin with a list of what there is.
func isContinuedWatch(r *http.Request) bool {
	version := r.URL.Query().Get("resourceVersion")
	return isWatch(r) && version != "" && version != "0" && r.URL.Query().Get("sendInitialEvents") == ""
}

func isWrite(r *http.Request) bool { return r.Method != http.MethodGet && r.Method != http.MethodHead }

func isChange(r *http.Request) bool { return isWrite(r) && r.Method != http.MethodPost }

// Request matches requests of a method, such as POST, whose paths contain a text, such as /pods.
// PUT matches PATCH, too.
func Request(method, path string) func(*http.Request) bool {
	return func(r *http.Request) bool {
		same := r.Method == method || method == http.MethodPut && r.Method == http.MethodPatch
		return same && strings.Contains(r.URL.Path, path)
	}
}
