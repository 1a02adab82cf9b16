// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package barrier

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
)

// fakeAPI is an API server that gives prepared answers to gets and to watches, in
// order, and the last one again from then on.
type fakeAPI struct {
	gets, watches []answer

	mu       sync.Mutex
	nGets    int
	nWatches int
	// requests are the first ones, without what is random in them.
	requests []string
}

// answer writes the response to one request.
type answer http.HandlerFunc

// start serves until the test ends, and returns the address.
func (f *fakeAPI) start(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(f.handler(t))
	t.Cleanup(server.Close)
	return server.URL
}

// startTLS is start with TLS: clients send no token without it.
func (f *fakeAPI) startTLS(t *testing.T) string {
	t.Helper()
	server := httptest.NewTLSServer(f.handler(t))
	t.Cleanup(server.Close)
	return server.URL
}

func (f *fakeAPI) handler(t *testing.T) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		f.next(t, r)(w, r)
	})
}

// next is the answer to a request.
func (f *fakeAPI) next(t *testing.T, r *http.Request) answer {
	f.mu.Lock()
	defer f.mu.Unlock()
	query := r.URL.Query()
	query.Del("timeoutSeconds")
	query.Del("timeout")
	r.URL.RawQuery = query.Encode()
	f.requests = append(f.requests, r.Method+" "+r.URL.String())

	answers, n := f.gets, &f.nGets
	if query.Has("watch") {
		answers, n = f.watches, &f.nWatches
	}
	*n++
	if len(answers) == 0 {
		t.Errorf("nobody expected %s %s", r.Method, r.URL)
		return failure(notFound())
	}
	return answers[min(*n, len(answers))-1]
}

func (f *fakeAPI) counts() (gets, watches int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.nGets, f.nWatches
}

// object answers with an object.
func object(o runtime.Object) answer {
	return func(w http.ResponseWriter, _ *http.Request) { _ = json.NewEncoder(w).Encode(o) }
}

// failure answers with an error.
func failure(err *apierrors.StatusError) answer {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(int(err.ErrStatus.Code))
		_ = json.NewEncoder(w).Encode(status(err))
	}
}

// hang answers nothing until the client goes away.
func hang() answer {
	return func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
}

// event is an event of a watch.
func event(kind string, o runtime.Object) metav1.WatchEvent {
	return metav1.WatchEvent{Type: kind, Object: runtime.RawExtension{Object: o}}
}

// events answers a watch with events, and ends it.
func events(events ...metav1.WatchEvent) answer {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusOK)
		for _, event := range events {
			_ = json.NewEncoder(w).Encode(event)
		}
		w.(http.Flusher).Flush()
	}
}

// thenHold keeps a watch open that would have ended.
func (a answer) thenHold() answer {
	return func(w http.ResponseWriter, r *http.Request) {
		a(w, r)
		<-r.Context().Done()
	}
}

// status is an error as it is sent.
func status(err *apierrors.StatusError) *metav1.Status {
	s := err.ErrStatus
	s.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
	return &s
}

func notFound() *apierrors.StatusError {
	return apierrors.NewNotFound(frameworkv1.Resource("frameworks"), "train")
}

// forbidden is what the API server says to a service account without a Role.
func forbidden(verb string) *apierrors.StatusError {
	err := apierrors.NewForbidden(frameworkv1.Resource("frameworks"), "train", nil)
	err.ErrStatus.Message = `frameworks.frameworkcontroller.microsoft.com "train" is forbidden: ` +
		`User "system:serviceaccount:default:default" cannot ` + verb + ` resource "frameworks" ` +
		`in API group "frameworkcontroller.microsoft.com" in the namespace "default"`
	return err
}
