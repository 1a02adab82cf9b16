// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/lockstep-k8s/lockstep/internal/reading"
)

// The bounds of a Server.
const (
	// maxMaking is how many pages are built at the same time, maxLarge how many of these may read a lot, and
	// maxMakingOfOne how many are for the same visitor. Further requests wait for their turn.
	maxMaking, maxLarge, maxMakingOfOne = 8, 2, 3
	// maxStreams is how many streams there may be, and maxStreamsOfOne how many of one visitor. A page that gets no
	// stream is not live, and says so.
	maxStreams, maxStreamsOfOne = 200, 10
	// patience is how long building a page may take, and how long a browser may take to read a page.
	patience = 30 * time.Second
)

// Visitor is the user of a page.
type Visitor struct {
	// Name identifies visitors; streams are counted by name. An empty name is not shown.
	Name string
	// Namespace is what he sees first.
	Namespace string
	// Reader reads with his rights.
	Reader *reading.Reader
}

// Options are what a Server needs.
type Options struct {
	// Visitor returns the sender of a request. If it returns a *Refusal, the visitor gets the Refusal's status; for any
	// other error, the status 500.
	Visitor func(*http.Request) (*Visitor, error)
	// LogOut is the address to which the logout form is sent; empty if visitors do not log in.
	LogOut string
	// Now is the time from which ages are computed; Default: time.Now.
	Now func() time.Time
}

// Refusal is an error of Options.Visitor that the page shows.
type Refusal struct {
	// Status is that of HTTP.
	Status int
	// Message is for people.
	Message string
}

func (r *Refusal) Error() string { return r.Message }

// Server serves the page.
type Server struct {
	options Options
	mux     http.ServeMux
	turns   *turns
	streams streams
	// patience is a constant that tests replace.
	patience time.Duration
}

//go:embed assets
var assets embed.FS

// New makes a Server.
func New(options Options) *Server {
	if options.Now == nil {
		options.Now = time.Now
	}
	s := &Server{options: options, turns: newTurns(), streams: streams{of: make(map[string]int)}, patience: patience}
	s.mux.Handle("GET /assets/", http.FileServerFS(assets))
	for path, of := range map[string]route{
		"/{$}":                                 {s.list, isEverywhere},
		"/frameworks/{namespace}/{name}":       {s.framework, never},
		"/frameworks/{namespace}/{name}/why":   {s.why, always},
		"/frameworks/{namespace}/{name}/tasks": {s.tasks, never},
		"/logs/{namespace}/{pod}":              {s.logs, never},
		"/queue":                               {s.line, always},
		"/nodes":                               {s.nodes, always},
	} {
		s.mux.HandleFunc("GET "+path, func(w http.ResponseWriter, r *http.Request) { s.serve(w, r, of) })
	}
	s.mux.HandleFunc("GET /line", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "/queue?"+r.URL.RawQuery, http.StatusMovedPermanently)
	})
	s.mux.HandleFunc("GET /", func(w http.ResponseWriter, r *http.Request) {
		visitor, err := s.options.Visitor(r)
		if err == nil {
			err = &Refusal{http.StatusNotFound, "There is no page at this address."}
		}
		s.fail(w, visitor, err)
	})
	return s
}

// ServeHTTP answers a request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	header.Set("Content-Security-Policy", "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self'; "+
		"form-action 'self'; base-uri 'none'; frame-ancestors 'none'")
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Referrer-Policy", "no-referrer")
	header.Set("Cross-Origin-Resource-Policy", "same-origin")
	header.Set("Cross-Origin-Opener-Policy", "same-origin")
	if !strings.HasPrefix(r.URL.Path, "/assets/") {
		header.Set("Cache-Control", "no-store")
	}
	s.mux.ServeHTTP(w, r)
}

// request is what a page is asked for.
type request struct {
	*http.Request
	visitor *Visitor
	// live is a context that ends when the last browser closes the page. Nil if the page is not live.
	live context.Context
}

// opens opens a page: it reads what stays the same while the page is open, and returns the function that renders the
// page.
type opens func(ctx context.Context, r request) (*opened, error)

// route is what an address leads to.
type route struct {
	opens
	// isLarge says whether the page reads objects of the whole cluster.
	isLarge func(*http.Request) bool
}

func always(*http.Request) bool { return true }
func never(*http.Request) bool  { return false }

func isEverywhere(r *http.Request) bool { return r.URL.Query().Get("namespace") == allNamespaces }

// opened is a page that is being looked at.
type opened struct {
	// make reads, and renders the present page.
	make func(ctx context.Context) (*page, error)
	// changed receives a value when the page may have changed. Nil if the page is rendered at intervals.
	changed <-chan struct{}
}

// page is what a template shows.
type page struct {
	// Title is the title of the window. Tab is the entry of the menu that leads to the page.
	Title, Tab string
	// Template is the name of the template for the main part, and Content the template's data.
	Template string
	Content  any
	// Unread says what could not be read, one sentence each.
	Unread []string
	// Still says that the page does not change.
	Still bool
	// Namespace is the namespace that links to other pages keep. Own is the visitor's own namespace; it is set only if
	// the page shows all namespaces.
	Namespace, Own string
}

