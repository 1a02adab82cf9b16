// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sync/errgroup"
)

// all has a process call all others, and be called by them. Nobody is answered before all others have called
// him. So who is through knows that everybody has called everybody.
func all(ctx context.Context, own net.Listener, me int, addresses []string) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		_, err := answer(ctx, own, len(addresses)-1, count)
		return err
	})
	for i, address := range addresses {
		if i == me {
			continue
		}
		group.Go(func() error {
			said, err := call(ctx, address, strconv.Itoa(me))
			if err == nil && said != strconv.Itoa(len(addresses)-1) {
				err = fmt.Errorf("%s says that it was called by %s, want %d", address, said, len(addresses)-1)
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	log.Printf("number %d of %d: all have called each other", me, len(addresses))
	return nil
}

// member is who comes to a meeting to learn where the others are.
type member struct {
	// meeting tells one from another at the same place. It may be empty.
	meeting string
	// rank is what the member is told to be; -1 has the host choose it.
	rank int
	// address is where the others find it.
	address string
}

func (m member) String() string { return fmt.Sprintf("%s,%d,%s", m.meeting, m.rank, m.address) }

func parseMember(text string) (member, error) {
	parts := strings.Split(text, ",")
	if len(parts) != 3 {
		return member{}, fmt.Errorf("want meeting,rank,address, not %q", text)
	}
	rank, err := strconv.Atoi(parts[1])
	return member{parts[0], rank, parts[2]}, err
}

// roll is what the host of a meeting answers: all members, by rank. Who has none comes as he has called.
func roll(callers []string) string {
	callers = slices.Clone(callers)
	rank := func(caller string) int {
		m, err := parseMember(caller)
		if err != nil {
			return -1 // The members will say so.
		}
		return m.rank
	}
	slices.SortStableFunc(callers, func(a, b string) int { return cmp.Compare(rank(a), rank(b)) })
	return strings.Join(callers, " ")
}

// join tells the host of a meeting of a member, and has it call all the others.
func join(ctx context.Context, host string, m member, own net.Listener) error {
	said, err := call(ctx, host, m.String())
	if err != nil {
		return err
	}
	me := -1
	var addresses []string
	for i, text := range strings.Fields(said) {
		other, err := parseMember(text)
		switch {
		case err != nil:
			return err
		case other.meeting != m.meeting:
			return fmt.Errorf("%s is at the meeting %q, and this is %q", other.address, other.meeting, m.meeting)
		case other.rank >= 0 && other.rank != i:
			return fmt.Errorf("%s has rank %d, and is number %d", other.address, other.rank, i)
		case other.address == m.address:
			me = i
		}
		addresses = append(addresses, other.address)
	}
	if me < 0 {
		return fmt.Errorf("%s is not one of %v", m.address, addresses)
	}
	return all(ctx, own, me, addresses)
}

// meet is a member that joins n at a host, which it may be itself.
func meet(ctx context.Context, host string, isHost bool, n int, m member, listen listenFunc) error {
	own, err := listen("0")
	if err != nil {
		return err
	}
	defer own.Close()
	if m.address, err = addressOf(ctx, own); err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	if isHost {
		_, port, err := net.SplitHostPort(host)
		if err != nil {
			return err
		}
		meeting, err := listen(port)
		if err != nil {
			return err
		}
		defer meeting.Close()
		if host, err = addressOf(ctx, meeting); err != nil {
			return err
		}
		group.Go(func() error {
			_, err := answer(ctx, meeting, n, roll)
			return err
		})
	}
	group.Go(func() error { return join(ctx, host, m, own) })
	return group.Wait()
}

// addressOf is where others find a listener: at the address of this host, if it listens on all.
func addressOf(ctx context.Context, listener net.Listener) (string, error) {
	at, ok := listener.Addr().(*net.TCPAddr)
	if !ok {
		return "", errors.New("want a TCP port")
	}
	if !at.IP.IsUnspecified() {
		return at.String(), nil
	}
	name, err := os.Hostname()
	if err != nil {
		return "", err
	}
	found, err := net.DefaultResolver.LookupHost(ctx, name)
	if err != nil {
		return "", fmt.Errorf("looking up this host: %w", err)
	}
	return net.JoinHostPort(found[0], strconv.Itoa(at.Port)), nil
}

// isThisHost says whether a name is that of this host, as torchrun finds out: it is the same, or has one of the
// same addresses. What has no address yet is another one.
func isThisHost(ctx context.Context, name string) (bool, error) {
	this, err := os.Hostname()
	if err != nil || this == name {
		return err == nil, err
	}
	own, err := net.DefaultResolver.LookupHost(ctx, this)
	if err != nil {
		return false, fmt.Errorf("looking up this host: %w", err)
	}
	its, err := net.DefaultResolver.LookupHost(ctx, name)
	if err != nil {
		log.Printf("%s has no address yet, so it is not this host: %v", name, err)
		return false, nil
	}
	return slices.ContainsFunc(its, func(address string) bool { return slices.Contains(own, address) }), nil
}
