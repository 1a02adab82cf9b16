// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/pprof"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/rest"
	"k8s.io/component-base/logs"
	"k8s.io/klog/v2"
)

// Bounds of the servers. A CPU profile takes 30 s unless the client requests another time.
const (
	readTime     = 10 * time.Second
	idleTime     = 90 * time.Second
	maxHeader    = 64 << 10
	shutdownTime = 5 * time.Second
	// maxLevel is how many bytes a level of the log may have.
	maxLevel = 16
)

// servingOptions are the flags about what the process serves.
type servingOptions struct {
	// bindAddress and securePort are where it serves over TLS. Port 0 is nowhere.
	bindAddress string
	securePort  int
	// certFile and keyFile are the paths of the certificate and its key. Without them, a self-signed certificate is
	// created at the start and kept in memory.
	certFile, keyFile string
	// healthAddress is where health and metrics are served without TLS. Empty for nowhere.
	healthAddress string
}

func (o *servingOptions) addFlags(set *pflag.FlagSet) {
	set.StringVar(&o.bindAddress, "bind-address", "", "address on which --secure-port is served; empty for all")
	set.IntVar(&o.securePort, "secure-port", 8443, "TLS port of /healthz, /livez and /readyz, and of /metrics and /debug for clients with the right to read them; 0 for none")
	set.StringVar(&o.certFile, "tls-cert-file", "", "certificate of --secure-port, PEM, followed by certificates of its authorities; read again after changes; default: a self-signed certificate")
	set.StringVar(&o.keyFile, "tls-private-key-file", "", "private key of --tls-cert-file, PEM")
	set.StringVar(&o.healthAddress, "health-address", "", "host:port on which /healthz, /livez, /readyz and /metrics are served to everybody, without TLS, as 127.0.0.1:8080 on a machine of your own; empty for none")
}

// server is one of the process's servers.
type server struct {
	listener net.Listener
	handler  http.Handler
	what     string
	// certificates is nil without TLS.
	certificates *certificates
}

// listen opens the ports before anything is served, so that the program ends with an error at its start if a port is
// occupied.
func (o *servingOptions) listen(health *health, metrics http.Handler, config *rest.Config) ([]server, error) {
	var servers []server
	if o.healthAddress != "" {
		listener, err := net.Listen("tcp", o.healthAddress)
		if err != nil {
			return nil, fmt.Errorf("--health-address %s: %w", o.healthAddress, err)
		}
		paths := http.NewServeMux()
		health.install(paths)
		paths.Handle("/metrics", metrics)
		servers = append(servers, server{listener: listener, handler: paths, what: "health and metrics"})
	}
	if o.securePort == 0 {
		return servers, nil
	}
	certificates, err := newCertificates(o.certFile, o.keyFile)
	if err != nil {
		return nil, err
	}
	guard, err := newGuard(config)
	if err != nil {
		return nil, err
	}
	address := net.JoinHostPort(o.bindAddress, strconv.Itoa(o.securePort))
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("--secure-port: %w", err)
	}
	return append(servers, server{
		listener: listener, handler: secureHandler(health, metrics, guard), certificates: certificates,
		what: "health and metrics over TLS",
	}), nil
}

// secureHandler serves probes to all clients, without authentication and without the limit on other requests. It serves
// the other paths to clients that the guard admits.
func secureHandler(health *health, metrics http.Handler, guard *guard) http.Handler {
	paths := http.NewServeMux()
	health.install(paths)
	paths.Handle("/metrics", metrics)
	paths.HandleFunc("/debug/pprof/profile", pprof.Profile)
	paths.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	paths.HandleFunc("/debug/pprof/trace", pprof.Trace)
	paths.HandleFunc("/debug/pprof/", pprof.Index)
	paths.HandleFunc("PUT /debug/flags/v", setVerbosity)
	guarded := guard.before(paths)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/healthz", "/livez", "/readyz":
			paths.ServeHTTP(w, r)
		default:
			guarded.ServeHTTP(w, r)
		}
	})
}

// setVerbosity sets the level of the log by a PUT of the number, as in all components of Kubernetes.
func setVerbosity(w http.ResponseWriter, r *http.Request) {
	level, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxLevel))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	said, err := logs.GlogSetter(strings.TrimSpace(string(level)))
	if err != nil {
		http.Error(w, "the level of the log is a number from 0 on: "+err.Error(), http.StatusBadRequest)
		return
	}
	fmt.Fprintln(w, said)
}

// serve runs the servers until ctx ends.
func serve(ctx context.Context, servers []server) error {
	group, ctx := errgroup.WithContext(ctx)
	for i := range servers {
		group.Go(func() error { return servers[i].run(ctx) })
	}
	return group.Wait()
}

func (s *server) run(ctx context.Context) error {
	logger := klog.FromContext(ctx)
	server := &http.Server{
		Handler: s.handler, ReadHeaderTimeout: readTime, IdleTimeout: idleTime, MaxHeaderBytes: maxHeader,
		BaseContext: func(net.Listener) context.Context { return context.WithoutCancel(ctx) },
		ErrorLog:    logs.NewLogger("serving " + s.what + ": "),
	}
	ended := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(ended)
		soon, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTime)
		defer cancel()
		if server.Shutdown(soon) != nil {
			server.Close()
		}
	})
	logger.Info("Serving "+s.what, "address", s.listener.Addr().String())
	var err error
	if s.certificates == nil {
		err = server.Serve(s.listener)
	} else {
		server.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: s.certificates.get}
		err = server.ServeTLS(s.listener, "", "")
	}
	if !errors.Is(err, http.ErrServerClosed) {
		stop()
		return fmt.Errorf("serving %s: %w", s.what, err)
	}
	<-ended
	return nil
}
