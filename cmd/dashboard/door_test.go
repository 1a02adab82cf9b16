// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/request/bearertoken"
	tokencache "k8s.io/apiserver/pkg/authentication/token/cache"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/client-go/util/flowcontrol"
)

// house is a door to pages that say who has come in. The API server knows the token of ada, and calls others anonymous.
func house() http.Handler {
	who := authenticator.RequestFunc(func(r *http.Request) (*authenticator.Response, bool, error) {
		name := user.Anonymous
		if r.Header.Get("Authorization") == "Bearer of-ada" {
			name = "ada"
		}
		return &authenticator.Response{User: &user.DefaultInfo{Name: name}}, true, nil
	})
	return newDoor(who, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		info, _ := request.UserFrom(r.Context())
		_, _ = w.Write([]byte("welcome " + info.GetName() + r.Header.Get("Authorization")))
	}))
}

// knocks sends a request to the door.
func knocks(t *testing.T, method, target string, form url.Values, change func(*http.Request)) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, "https://lockstep.example"+target, strings.NewReader(form.Encode()))
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	if change != nil {
		change(r)
	}
	w := httptest.NewRecorder()
	house().ServeHTTP(w, r)
	return w
}

func html(r *http.Request) { r.Header.Set("Accept", "text/html,*/*") }

func TestAVisitorLogsInAndOut(t *testing.T) {
	w := knocks(t, "GET", "/frameworks/a/b?x=1", nil, html)
	if to := w.Header().Get("Location"); w.Code != http.StatusSeeOther || to != "/login?to=%2Fframeworks%2Fa%2Fb%3Fx%3D1" {
		t.Errorf("a stranger is sent to %q with %d", to, w.Code)
	}
	w = knocks(t, "POST", "/login", url.Values{"token": {" of-ada\n"}, "to": {"/frameworks/a/b?x=1"}}, nil)
	if to := w.Header().Get("Location"); w.Code != http.StatusSeeOther || to != "/frameworks/a/b?x=1" {
		t.Fatalf("a visitor is sent to %q with %d: %s", to, w.Code, w.Body)
	}
	cookie := w.Result().Cookies()[0]
	if !cookie.HttpOnly || !cookie.Secure || cookie.SameSite != http.SameSiteStrictMode || cookie.Domain != "" || cookie.Path != "/" {
		t.Errorf("the cookie is %+v", cookie)
	}
	w = knocks(t, "GET", "/", nil, func(r *http.Request) { r.AddCookie(cookie) })
	if got := w.Body.String(); got != "welcome ada" {
		t.Errorf("the page says %q", got)
	}
	w = knocks(t, "POST", "/logout", nil, func(r *http.Request) { r.AddCookie(cookie) })
	if gone := w.Result().Cookies()[0]; gone.MaxAge >= 0 || gone.Value != "" {
		t.Errorf("the token stays: %+v", gone)
	}
}

func TestStrangersAreNotLetIn(t *testing.T) {
	for what, c := range map[string]struct {
		method, target string
		form           url.Values
		change         func(*http.Request)
		status         int
		says           string
	}{
		"nothing shown":    {"GET", "/", nil, nil, http.StatusUnauthorized, "log in at /login"},
		"a stream":         {"GET", "/", nil, func(r *http.Request) { r.Header.Set("Accept", "text/event-stream") }, http.StatusUnauthorized, ""},
		"a wrong token":    {"POST", "/login", url.Values{"token": {"guess"}}, nil, http.StatusUnauthorized, "does not know this token"},
		"no token":         {"POST", "/login", url.Values{}, nil, http.StatusBadRequest, "There is no token"},
		"a huge token":     {"POST", "/login", url.Values{"token": {strings.Repeat("x", maxToken+1)}}, nil, http.StatusBadRequest, "more than 3800 bytes"},
		"a form of others": {"POST", "/login", url.Values{"token": {"of-ada"}}, func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") }, http.StatusForbidden, ""},
		"a wrong cookie":   {"GET", "/", nil, func(r *http.Request) { r.AddCookie(&http.Cookie{Name: tokenCookie, Value: "guess"}) }, http.StatusUnauthorized, ""},
	} {
		w := knocks(t, c.method, c.target, c.form, c.change)
		if w.Code != c.status || !strings.Contains(w.Body.String(), c.says) {
			t.Errorf("%s: %d %s", what, w.Code, w.Body)
		}
		if strings.Contains(w.Body.String(), "welcome") || len(w.Result().Cookies()) > 0 {
			t.Errorf("%s: a stranger is let in", what)
		}
	}
}

// TestALoginReadsNothingThatIsSentToIt: a stranger could send as much as the memory holds.
func TestALoginReadsNothingThatIsSentToIt(t *testing.T) {
	sent := &counted{}
	w := knocks(t, "GET", "/login?to=/line", nil, func(r *http.Request) {
		r.Header.Set("Content-Type", "multipart/form-data; boundary=x")
		r.Body = sent
	})
	if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), `value="/line"`) || sent.read > 0 {
		t.Errorf("%d, and of what was sent %d bytes are read", w.Code, sent.read)
	}
}

// counted is a body without an end, and counts what is read of it.
type counted struct{ read int }

func (c *counted) Read(p []byte) (int, error) {
	if c.read += len(p); c.read > 1<<20 {
		return 0, io.ErrUnexpectedEOF
	}
	return copy(p, "--x\r\n"), nil
}

func (c *counted) Close() error { return nil }

