// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"net"
	"strconv"
)

// torchrun finds the others as the program of that name does, by the variables that stand for its flags. With
// a rank for each node all meet at the first. Without, they meet at an endpoint, and whose name that
// is hosts the meeting.
func torchrun(ctx context.Context, getenv func(string) string, listen listenFunc) error {
	nodes, err := strconv.Atoi(getenv("PET_NNODES"))
	if err != nil || nodes < 1 {
		return fmt.Errorf("PET_NNODES is %q, want how many nodes there are", getenv("PET_NNODES"))
	}
	endpoint := getenv("PET_RDZV_ENDPOINT")
	if endpoint == "" {
		rank, err := strconv.Atoi(getenv("PET_NODE_RANK"))
		master, port := getenv("PET_MASTER_ADDR"), getenv("PET_MASTER_PORT")
		if err != nil || rank < 0 || rank >= nodes || master == "" || port == "" {
			return fmt.Errorf("PET_NNODES %d, PET_NODE_RANK %q, PET_MASTER_ADDR %q, PET_MASTER_PORT %q make no sense", nodes, getenv("PET_NODE_RANK"), master, port)
		}
		return meet(ctx, net.JoinHostPort(master, port), rank == 0, nodes, member{rank: rank}, listen)
	}
	if backend := getenv("PET_RDZV_BACKEND"); backend != "c10d" {
		return fmt.Errorf("PET_RDZV_BACKEND is %q, want c10d", backend)
	}
	host, _, err := net.SplitHostPort(endpoint)
	if err != nil {
		return fmt.Errorf("PET_RDZV_ENDPOINT: %w", err)
	}
	isHost, err := isThisHost(ctx, host)
	if err != nil {
		return err
	}
	return meet(ctx, endpoint, isHost, nodes, member{meeting: getenv("PET_RDZV_ID"), rank: -1}, listen)
}