// serve answers with a page, or with a stream of pages.
func (s *Server) serve(w http.ResponseWriter, r *http.Request, to route) {
	visitor, err := s.options.Visitor(r)
	if err != nil {
		s.fail(w, nil, err)
		return
	}
	if r.Header.Get("Accept") == "text/event-stream" {
		s.stream(w, r, visitor, to)
		return
	}
	made, err := s.once(request{Request: r, visitor: visitor}, to)
	if err != nil {
		s.fail(w, visitor, err)
		return
	}
	var out bytes.Buffer
	if err := s.whole(&out, visitor, made); err != nil {
		s.fail(w, visitor, err)
		return
	}
	s.answer(w, http.StatusOK, &out)
}

// once renders a page when the turn has come.
func (s *Server) once(r request, to route) (*page, error) {
	return inTurn(r.Context(), s, r.visitor, to.isLarge(r.Request), func(ctx context.Context) (*page, error) {
		opened, err := to.opens(ctx, r)
		if err != nil {
			return nil, err
		}
		return opened.make(ctx)
	})
}

// inTurn waits for the visitor's turn and then calls do. The wait and the call together may take at most s.patience.
func inTurn[T any](ctx context.Context, s *Server, visitor *Visitor, large bool, do func(context.Context) (T, error)) (T, error) {
	ctx, cancel := context.WithTimeout(ctx, s.patience)
	defer cancel()
	done, err := s.turns.take(ctx, visitor.Name, large)
	if err != nil {
		var none T
		return none, err
	}
	defer done()
	return do(ctx)
}

// answer sends a page. A browser that does not read is not waited for.
func (s *Server) answer(w http.ResponseWriter, status int, page *bytes.Buffer) {
	out := http.NewResponseController(w)
	_ = out.SetWriteDeadline(time.Now().Add(s.patience))
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Length", strconv.Itoa(page.Len()))
	w.WriteHeader(status)
	if _, err := page.WriteTo(w); err == nil && out.Flush() == nil {
		// The connection may go on with another request.
		_ = out.SetWriteDeadline(time.Time{})
	}
}

// fail shows a visitor why there is no page. visitor is nil if unknown.
func (s *Server) fail(w http.ResponseWriter, visitor *Visitor, err error) {
	if visitor == nil {
		visitor = &Visitor{}
	}
	status, shown := explain(err)
	var out bytes.Buffer
	made := &page{Title: http.StatusText(status), Template: "failure", Content: shown, Still: true}
	if err := s.whole(&out, visitor, made); err != nil {
		http.Error(w, shown.Message, status)
		return
	}
	s.answer(w, status, &out)
}

// failure is the content of an error page: a sentence, what to do, and the API server's message.
type failure struct{ Message, Hint, Detail string }

// explain returns the HTTP status for an error, and a message that helps the user.
func explain(err error) (status int, shown failure) {
	var refused *Refusal
	var invalid *badRequest
	switch {
	case errors.As(err, &refused):
		return refused.Status, failure{Message: refused.Message}
	case errors.As(err, &invalid):
		return http.StatusBadRequest, failure{Message: invalid.Error(), Hint: "take one of the links of the page"}
	case apierrors.IsForbidden(err):
		return http.StatusForbidden, failure{"You may not read " + objectOf(err) + ".", "Ask an administrator of the namespace for the role view.", err.Error()}
	case apierrors.IsUnauthorized(err):
		return http.StatusUnauthorized, failure{"The cluster does not know you.", "Log in again.", err.Error()}
	case reading.IsUnserved(err):
		return http.StatusNotFound, failure{"The cluster does not serve " + objectOf(err) + ".", "Is Lockstep installed in this cluster?", err.Error()}
	case apierrors.IsNotFound(err):
		return http.StatusNotFound, failure{"There is no " + objectOf(err) + ".", "It may have been deleted.", err.Error()}
	case errors.Is(err, context.DeadlineExceeded), apierrors.IsTimeout(err), apierrors.IsServerTimeout(err):
		return http.StatusGatewayTimeout, failure{"The API server took too long to answer.", "Try again.", err.Error()}
	default:
		return http.StatusBadGateway, failure{"The API server can't be read.", "Try again.", err.Error()}
	}
}

// objectOf returns the object that an error of the API server is about: "Framework train", or "frameworks".
func objectOf(err error) string {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Details == nil || status.Status().Details.Kind == "" {
		return "that"
	}
	details := status.Status().Details
	if details.Name == "" {
		return details.Kind
	}
	kind := details.Kind
	if known := map[string]string{"frameworks": "Framework", "pods": "Pod", "podgroups": "PodGroup"}[kind]; known != "" {
		kind = known
	}
	return kind + " " + details.Name
}

// badRequest is an error of a field of a request.
type badRequest struct{ field, value, legal string }

func (b *badRequest) Error() string {
	return fmt.Sprintf("%s is %q, and has to be %s", b.field, b.value, b.legal)
}
