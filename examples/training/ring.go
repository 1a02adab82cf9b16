// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"net"
	"strconv"
	"time"
)

// peerTimeout bounds how long a worker waits for its neighbours to appear. All
// of a gang are placed together, so it only has to cover start-up and DNS.
const peerTimeout = 2 * time.Minute

// ring connects a worker to its two neighbours: it sends to the next and
// receives from the previous one.
type ring struct {
	rank, size int
	next       net.Conn
	prev       net.Conn
	in         *bufio.Reader
}

// join listens for the previous worker and dials the next one until both are
// there. peer gives the host and port of a rank.
func join(ctx context.Context, rank, size int, peer func(rank int) (host string, port int)) (*ring, error) {
	r := &ring{rank: rank, size: size}
	if size == 1 {
		return r, nil
	}
	ctx, cancel := context.WithTimeout(ctx, peerTimeout)
	defer cancel()
	_, port := peer(rank)
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", ":"+strconv.Itoa(port))
	if err != nil {
		return nil, err
	}
	defer listener.Close()
	stop := context.AfterFunc(ctx, func() { listener.Close() })
	defer stop()

	next := (rank + 1) % size
	dialed := make(chan error, 1)
	go func() {
		host, port := peer(next)
		var err error
		r.next, err = dial(ctx, net.JoinHostPort(host, strconv.Itoa(port)))
		dialed <- err
	}()
	r.prev, err = listener.Accept()
	if dialErr := <-dialed; dialErr != nil {
		return nil, fmt.Errorf("waiting for worker %d: %w", next, dialErr)
	}
	if err != nil {
		return nil, fmt.Errorf("waiting for worker %d: %w", (rank+size-1)%size, err)
	}
	r.in = bufio.NewReaderSize(r.prev, 1<<16)
	return r, nil
}

// dial tries until it succeeds or ctx ends: a peer's name and port appear only
// some time after it was started.
func dial(ctx context.Context, address string) (net.Conn, error) {
	var dialer net.Dialer
	retry := time.NewTicker(200 * time.Millisecond)
	defer retry.Stop()
	for {
		conn, err := dialer.DialContext(ctx, "tcp", address)
		if err == nil {
			return conn, nil
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-retry.C:
		}
	}
}

// Rank is which of the workers this one is.
func (r *ring) Rank() int { return r.rank }

// Close hangs up on both neighbours.
func (r *ring) Close() {
	if r.next != nil {
		r.next.Close()
	}
	if r.prev != nil {
		r.prev.Close()
	}
}

// AllReduce replaces v, which has the same length in all workers, by the sum
// over all workers. It is the ring algorithm: in size-1 rounds the sums of
// size chunks are gathered, each by one worker, and in size-1 further rounds
// they are passed on to all, so that every worker sends and receives about
// twice the length of v, however many there are.
func (r *ring) AllReduce(v []float64) error {
	chunk := func(i int) []float64 {
		i = (i%r.size + r.size) % r.size
		return v[i*len(v)/r.size : (i+1)*len(v)/r.size]
	}
	for round := range r.size - 1 {
		err := r.exchange(chunk(r.rank-round), chunk(r.rank-round-1), func(own, got float64) float64 { return own + got })
		if err != nil {
			return err
		}
	}
	for round := range r.size - 1 {
		err := r.exchange(chunk(r.rank+1-round), chunk(r.rank-round), func(_, got float64) float64 { return got })
		if err != nil {
			return err
		}
	}
	return nil
}

// exchange sends one chunk to the next worker while it receives another from
// the previous one and merges it.
func (r *ring) exchange(send, receive []float64, merge func(own, got float64) float64) error {
	sent := make(chan error, 1)
	go func() {
		message := make([]byte, 0, 8*len(send))
		for _, x := range send {
			message = binary.LittleEndian.AppendUint64(message, math.Float64bits(x))
		}
		_, err := r.next.Write(message)
		sent <- err
	}()
	message := make([]byte, 8*len(receive))
	_, err := io.ReadFull(r.in, message)
	if sendErr := <-sent; err == nil {
		err = sendErr
	}
	if err != nil {
		return err
	}
	for i := range receive {
		receive[i] = merge(receive[i], math.Float64frombits(binary.LittleEndian.Uint64(message[8*i:])))
	}
	return nil
}
