// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package faultproxy puts a proxy between a component and its API server, for tests. The proxy
// breaks requests in the ways in which networks and API servers break them, and counts them.
//
// A component is given the kubeconfig of the proxy in place of its own. The proxy listens on
// localhost without TLS and without credentials; it comes to the API server as the component.
package faultproxy

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"slices"
	"sync"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Proxy forwards requests to an API server, and breaks them while a fault is on.
type Proxy struct {
	forward http.Handler
	server  *http.Server
	address string

	mu       sync.Mutex
	fault    *Fault
	requests int
	// seen counts the requests that the fault may have hit, so that it can hit each n-th.
	seen    int
	watches map[*http.Request]context.CancelFunc
	held    *Held
	// ahead is how far the clock of the component is ahead.
	ahead time.Duration
	// done are the writes that the API server has done, in the order of its answers.
	done []string
}

// Start starts a proxy that comes to the API server of a kubeconfig as its user.
func Start(kubeconfig string) (*Proxy, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig of a component: %w", err)
	}
	return start(config)
}

func start(config *rest.Config) (*Proxy, error) {
	target, err := url.Parse(config.Host)
	if err != nil {
		return nil, fmt.Errorf("reading the address of the API server: %w", err)
	}
	transport, err := rest.TransportFor(config)
	if err != nil {
		return nil, fmt.Errorf("making the transport of the proxy: %w", err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listening for a component: %w", err)
	}
	p := &Proxy{address: listener.Addr().String(), watches: map[*http.Request]context.CancelFunc{}}
	api := &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport:     transport,
		FlushInterval: -1, // watches
		ModifyResponse: func(answer *http.Response) error {
			p.noteDone(answer)
			return toSeen(answer, p.clockAhead())
		},
		// Without an answer of the API server there is none of the proxy.
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}
	p.forward = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := toStored(r, p.clockAhead()); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		api.ServeHTTP(w, r)
	})
	p.server = &http.Server{Handler: p, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = p.server.Serve(listener) }() // the error is that it was closed
	return p, nil
}

// Close ends the proxy and all connections through it.
func (p *Proxy) Close() error { return p.server.Close() }

// WriteKubeconfig writes a kubeconfig whose API server is the proxy.
func (p *Proxy) WriteKubeconfig(path string) error {
	return os.WriteFile(path, fmt.Appendf(nil, `apiVersion: v1
kind: Config
clusters: [{name: proxy, cluster: {server: "http://%s"}}]
users: [{name: proxy, user: {}}]
contexts: [{name: proxy, context: {cluster: proxy, user: proxy}}]
current-context: proxy
`, p.address), 0o600)
}

// Break switches a fault on, in place of the one before. Watches that are open end, if the fault
// says so.
func (p *Proxy) Break(fault Fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fault, p.seen = &fault, 0
	if fault.endsWatches {
		p.endWatches()
	}
}

// Heal switches the fault off.
func (p *Proxy) Heal() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fault = nil
}

// EndWatches ends all watches that are open, as an API server does from time to time.
func (p *Proxy) EndWatches() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.endWatches()
}

// endWatches needs mu.
func (p *Proxy) endWatches() {
	for _, end := range p.watches {
		end()
	}
}

// Requests is how many requests have come so far, broken ones too.
func (p *Proxy) Requests() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.requests
}

// Done are the writes that the API server has done so far, such as "POST /api/v1/namespaces/a/pods", whether
// the component has heard of it or not.
func (p *Proxy) Done() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.done)
}

func (p *Proxy) noteDone(answer *http.Response) {
	if !isWrite(answer.Request) || answer.StatusCode >= http.StatusBadRequest {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done = append(p.done, answer.Request.Method+" "+answer.Request.URL.Path)
}

// ServeHTTP breaks, holds or forwards a request.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if isWatch(r) {
		ctx, end := context.WithCancel(r.Context())
		defer end()
		r = r.WithContext(ctx)
		defer p.forget(r)
		p.remember(r, end)
	}
	if held := p.catch(r); held != nil {
		held.forward(w, r, p.forward)
		return
	}
	if act := p.admit(r); act != nil {
		act(w, r, p.forward)
		return
	}
	p.forward.ServeHTTP(w, r)
}

func (p *Proxy) remember(watch *http.Request, end context.CancelFunc) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.watches[watch] = end
}

func (p *Proxy) forget(watch *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.watches, watch)
}

// admit counts a request, and returns what the fault does to it; nil for nothing.
func (p *Proxy) admit(r *http.Request) action {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.requests++
	if p.fault == nil || p.fault.hits == nil || !p.fault.hits(r) {
		return nil
	}
	p.seen++
	if p.seen%max(p.fault.every, 1) != 0 {
		return nil
	}
	return p.fault.act
}

// Hold lets no answer come to the first request that matches, and does not forward it either,
// until it is released.
func (p *Proxy) Hold(match func(*http.Request) bool) *Held {
	held := &Held{match: match, caught: make(chan struct{}), release: make(chan struct{}), done: make(chan struct{})}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.held = held
	return held
}

// catch returns what holds this request, nil if nothing does.
func (p *Proxy) catch(r *http.Request) *Held {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.held == nil || !p.held.match(r) {
		return nil
	}
	held := p.held
	p.held = nil
	p.requests++
	return held
}

// Held is a request that is on its way.
type Held struct {
	match                 func(*http.Request) bool
	caught, release, done chan struct{}
	answer                *httptest.ResponseRecorder
}

// Caught is closed when there is such a request.
func (h *Held) Caught() <-chan struct{} { return h.caught }

// Release forwards the request and returns the status code and the body of the API server's answer. Call it once, after
// Caught.
func (h *Held) Release() (code int, body string) {
	close(h.release)
	<-h.done
	return h.answer.Code, h.answer.Body.String()
}

// forward waits for the release. The request reaches the API server even if the component has
// given it up meanwhile.
func (h *Held) forward(w http.ResponseWriter, r *http.Request, next http.Handler) {
	defer close(h.done)
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	r = r.WithContext(context.WithoutCancel(r.Context()))
	r.Body = io.NopCloser(bytes.NewReader(body))
	close(h.caught)
	<-h.release
	answer := httptest.NewRecorder()
	next.ServeHTTP(answer, r)
	h.answer = answer
	copyAnswer(w, answer)
}

func copyAnswer(w http.ResponseWriter, answer *httptest.ResponseRecorder) {
	for key, values := range answer.Header() {
		w.Header()[key] = values
	}
	w.WriteHeader(answer.Code)
	_, _ = w.Write(answer.Body.Bytes()) // the component may be gone
}
