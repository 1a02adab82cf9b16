// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"html/template"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/klog/v2"

	"github.com/lockstep-k8s/lockstep/internal/lanes"
)

const (
	loginPath, logoutPath = "/login", "/logout"
	// tokenCookie is the name of the cookie that holds a visitor's token. Because of the prefix __Host-, browsers
	// accept the cookie only over TLS, and send it to this host alone.
	tokenCookie = "__Host-lockstep-token"
	// maxToken is how many bytes long a token may be: longer ones do not fit into a cookie.
	maxToken = 3800
	// maxAsking is how many requests may be authenticated at the API server concurrently: so many with unknown
	// credentials, and so many with credentials that were admitted before. askTime is how long authenticating one may
	// take.
	maxAsking = 32
	askTime   = 10 * time.Second
	// maxGuests is how many admitted tokens are remembered, and guestTime for how long.
	maxGuests = 10000
	guestTime = time.Hour
)

// door admits known visitors, and shows the login page to others. A browser authenticates by a token in a cookie that
// the login page sets. A program authenticates by a token, a client certificate or an authenticating proxy.
type door struct {
	who   authenticator.Request
	pages http.Handler
	lanes *lanes.Lanes
}

// newDoor returns a handler that shows pages only to known visitors. Probes, assets, login and logout are for
// everybody. Requests by which another site would change something are refused, also those to log in.
func newDoor(who authenticator.Request, pages http.Handler) http.Handler {
	d := &door{who: who, pages: pages, lanes: lanes.New(maxAsking, maxGuests)}
	mux := http.NewServeMux()
	for _, probe := range []string{"/healthz", "/livez", "/readyz"} {
		mux.HandleFunc("GET "+probe, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("ok")) })
	}
	mux.Handle("GET /assets/", pages)
	mux.HandleFunc("GET "+loginPath, func(w http.ResponseWriter, r *http.Request) {
		// Not FormValue, which reads what a request sends, whatever its method.
		showLogin(w, r.URL.Query().Get("to"), http.StatusOK, "")
	})
	mux.HandleFunc("POST "+loginPath, d.login)
	mux.HandleFunc("POST "+logoutPath, logout)
	mux.HandleFunc("/", d.enter)
	return http.NewCrossOriginProtection().Handler(mux)
}

// standing is whether a visitor is known.
type standing int

const (
	known standing = iota
	unknown
	// unasked means that the API server could not be asked about the visitor.
	unasked
)

// knows returns the sender of a request.
func (d *door) knows(r *http.Request) (*authenticator.Response, standing) {
	// The place is held until there is an answer: a visitor that leaves does not cancel the question.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), askTime)
	defer cancel()
	credentials := r.Header.Get("Authorization")
	lane := d.lanes.Of(credentials)
	if !lane.Enter(r.Context(), askTime) {
		return nil, unasked
	}
	defer lane.Leave()
	who, found, err := d.who.AuthenticateRequest(r.WithContext(ctx))
	if err != nil {
		// The reason is not shown: a stranger learns nothing.
		klog.FromContext(ctx).V(2).Info("A visitor is not known", "reason", err.Error())
	}
	switch {
	case err != nil && isOutage(ctx, err):
		return nil, unasked
	// The API server's own code lets strangers in under a name of theirs.
	case !found || err != nil || who.User.GetName() == user.Anonymous:
		return nil, unknown
	}
	d.lanes.Welcome(credentials, guestTime)
	return who, known
}

// isOutage reports whether an error says that the API server has not answered.
func isOutage(ctx context.Context, err error) bool {
	var several utilerrors.Aggregate
	if errors.As(err, &several) {
		return slices.ContainsFunc(several.Errors(), func(err error) bool { return isOutage(ctx, err) })
	}
	var status apierrors.APIStatus
	var network net.Error
	return ctx.Err() != nil || errors.As(err, &status) || errors.As(err, &network)
}

// enter shows pages to known visitors.
func (d *door) enter(w http.ResponseWriter, r *http.Request) {
	if cookie, err := r.Cookie(tokenCookie); err == nil && r.Header.Get("Authorization") == "" {
		r.Header.Set("Authorization", "Bearer "+cookie.Value)
	}
	who, is := d.knows(r)
	switch {
	case is == known:
		r.Header.Del("Authorization")
		d.pages.ServeHTTP(w, r.WithContext(request.WithUser(r.Context(), who.User)))
	case is == unasked:
		w.Header().Set("Retry-After", "5")
		http.Error(w, "the API server could not be asked who you are: try again", http.StatusServiceUnavailable)
	case r.Method == http.MethodGet && strings.Contains(r.Header.Get("Accept"), "text/html"):
		http.Redirect(w, r, loginPath+"?"+url.Values{"to": {r.URL.RequestURI()}}.Encode(), http.StatusSeeOther)
	default:
		w.Header().Set("WWW-Authenticate", "Bearer")
		http.Error(w, "log in at "+loginPath+", or send a bearer token", http.StatusUnauthorized)
	}
}

// login handles the login form. If the API server knows the token in the form, the browser gets it as a cookie.
func (d *door) login(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, 16<<10)
	token, to := strings.TrimSpace(r.PostFormValue("token")), r.PostFormValue("to")
	switch {
	case token == "":
		showLogin(w, to, http.StatusBadRequest, "There is no token.")
		return
	case len(token) > maxToken:
		showLogin(w, to, http.StatusBadRequest, "The token has more than 3800 bytes, which no cookie holds. Ask for one with fewer claims.")
		return
	}
	asked := r.Clone(r.Context())
	asked.Header = http.Header{"Authorization": {"Bearer " + token}}
	asked.TLS = nil // A certificate that the browser has is not what is asked about.
	switch _, is := d.knows(asked); is {
	case unknown:
		showLogin(w, to, http.StatusUnauthorized, "The API server does not know this token. It may have expired.")
		return
	case unasked:
		showLogin(w, to, http.StatusServiceUnavailable, "The API server could not be asked about the token. Try again.")
		return
	}
	http.SetCookie(w, &http.Cookie{Name: tokenCookie, Value: token, Path: "/", Secure: true, HttpOnly: true, SameSite: http.SameSiteStrictMode})
	http.Redirect(w, r, local(to), http.StatusSeeOther)
}

// logout has the browser forget the token.
func logout(w http.ResponseWriter, r *http.Request) {
	http.SetCookie(w, &http.Cookie{Name: tokenCookie, Path: "/", Secure: true, HttpOnly: true, SameSite: http.SameSiteStrictMode, MaxAge: -1})
	http.Redirect(w, r, loginPath, http.StatusSeeOther)
}

// local returns the address if it is on this server, else the address of the server's first page.
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

// showLogin shows the form, which leads on to an address, and what was wrong.
func showLogin(w http.ResponseWriter, to string, status int, wrong string) {
	header := w.Header()
	header.Set("Content-Type", "text/html; charset=utf-8")
	header.Set("Cache-Control", "no-store")
	header.Set("Content-Security-Policy", "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'")
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Referrer-Policy", "no-referrer")
	w.WriteHeader(status)
	_ = loginPage.Execute(w, struct{ To, Wrong string }{local(to), wrong})
}
