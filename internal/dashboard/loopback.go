// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"crypto/rand"
	"crypto/subtle"
	"net"
	"net/http"
)

// Loopback protects a page that is served to the browser of one user on the user's own machine. Other users there, and
// other pages in the same browser, could request the page too. Loopback admits only requests that
//
//   - have the served address as Host, so that no other name leads here (DNS rebinding),
//   - only read,
//   - contain the token: the first request in its address, later requests in a cookie.
type Loopback struct {
	// Address is where the page is served: an IP address and a port.
	Address string
	// Next answers what may pass.
	Next http.Handler

	token string
}

// cookie returns the name of the cookie with the token. Browsers share cookies among all ports of a host, so the name
// contains the port.
func (l *Loopback) cookie() string {
	_, port, _ := net.SplitHostPort(l.Address)
	return "lockstep-" + port
}

// NewLoopback makes a Loopback with a new token.
func NewLoopback(address string, next http.Handler) *Loopback {
	return &Loopback{Address: address, Next: next, token: rand.Text()}
}

// URL returns the address to open in a browser, with the token.
func (l *Loopback) URL() string { return "http://" + l.Address + "/?token=" + l.token }

// ServeHTTP answers a request.
func (l *Loopback) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Referrer-Policy", "no-referrer")
	_, port, _ := net.SplitHostPort(l.Address)
	if r.Host != l.Address && r.Host != "localhost:"+port {
		http.Error(w, "this page is at "+l.Address, http.StatusMisdirectedRequest)
		return
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "this page only reads", http.StatusMethodNotAllowed)
		return
	}
	query := r.URL.Query()
	if token := query.Get("token"); token != "" && l.is(token) {
		http.SetCookie(w, &http.Cookie{Name: l.cookie(), Value: l.token, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode})
		query.Del("token")
		// The token is not to stay in the address, which people copy.
		to := *r.URL
		to.Scheme, to.Host, to.RawQuery = "", "", query.Encode()
		if len(to.Path) > 1 && (to.Path[1] == '/' || to.Path[1] == '\\') {
			to.Path = "/"
		}
		http.Redirect(w, r, to.String(), http.StatusSeeOther)
		return
	}
	if cookie, err := r.Cookie(l.cookie()); err != nil || !l.is(cookie.Value) {
		http.Error(w, "open the address that kubectl lockstep dashboard has printed: it has a token", http.StatusForbidden)
		return
	}
	l.Next.ServeHTTP(w, r)
}

func (l *Loopback) is(token string) bool {
	return subtle.ConstantTimeCompare([]byte(token), []byte(l.token)) == 1
}
