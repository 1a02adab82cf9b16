// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"
)

// How a call goes: the caller says its name in a line. When all have called, each gets a line
// that depends on all of them: how many they are, or where.

// pause is how long a caller waits before it tries again.
const pause = 200 * time.Millisecond

// listen listens on a port of all addresses of this host.
func listen(port string) (net.Listener, error) {
	return net.Listen("tcp", net.JoinHostPort("", port))
}

// count answers how many have called.
func count(callers []string) string { return strconv.Itoa(len(callers)) }

// answer waits until n different callers have called, and then answers all of them. It returns
// their names.
func answer(ctx context.Context, listener net.Listener, n int, reply func(callers []string) string) ([]string, error) {
	stop := context.AfterFunc(ctx, func() { listener.Close() })
	defer stop()
	callers := map[string]net.Conn{}
	defer func() {
		for _, conn := range callers {
			conn.Close()
		}
	}()
	var names []string
	for len(callers) < n {
		conn, err := listener.Accept()
		if err != nil {
			return names, fmt.Errorf("%d of %d have called, %v: %w", len(callers), n, names, cause(ctx, err))
		}
		name, err := hear(ctx, conn)
		if err != nil || name == "" {
			conn.Close() // It calls again.
			continue
		}
		if before := callers[name]; before != nil {
			before.Close() // It has given up that call.
		} else {
			names = append(names, name)
		}
		callers[name] = conn
	}
	for name, conn := range callers {
		if _, err := fmt.Fprintln(conn, reply(names)); err != nil {
			return names, fmt.Errorf("answering %s: %w", name, err)
		}
	}
	return names, nil
}

// call tells a host one's name, and waits until it has heard those of all and answers. It tries
// until ctx ends: the host may not listen yet, or have no name yet.
func call(ctx context.Context, address, name string) (said string, err error) {
	for {
		if said, err = callOnce(ctx, address, name); err == nil {
			return said, nil
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return "", fmt.Errorf("calling %s: %w; last: %w", address, context.Cause(ctx), err)
		}
	}
}

func callOnce(ctx context.Context, address, name string) (string, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	if _, err := fmt.Fprintln(conn, name); err != nil {
		return "", err
	}
	return hear(ctx, conn)
}

// hear reads a line.
func hear(ctx context.Context, conn net.Conn) (string, error) {
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	line, err := bufio.NewReader(conn).ReadString('\n')
	if err != nil {
		return "", cause(ctx, err)
	}
	return strings.TrimSpace(line), nil
}

// cause is why something failed: that time was up, if it is.
func cause(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}
