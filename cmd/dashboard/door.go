// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/sha256"
	"html/template"
	"net/http"
	"net/url"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/klog/v2"
)

const (
	loginPath, logoutPath = "/login", "/logout"
	// tokenCookie holds a visitor's token. Browsers take a name with this prefix only over TLS, and send it to
	// no other host.
	tokenCookie = "__Host-lockstep-token"
	// maxToken is how many bytes a token may have, that a cookie may hold it.
	maxToken = 3800
	// maxAsking is how many requests of strangers, and how many of guests, may be asked about at the same time, and
	// askTime how long that may take.
	maxAsking = 32
	askTime   = 10 * time.Second
	// maxGuests is how many tokens are remembered that were let in, and guestTime for how long.
	maxGuests = 10000
	guestTime = time.Hour
)

// door lets in those whom the API server knows, and shows others the login. A browser shows who it is by a token
// in a cookie, which the login sets; programs by a token, a client certificate, or an authenticating proxy.
type door struct {
	who   authenticator.Request
	pages http.Handler
	// guests has the hashes of what was let in. They are asked about beside strangers, who so can't keep them out.
	guests                *cache.LRUExpireCache
	ofStrangers, ofGuests chan struct{}
}

// newDoor guards pages. Requests that other sites have a browser send are refused, as far as they change something: that
// is the login alone.
func newDoor(who authenticator.Request, pages http.Handler) http.Handler {
	d := &door{who: who, pages: pages, guests: cache.NewLRUExpireCache(maxGuests),
		ofStrangers: make(chan struct{}, maxAsking), ofGuests: make(chan struct{}, maxAsking)}
	mux := http.NewServeMux()
	for _, probe := range []string{"/healthz", "/livez", "/readyz"} {
		mux.HandleFunc("GET "+probe, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("ok")) })
	}
	mux.Handle("GET /assets/", pages)
	mux.HandleFunc("GET "+loginPath, func(w http.ResponseWriter, r *http.Request) { showLogin(w, r, http.StatusOK, "") })
	mux.HandleFunc("POST "+loginPath, d.login)
	mux.HandleFunc("POST "+logoutPath, logout)
	mux.HandleFunc("/", d.enter)
	return http.NewCrossOriginProtection().Handler(mux)
}

// known says who sends a request.
func (d *door) known(r *http.Request) (*authenticator.Response, bool) {
	ctx, cancel := context.WithTimeout(r.Context(), askTime)
	defer cancel()
	key := sha256.Sum256([]byte(r.Header.Get("Authorization")))
	asking := d.ofStrangers
	if _, guest := d.guests.Get(key); guest {
		asking = d.ofGuests
	}
	select {
	case asking <- struct{}{}:
		defer func() { <-asking }()
	case <-ctx.Done():
		return nil, false
	}
	who, known, err := d.who.AuthenticateRequest(r.WithContext(ctx))
	if err != nil {
		// Why is not told: a stranger learns nothing.
		klog.FromContext(ctx).V(2).Info("A visitor is not known", "reason", err.Error())
	}
	// The API server's own code lets strangers in under a name of theirs.
	if !known || err != nil || who.User.GetName() == user.Anonymous {
		return nil, false
	}
	d.guests.Add(key, nil, guestTime)
	return who, true
}

// enter shows pages to those who are known.
func (d *door) enter(w http.ResponseWriter, r *http.Request) {
	if cookie, err := r.Cookie(tokenCookie); err == nil && r.Header.Get("Authorization") == "" {
		r.Header.Set("Authorization", "Bearer "+cookie.Value)
	}
	who, known := d.known(r)
	switch {
	case known:
		r.Header.Del("Authorization")
		d.pages.ServeHTTP(w, r.WithContext(request.WithUser(r.Context(), who.User)))
	case r.Method == http.MethodGet && strings.Contains(r.Header.Get("Accept"), "text/html"):
		http.Redirect(w, r, loginPath+"?"+url.Values{"to": {r.URL.RequestURI()}}.Encode(), http.StatusSeeOther)
	default:
		w.Header().Set("WWW-Authenticate", "Bearer")
		http.Error(w, "log in at "+loginPath+", or send a bearer token", http.StatusUnauthorized)
	}
}

// login takes a token, and keeps it in the browser if the API server knows it.
func (d *door) login(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, 16<<10)
	token := strings.TrimSpace(r.PostFormValue("token"))
	switch {
	case token == "":
		showLogin(w, r, http.StatusBadRequest, "There is no token.")
		return
	case len(token) > maxToken:
		showLogin(w, r, http.StatusBadRequest, "The token has more than 3800 bytes, which no cookie holds. Ask for one with fewer claims.")
		return
	}
	asked := r.Clone(r.Context())
	asked.Header = http.Header{"Authorization": {"Bearer " + token}}
	asked.TLS = nil // A certificate that the browser has is not what is asked about.
	if _, known := d.known(asked); !known {
		showLogin(w, r, http.StatusUnauthorized, "The API server does not know this token. It may have expired.")
		return
	}
	http.SetCookie(w, &http.Cookie{Name: tokenCookie, Value: token, Path: "/", Secure: true, HttpOnly: true, SameSite: http.SameSiteStrictMode})
	http.Redirect(w, r, local(r.PostFormValue("to")), http.StatusSeeOther)
}

// logout has the browser forget the token.
func logout(w http.ResponseWriter, r *http.Request) {
	http.SetCookie(w, &http.Cookie{Name: tokenCookie, Path: "/", Secure: true, HttpOnly: true, SameSite: http.SameSiteStrictMode, MaxAge: -1})
	http.Redirect(w, r, loginPath, http.StatusSeeOther)
}

// local is an address if it is one of this server, and its first page else.
func local(address string) string {
	to, err := url.Parse(address)
	if err != nil || to.Scheme != "" || to.Host != "" || !strings.HasPrefix(to.Path, "/") || strings.HasPrefix(to.Path, "//") || strings.Contains(to.Path, `\`) {
		return "/"
	}
	return (&url.URL{Path: to.Path, RawQuery: to.RawQuery}).String()
}

var loginPage = template.Must(template.New("login").Parse(`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Log in · Lockstep</title>
<link rel="icon" href="/assets/icon.svg" type="image/svg+xml">
<link rel="stylesheet" href="/assets/style.css">
</head>
<body>
<header><span class="brand"><img src="/assets/icon.svg" alt="" width="22" height="22"> Lockstep</span></header>
<main>
<section>
<h1>Log in</h1>
<p>With a token of yours you see what you may read in this cluster, and nothing more.</p>
{{with .Wrong}}<p class="banner bad" role="alert">{{.}}</p>{{end}}
<form method="post" action="/login" class="filters">
<input type="hidden" name="to" value="{{.To}}">
<label>Token <input id="token" name="token" type="password" autocomplete="off" required size="40" autofocus></label>
<button>Log in</button>
</form>
<p class="quiet">For a service account: <code>kubectl create token NAME -n NAMESPACE</code></p>
</section>
</main>
</body>
</html>
`))

// showLogin shows the form, and what was wrong.
func showLogin(w http.ResponseWriter, r *http.Request, status int, wrong string) {
	header := w.Header()
	header.Set("Content-Type", "text/html; charset=utf-8")
	header.Set("Cache-Control", "no-store")
	header.Set("Content-Security-Policy", "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'")
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Referrer-Policy", "no-referrer")
	w.WriteHeader(status)
	_ = loginPage.Execute(w, struct{ To, Wrong string }{local(r.FormValue("to")), wrong})
}
