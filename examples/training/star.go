// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"time"
)

// star sums vectors by servers in its middle. Each of them sums a part of the vector.
type star struct {
	rank    int
	servers []*line
}

// line is a connection over which vectors go.
type line struct {
	net.Conn
	in *bufio.Reader
}

func newLine(conn net.Conn) *line { return &line{conn, bufio.NewReaderSize(conn, 1<<16)} }

// longest bounds a vector that is received, in elements.
const longest = 1 << 20

func (l *line) send(v []float64) error {
	message := binary.LittleEndian.AppendUint32(make([]byte, 0, 4+8*len(v)), uint32(len(v)))
	for _, x := range v {
		message = binary.LittleEndian.AppendUint64(message, math.Float64bits(x))
	}
	_, err := l.Write(message)
	return err
}

// receive returns io.EOF if the other side has hung up between two vectors.
func (l *line) receive() ([]float64, error) {
	var head [4]byte
	if _, err := io.ReadFull(l.in, head[:]); err != nil {
		return nil, err
	}
	n := binary.LittleEndian.Uint32(head[:])
	if n > longest {
		return nil, fmt.Errorf("a vector of %d elements, want at most %d", n, longest)
	}
	message := make([]byte, 8*n)
	if _, err := io.ReadFull(l.in, message); err != nil {
		return nil, fmt.Errorf("in the midst of a vector: %w", err)
	}
	v := make([]float64, n)
	for i := range v {
		v[i] = math.Float64frombits(binary.LittleEndian.Uint64(message[8*i:]))
	}
	return v, nil
}

// listenOn listens on a port of all addresses of this host.
func listenOn(ctx context.Context, port string) (net.Listener, error) {
	return (&net.ListenConfig{}).Listen(ctx, "tcp", net.JoinHostPort("", port))
}

// joinStar calls all servers, and returns when each has heard from all workers. A worker of rank
// -1 gets its rank from the first server.
func joinStar(ctx context.Context, servers []string, rank int) (*star, error) {
	ctx, cancel := context.WithTimeout(ctx, peerTimeout)
	defer cancel()
	s := &star{rank: rank}
	for _, address := range servers {
		for {
			server, given, err := callServer(ctx, address, s.rank)
			if err == nil {
				s.servers, s.rank = append(s.servers, server), given
				break
			}
			if ctx.Err() != nil {
				s.Close()
				return nil, fmt.Errorf("calling %s: %w", address, err)
			}
		}
	}
	return s, nil
}

// callServer tells a server one's rank, and waits for its answer, which is the rank.
func callServer(ctx context.Context, address string, rank int) (*line, int, error) {
	conn, err := dial(ctx, address)
	if err != nil {
		return nil, 0, err
	}
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	server := newLine(conn)
	err = server.send([]float64{float64(rank)})
	var answer []float64
	if err == nil {
		answer, err = server.receive()
	}
	if err == nil && len(answer) != 1 {
		err = errors.New("want one number as an answer")
	}
	if err != nil {
		conn.Close()
		select { // It may be about to be started again.
		case <-time.After(200 * time.Millisecond):
		case <-ctx.Done():
		}
		return nil, 0, err
	}
	return server, int(answer[0]), nil
}

// Rank is which of the workers this one is.
func (s *star) Rank() int { return s.rank }

// Close hangs up on all servers.
func (s *star) Close() {
	for _, server := range s.servers {
		server.Close()
	}
}

// AllReduce replaces v by the sum over all workers.
func (s *star) AllReduce(v []float64) error {
	part := func(i int) []float64 { return v[i*len(v)/len(s.servers) : (i+1)*len(v)/len(s.servers)] }
	for i, server := range s.servers {
		if err := server.send(part(i)); err != nil {
			return err
		}
	}
	for i, server := range s.servers {
		sum, err := server.receive()
		if err != nil {
			return err
		}
		if len(sum) != len(part(i)) {
			return fmt.Errorf("a sum of %d elements, want %d", len(sum), len(part(i)))
		}
		copy(part(i), sum)
	}
	return nil
}

// serveStar waits until all workers have called, and then sums what they send until all have
// hung up.
func serveStar(ctx context.Context, listener net.Listener, workers int) error {
	members, err := gather(ctx, listener, workers)
	listener.Close()
	defer func() {
		for _, member := range members {
			if member != nil {
				member.Close()
			}
		}
	}()
	if err != nil {
		return fmt.Errorf("waiting for %d workers: %w", workers, err)
	}
	stop := context.AfterFunc(ctx, func() {
		for _, member := range members {
			member.Close()
		}
	})
	defer stop()
	for rank, member := range members {
		if err := member.send([]float64{float64(rank)}); err != nil {
			return fmt.Errorf("answering worker %d: %w", rank, err)
		}
	}
	for {
		over, err := sumOnce(members)
		if over || err != nil {
			return err
		}
	}
}

// gather takes the calls of a number of workers, and returns them by rank. Those that have none are
// given those that are left, in the order of their calls.
func gather(ctx context.Context, listener net.Listener, workers int) ([]*line, error) {
	ctx, cancel := context.WithTimeout(ctx, peerTimeout)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { listener.Close() })
	defer stop()
	members := make([]*line, workers)
	for missing := workers; missing > 0; {
		conn, err := listener.Accept()
		if err != nil {
			return members, fmt.Errorf("%d have not called: %w", missing, err)
		}
		if err := conn.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
			return members, err
		}
		member := newLine(conn)
		hello, err := member.receive()
		if err != nil || len(hello) != 1 || hello[0] >= float64(workers) {
			conn.Close() // It calls again.
			continue
		}
		if err := conn.SetReadDeadline(time.Time{}); err != nil {
			return members, err
		}
		rank := int(hello[0])
		for i := 0; rank < 0; i++ {
			if members[i] == nil {
				rank = i
			}
		}
		if before := members[rank]; before != nil {
			before.Close() // It has given up that call.
		} else {
			missing--
		}
		members[rank] = member
	}
	return members, nil
}

// sumOnce sums one vector of each worker, in the order of their ranks. It is over when the first
// has hung up: all have trained as many steps.
func sumOnce(members []*line) (over bool, err error) {
	var sum []float64
	for rank, member := range members {
		v, err := member.receive()
		switch {
		case rank == 0 && errors.Is(err, io.EOF):
			return true, nil
		case err != nil:
			return false, fmt.Errorf("worker %d: %w", rank, err)
		case rank == 0:
			sum = v
			continue
		case len(v) != len(sum):
			return false, fmt.Errorf("worker %d has sent %d elements, and worker 0 %d", rank, len(v), len(sum))
		}
		for i := range v {
			sum[i] += v[i]
		}
	}
	for rank, member := range members {
		if err := member.send(sum); err != nil {
			return false, fmt.Errorf("worker %d: %w", rank, err)
		}
	}
	return false, nil
}
