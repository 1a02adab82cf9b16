// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
)

// placeInPyTorchJob is that of a process that finds the others as PyTorch does. With a master
// everyone has a RANK, and meets at MASTER_ADDR. Without one all meet at PET_RDZV_ENDPOINT, as
// torchrun would have them, and get their ranks there.
func placeInPyTorchJob(getenv func(string) string) (place, error) {
	if getenv("MASTER_ADDR") == "" {
		workers, err := mostNodes(getenv("PET_NNODES"))
		if err != nil {
			return place{}, fmt.Errorf("PET_NNODES: %w", err)
		}
		endpoint := getenv("PET_RDZV_ENDPOINT")
		host, _, err := net.SplitHostPort(endpoint)
		if err != nil {
			return place{}, fmt.Errorf("PET_RDZV_ENDPOINT: %w", err)
		}
		name, err := os.Hostname()
		if err != nil {
			return place{}, err
		}
		return meeting(endpoint, -1, workers, name == host), nil
	}
	rank, workers, err := rankOf(getenv, "RANK", "WORLD_SIZE")
	if err != nil {
		return place{}, err
	}
	// What torchrun would go by says the same.
	if nodes, err := mostNodes(getenv("PET_NNODES")); err != nil || nodes != workers || getenv("PET_NODE_RANK") != getenv("RANK") || getenv("PET_MASTER_ADDR") != getenv("MASTER_ADDR") {
		return place{}, fmt.Errorf("PET_NNODES is %q, PET_NODE_RANK %q, PET_MASTER_ADDR %q, and not what RANK, WORLD_SIZE and MASTER_ADDR say: %d, %d, %q",
			getenv("PET_NNODES"), getenv("PET_NODE_RANK"), getenv("PET_MASTER_ADDR"), rank, workers, getenv("MASTER_ADDR"))
	}
	return meeting(net.JoinHostPort(getenv("MASTER_ADDR"), getenv("MASTER_PORT")), rank, workers, rank == 0), nil
}

// mostNodes is how many nodes there may be, by "n" or "min:max".
func mostNodes(nodes string) (int, error) {
	_, most, elastic := strings.Cut(nodes, ":")
	if !elastic {
		most = nodes
	}
	n, err := strconv.Atoi(most)
	if err == nil && n < 1 {
		err = errors.New("want at least 1")
	}
	return n, err
}

// meeting is the place of a worker that meets the others at an address, which may be its own.
func meeting(address string, rank, workers int, hosts bool) place {
	return place{rank: rank, workers: workers, join: func(ctx context.Context) (reducer, error) {
		if !hosts {
			return joinStar(ctx, []string{address}, rank)
		}
		_, port, err := net.SplitHostPort(address)
		if err != nil {
			return nil, err
		}
		listener, err := listenOn(ctx, port)
		if err != nil {
			return nil, err
		}
		ended := make(chan error, 1)
		go func() { ended <- serveStar(ctx, listener, workers) }()
		member, err := joinStar(ctx, []string{listener.Addr().String()}, rank)
		if err != nil {
			return nil, err
		}
		return &host{star: member, ended: ended}, nil
	}}
}

// host is a worker that hosts the meeting: it leaves when all others have left.
type host struct {
	*star
	ended <-chan error
}

// Close leaves, and waits until all have.
func (h *host) Close() {
	h.star.Close()
	<-h.ended
}
