// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/lockstep-k8s/lockstep/internal/dashboard"
)

func newDashboard(s *session) *cobra.Command {
	var port int
	cmd := &cobra.Command{
		Use:   "dashboard",
		Short: "Serve a web page of jobs, the queue and the nodes to your browser",
		Long: `Serve a web page of jobs, the queue and the nodes to your browser, until it is interrupted.

The page listens on this machine's loopback address. The printed address has a token; without the token the page does not
open. The page reads with your rights, and changes nothing.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return s.dashboard(cmd.Context(), port) },
	}
	cmd.Flags().IntVar(&port, "port", 0, "the port; 0 for any free port")
	return cmd
}

func (s *session) dashboard(ctx context.Context, port int) error {
	if port < 0 || port > 65535 {
		return misuse(fmt.Sprintf("--port is %d", port), "it has to be from 0 to 65535")
	}
	c, err := s.connect()
	if err != nil {
		return err
	}
	// A cluster that can't be reached is reported here, not on each page.
	if _, err := c.reader.Kube.Discovery().ServerVersion(); err != nil {
		return err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return &failure{code: exitFailed, message: err.Error(), hint: "is the port taken? --port 0 takes any free port"}
	}
	visitor := &dashboard.Visitor{Namespace: c.namespace, Reader: c.reader}
	pages := dashboard.New(dashboard.Options{Visitor: func(*http.Request) (*dashboard.Visitor, error) { return visitor, nil }})
	guard := dashboard.NewLoopback(listener.Addr().String(), pages)
	server := &http.Server{Handler: guard, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 64 << 10,
		BaseContext: func(net.Listener) context.Context { return ctx }}
	line(s.out, "%s", guard.URL())
	s.note("Open the address in a browser. Ctrl-C ends it.")
	stopped := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stopped()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return context.Canceled
}
