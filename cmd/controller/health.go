// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"k8s.io/klog/v2"
)

// healthServer serves /healthz, /readyz and /metrics.
type healthServer struct {
	listener net.Listener
	handler  http.Handler
}

// newHealthServer listens already, so that an address that is taken is an error
// at start. An empty address serves nothing.
func newHealthServer(address string, metrics prometheus.Gatherer, ready func() bool) (*healthServer, error) {
	if address == "" {
		return &healthServer{}, nil
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("--health-address %s: %w", address, err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if !ready() {
			http.Error(w, "the caches are not yet filled", http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "ok")
	})
	mux.Handle("GET /metrics", promhttp.HandlerFor(metrics, promhttp.HandlerOpts{}))
	return &healthServer{listener: listener, handler: mux}, nil
}

// run serves until ctx ends.
func (s *healthServer) run(ctx context.Context) error {
	if s.listener == nil {
		return nil
	}
	server := &http.Server{Handler: s.handler, ReadHeaderTimeout: 10 * time.Second}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() }) // Nothing is pending that matters.
	defer stop()
	klog.FromContext(ctx).Info("Serving health and metrics", "address", s.listener.Addr().String())
	if err := server.Serve(s.listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving health and metrics: %w", err)
	}
	return nil
}
