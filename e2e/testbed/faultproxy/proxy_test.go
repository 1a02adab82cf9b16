// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package faultproxy

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/rest"
)

// begin starts a proxy before an API server that answers OK, and counts what reaches that. Its
// watches tell one line and go on until they are ended.
func begin(t *testing.T) (proxy *Proxy, reached *atomic.Int32) {
	t.Helper()
	reached = new(atomic.Int32)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		reached.Add(1)
		fmt.Fprintln(w, "OK")
		if isWatch(r) {
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		}
	}))
	t.Cleanup(server.Close)
	proxy, err := start(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = proxy.Close() })
	return proxy, reached
}

// ask sends a request through the proxy. The code is 0 if there was no answer.
func ask(t *testing.T, p *Proxy, method, path string) (code int, header http.Header) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, "http://"+p.address+path, strings.NewReader("{}"))
	if err != nil {
		t.Error(err)
		return 0, nil
	}
	// A client that sends once: that of the standard library repeats what was lost.
	transport := &http.Transport{DisableKeepAlives: true}
	response, err := transport.RoundTrip(request)
	if err != nil {
		return 0, nil
	}
	defer response.Body.Close()
	return response.StatusCode, response.Header
}

// TestFaultsDoWhatTheySay sends two requests through each fault.
func TestFaultsDoWhatTheySay(t *testing.T) {
	for name, tc := range map[string]struct {
		fault        Fault
		method, path string
		wantCodes    [2]int
		wantReached  int32
	}{
		"late requests are answered all the same":            {Late(time.Millisecond), "GET", "/pods", [2]int{200, 200}, 2},
		"each second change is a conflict":                   {Conflicts(2), "PUT", "/pods/a", [2]int{200, 409}, 1},
		"a creation can't be a conflict":                     {Conflicts(1), "POST", "/pods", [2]int{200, 200}, 2},
		"too many requests":                                  {TooMany(1, 3), "GET", "/pods", [2]int{429, 429}, 0},
		"each second request is an error":                    {Errors(2), "GET", "/pods", [2]int{200, 500}, 1},
		"an API server that is unavailable":                  {Unavailable(), "GET", "/pods", [2]int{503, 503}, 0},
		"a lost reply is that of a write that was done":      {LostReplies(1), "POST", "/pods", [2]int{0, 0}, 2},
		"the reply to a read is not lost":                    {LostReplies(1), "GET", "/pods", [2]int{200, 200}, 2},
		"a version that has expired":                         {ExpiredVersions(), "GET", "/pods?watch=1&resourceVersion=7", [2]int{410, 410}, 0},
		"a list is not refused when versions have expired":   {ExpiredVersions(), "GET", "/pods?resourceVersion=7", [2]int{200, 200}, 2},
		"a component that is cut off reaches nothing at all": {Cut(), "GET", "/pods", [2]int{0, 0}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			p, reached := begin(t)
			p.Break(tc.fault)
			for i, want := range tc.wantCodes {
				if code, _ := ask(t, p, tc.method, tc.path); code != want {
					t.Errorf("request %d was answered with %d, want %d", i+1, code, want)
				}
			}
			if got := reached.Load(); got != tc.wantReached {
				t.Errorf("%d requests reached the API server, want %d", got, tc.wantReached)
			}
			if got := p.Requests(); got != 2 {
				t.Errorf("%d requests were counted, want 2", got)
			}
			p.Heal()
			if code, _ := ask(t, p, "GET", "/pods"); code != http.StatusOK {
				t.Errorf("after the fault a request was answered with %d", code)
			}
		})
	}
}

func TestTooManyRequestsSayWhenToComeAgain(t *testing.T) {
	p, _ := begin(t)
	p.Break(TooMany(1, 3))
	if _, header := ask(t, p, "GET", "/pods"); header.Get("Retry-After") != "3" {
		t.Errorf("Retry-After is %q, want 3", header.Get("Retry-After"))
	}
}

func TestOpenWatchesEnd(t *testing.T) {
	p, _ := begin(t)
	response, err := http.Get("http://" + p.address + "/pods?watch=true")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	p.EndWatches()
	if _, err := io.ReadAll(response.Body); err == nil {
		t.Error("the watch ended as if it were complete")
	}
}

// TestAHeldRequestIsForwardedWhenItIsReleased also when the component has gone meanwhile.
func TestAHeldRequestIsForwardedWhenItIsReleased(t *testing.T) {
	p, reached := begin(t)
	held := p.Hold(Request("POST", "/pods"))
	answered := make(chan int)
	go func() {
		code, _ := ask(t, p, "POST", "/pods")
		answered <- code
	}()
	<-held.Caught()
	if code, _ := ask(t, p, "POST", "/pods"); code != http.StatusOK {
		t.Errorf("the request after it was answered with %d", code)
	}
	if got := reached.Load(); got != 1 {
		t.Errorf("%d requests reached the API server before the release, want 1", got)
	}
	if code, _ := held.Release(); code != http.StatusOK {
		t.Errorf("the API server answered with %d", code)
	}
	if code := <-answered; code != http.StatusOK {
		t.Errorf("the component was told %d", code)
	}
}

// TestWritesThatWereDoneAreKnown, whoever has heard of them, and no others are.
func TestWritesThatWereDoneAreKnown(t *testing.T) {
	p, _ := begin(t)
	ask(t, p, "GET", "/pods")
	ask(t, p, "POST", "/pods")
	p.Break(LostReplies(1))
	ask(t, p, "DELETE", "/pods/a")
	p.Break(Unavailable())
	ask(t, p, "POST", "/pods")
	if got, want := p.Done(), []string{"POST /pods", "DELETE /pods/a"}; !slices.Equal(got, want) {
		t.Errorf("the writes %q were done, want %q", got, want)
	}
}