// TestAnOutageIsNotToldAsAWrongToken: who is logged in stays so.
func TestAnOutageIsNotToldAsAWrongToken(t *testing.T) {
	for name, err := range map[string]error{
		"it refuses":      apierrors.NewServiceUnavailable("away"),
		"it can't be had": &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED},
		"of several":      utilerrors.NewAggregate([]error{errors.New("no certificate"), apierrors.NewInternalError(errors.New("away"))}),
	} {
		door := newDoor(authenticator.RequestFunc(func(*http.Request) (*authenticator.Response, bool, error) { return nil, false, err }), http.NotFoundHandler())
		for _, r := range []*http.Request{
			httptest.NewRequestWithContext(t.Context(), "GET", "/", nil),
			httptest.NewRequestWithContext(t.Context(), "POST", "/login", strings.NewReader("token=of-ada")),
		} {
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			html(r)
			w := httptest.NewRecorder()
			door.ServeHTTP(w, r)
			if w.Code != http.StatusServiceUnavailable || !strings.Contains(w.Body.String(), "could not be asked") {
				t.Errorf("%s: %s %s is answered with %d %s", name, r.Method, r.URL, w.Code, w.Body)
			}
		}
	}
}

func TestTheLoginLeadsNowhereElse(t *testing.T) {
	for _, to := range []string{"https://evil.example/", "//evil.example/", `/\evil.example`, "javascript:alert(1)", "", "%zz"} {
		w := knocks(t, "POST", "/login", url.Values{"token": {"of-ada"}, "to": {to}}, nil)
		if got := w.Header().Get("Location"); got != "/" {
			t.Errorf("%q leads to %q", to, got)
		}
	}
}

func TestProbesNeedNoToken(t *testing.T) {
	for _, probe := range []string{"/healthz", "/livez", "/readyz"} {
		if w := knocks(t, "GET", probe, nil, nil); w.Code != http.StatusOK || w.Body.String() != "ok" {
			t.Errorf("%s: %d %s", probe, w.Code, w.Body)
		}
	}
}

// TestStrangersKeepNoGuestOut: as many as like may be asked about, and take long.
func TestStrangersKeepNoGuestOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		who := authenticator.RequestFunc(func(r *http.Request) (*authenticator.Response, bool, error) {
			if r.Header.Get("Authorization") == "Bearer of-ada" {
				return &authenticator.Response{User: &user.DefaultInfo{Name: "ada"}}, true, nil
			}
			<-r.Context().Done()
			return nil, false, r.Context().Err()
		})
		door := newDoor(who, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("welcome")) }))
		ask := func(token string) int {
			r := httptest.NewRequestWithContext(t.Context(), "GET", "/", nil)
			r.Header.Set("Authorization", "Bearer "+token)
			w := httptest.NewRecorder()
			door.ServeHTTP(w, r)
			return w.Code
		}
		if code := ask("of-ada"); code != http.StatusOK {
			t.Fatalf("a guest gets %d", code)
		}
		var strangers sync.WaitGroup
		for i := range 10 * maxAsking {
			strangers.Go(func() {
				if code := ask(fmt.Sprint("guess-", i)); code != http.StatusServiceUnavailable {
					t.Errorf("a stranger about whom nobody can be asked gets %d", code)
				}
			})
		}
		synctest.Wait()
		begun := time.Now()
		if code := ask("of-ada"); code != http.StatusOK || time.Since(begun) > 0 {
			t.Errorf("a guest gets %d after %v", code, time.Since(begun))
		}
		strangers.Wait()
	})
}

// TestStrangersWhoAskNoMoreKeepNoGuestOut: what they have asked goes on without them, as the API server's own code has it, which
// keeps answers for a while, and all lookups share a rate.
func TestStrangersWhoAskNoMoreKeepNoGuestOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rate := flowcontrol.NewTokenBucketRateLimiter(200, 400)
		lookups := authenticator.TokenFunc(func(ctx context.Context, token string) (*authenticator.Response, bool, error) {
			if err := rate.Wait(ctx); err != nil {
				return nil, false, err
			}
			time.Sleep(10 * time.Millisecond)
			return &authenticator.Response{User: &user.DefaultInfo{Name: "ada"}}, token == "of-ada", nil
		})
		who := bearertoken.New(tokencache.New(lookups, false, time.Second, time.Second))
		door := newDoor(who, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("welcome")) }))
		ask := func(ctx context.Context, token string) int {
			r := httptest.NewRequestWithContext(ctx, "GET", "/", nil)
			r.Header.Set("Authorization", "Bearer "+token)
			w := httptest.NewRecorder()
			door.ServeHTTP(w, r)
			return w.Code
		}
		if code := ask(t.Context(), "of-ada"); code != http.StatusOK {
			t.Fatalf("a guest gets %d", code)
		}
		var strangers sync.WaitGroup
		for i := range 20_000 { // 1000 a second.
			strangers.Go(func() {
				ctx, resets := context.WithTimeout(t.Context(), time.Millisecond)
				defer resets()
				ask(ctx, fmt.Sprint("guess-", i))
			})
			time.Sleep(time.Millisecond)
		}
		begun := time.Now()
		if code := ask(t.Context(), "of-ada"); code != http.StatusOK || time.Since(begun) > time.Second {
			t.Errorf("a guest gets %d after %v", code, time.Since(begun))
		}
		strangers.Wait()
		time.Sleep(time.Minute) // The last lookup ends.
	})
}
