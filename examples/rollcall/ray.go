// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"net"
	"strconv"
)

// ray finds the others as the nodes of Ray do: all join the head, and hear of each other there. The head waits for
// as many as its driver needs.
func ray(ctx context.Context, getenv func(string) string, isHead bool, listen listenFunc) error {
	nodes, err := strconv.Atoi(getenv("RAY_NODES"))
	if isHead && (err != nil || nodes < 1) {
		return fmt.Errorf("RAY_NODES is %q, want how many nodes there are", getenv("RAY_NODES"))
	}
	head := getenv("RAY_ADDRESS")
	if _, _, err := net.SplitHostPort(head); err != nil {
		return fmt.Errorf("RAY_ADDRESS: %w", err)
	}
	return meet(ctx, head, isHead, nodes, member{rank: -1}, listen)
}
