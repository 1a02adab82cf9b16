// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"log"
	"net"
	"strconv"
)

// pytorch calls the process of rank 0, or is it and waits for the calls of all others.
func pytorch(ctx context.Context, getenv func(string) string, listen listenFunc) error {
	rank, err := strconv.Atoi(getenv("RANK"))
	if err != nil {
		return fmt.Errorf("RANK: %w", err)
	}
	size, err := strconv.Atoi(getenv("WORLD_SIZE"))
	if err != nil {
		return fmt.Errorf("WORLD_SIZE: %w", err)
	}
	master, port := getenv("MASTER_ADDR"), getenv("MASTER_PORT")
	if rank < 0 || rank >= size || master == "" || port == "" {
		return fmt.Errorf("RANK %d, WORLD_SIZE %d, MASTER_ADDR %q, MASTER_PORT %q make no sense", rank, size, master, port)
	}
	if rank > 0 {
		callers, err := call(ctx, net.JoinHostPort(master, port), strconv.Itoa(rank))
		if err != nil {
			return err
		}
		log.Printf("rank %d: the master was called by all %s", rank, callers)
		return nil
	}
	listener, err := listen(port)
	if err != nil {
		return err
	}
	defer listener.Close()
	callers, err := answer(ctx, listener, size-1, count)
	if err != nil {
		return err
	}
	log.Printf("rank 0: called by ranks %v", callers)
	return nil
}
