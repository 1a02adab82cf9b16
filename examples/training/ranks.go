// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"net"
	"strconv"
	"strings"
)

// placeInXGBoostJob is that of a process that finds the others as XGBoost and LightGBM do: all
// meet at the master, and the names of all workers are told, too.
func placeInXGBoostJob(getenv func(string) string) (place, error) {
	rank, workers, err := rankOf(getenv, "RANK", "WORLD_SIZE")
	if err != nil {
		return place{}, err
	}
	if others := strings.Split(getenv("WORKER_ADDRS"), ","); workers > 1 && len(others) != workers-1 {
		return place{}, fmt.Errorf("WORKER_ADDRS has %d names, but WORLD_SIZE is %d", len(others), workers)
	}
	return meeting(net.JoinHostPort(getenv("MASTER_ADDR"), getenv("MASTER_PORT")), rank, workers, rank == 0), nil
}

// placeInJAXJob is that of a process that finds the others as JAX does, by their coordinator.
func placeInJAXJob(getenv func(string) string) (place, error) {
	rank, workers, err := rankOf(getenv, "PROCESS_ID", "NUM_PROCESSES")
	if err != nil {
		return place{}, err
	}
	return meeting(net.JoinHostPort(getenv("COORDINATOR_ADDRESS"), getenv("COORDINATOR_PORT")), rank, workers, rank == 0), nil
}

// placeInPaddleJob is that of a process that finds the others as PaddlePaddle does: all meet at one
// of them, which is told its own IP, and get their ranks there.
func placeInPaddleJob(getenv func(string) string) (place, error) {
	workers, err := mostNodes(getenv("PADDLE_NNODES"))
	if err != nil {
		return place{}, fmt.Errorf("PADDLE_NNODES: %w", err)
	}
	if _, _, err := net.SplitHostPort(getenv("PADDLE_MASTER")); err != nil {
		return place{}, fmt.Errorf("PADDLE_MASTER: %w", err)
	}
	return meeting(getenv("PADDLE_MASTER"), -1, workers, getenv("POD_IP_DUMMY") != ""), nil
}

// rankOf is which of how many workers a process is, by two variables.
func rankOf(getenv func(string) string, rankName, workersName string) (rank, workers int, err error) {
	if rank, err = strconv.Atoi(getenv(rankName)); err != nil {
		return 0, 0, fmt.Errorf("%s: %w", rankName, err)
	}
	if workers, err = strconv.Atoi(getenv(workersName)); err != nil {
		return 0, 0, fmt.Errorf("%s: %w", workersName, err)
	}
	if rank < 0 || rank >= workers {
		return 0, 0, fmt.Errorf("%s is %d, but %s is %d", rankName, rank, workersName, workers)
	}
	return rank, workers, nil
}
