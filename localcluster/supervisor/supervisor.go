// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package supervisor runs a cluster: it brings up the programs of a cluster.Plan in order,
// keeps them running, and takes everything down again.
//
// `up` starts the supervisor as a process of its own (Launch) and goes away when the cluster
// is ready. Whatever ends first, nothing is left behind:
//
//   - `up` dies while the cluster starts: its pipe closes, and the supervisor tears down;
//   - the supervisor dies: the kernel kills its children (process.Group), and with the init of
//     the real node all that runs on it; a reaper, which waits for just that, removes the
//     bridge and the cgroups;
//   - the machine dies: the next `up` or `down` in the directory cleans up first.
//
// All of them are serialized by one lock file, which supervisor and reaper hold.
package supervisor

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"os"
	"sync"
	"time"

	"github.com/lockstep-k8s/lockstep/localcluster/cluster"
	"github.com/lockstep-k8s/lockstep/localcluster/process"
	"github.com/lockstep-k8s/lockstep/localcluster/realnode"
)

// stopGrace is how long programs may take to end. The data is thrown away, so there is nothing
// to wait for: kube-apiserver would take more than ten seconds.
const stopGrace = time.Second

// errUpGone says that `up` ended before the cluster was ready.
var errUpGone = errors.New("up was ended before the cluster was ready")

// supervisor is one run of a cluster.
type supervisor struct {
	plan   cluster.Plan
	group  *process.Group
	health *healthChecker
	tell   *sender
	// reaper is the pipe that keeps the reaper waiting; nil without a real node.
	reaper *os.File

	mu    sync.Mutex
	state State
}

// Run is the supervisor process: it reads an Order from in, tells Messages on out, and runs the
// cluster until ctx ends. It returns when nothing of the cluster is left but its logs.
func Run(ctx context.Context, in io.Reader, out io.Writer) error {
	tell := &sender{out: out}
	err := run(ctx, in, tell)
	if err != nil {
		tell.send(Message{Error: err.Error()})
	}
	return err
}

func run(ctx context.Context, in io.Reader, tell *sender) error {
	reader := bufio.NewReader(in)
	line, err := reader.ReadBytes('\n')
	if err != nil {
		return fmt.Errorf("reading the order: %w", err)
	}
	var order Order
	if err := json.Unmarshal(line, &order); err != nil {
		return fmt.Errorf("reading the order: %w", err)
	}
	layout := cluster.Layout{Dir: order.Options.Dir}
	lockFile, err := lock(layout)
	if errors.Is(err, errLocked) {
		return alreadyRunning(layout)
	}
	if err != nil {
		return err
	}
	defer lockFile.Close()
	if err := wipe(layout); err != nil {
		return fmt.Errorf("removing the state of an earlier cluster: %w", err)
	}

	starting, gaveUp := context.WithCancelCause(ctx)
	defer gaveUp(nil)
	go func() {
		io.Copy(io.Discard, reader) // returns when `up` closes the pipe or dies
		gaveUp(errUpGone)
	}()

	s := &supervisor{tell: tell}
	defer func() {
		if s.reaper != nil {
			s.reaper.Close()
		}
	}()
	s.group = process.NewGroup(log.Printf, s.programsChanged)
	release, err := s.reserve(order, layout, lockFile)
	if err != nil {
		return errors.Join(err, s.tearDown())
	}
	defer release()
	if err := s.bringUp(starting); err != nil {
		return errors.Join(err, s.tearDown())
	}
	s.setPhase(Ready)
	tell.send(Message{Ready: true})

	<-ctx.Done()
	s.setPhase(Stopping)
	return s.tearDown()
}

// reserve takes what other clusters must not take too: ports, a network and, for a real node,
// its bridge. What it takes is given back by release, or by tearDown.
func (s *supervisor) reserve(order Order, layout cluster.Layout, lockFile *os.File) (release func(), err error) {
	s.plan = cluster.Plan{Options: order.Options, Layout: layout, Binaries: order.Binaries}
	// Without a real node no packet goes to these addresses, so any will do.
	s.plan.Network, err = cluster.ChooseNetwork(nil)
	if err != nil {
		return nil, err
	}
	if order.Options.RealNode {
		if err := os.MkdirAll(layout.Node(), 0o755); err != nil {
			return nil, fmt.Errorf("making the directory of the node: %w", err)
		}
		if s.reaper, err = startReaper(layout, lockFile); err != nil {
			return nil, err
		}
		if s.plan.Network, err = realnode.CreateBridge(layout.Dir); err != nil {
			return nil, err
		}
	}
	ports, claim, err := cluster.ClaimPorts()
	if err != nil {
		return nil, err
	}
	s.plan.Ports = ports
	go refuse(claim)

	s.mu.Lock()
	defer s.mu.Unlock()
	s.state = State{
		PID:     os.Getpid(),
		Phase:   Starting,
		Started: time.Now(),
		Options: order.Options,
		Ports:   ports,
		Network: s.plan.Network,
		Server:  s.plan.Server(),
		Address: map[string]string{},
	}
	if err := writeState(layout, &s.state); err != nil {
		claim.Close()
		return nil, err
	}
	return func() { claim.Close() }, nil
}

// refuse closes every connection to the port that stands for the block.
func refuse(claim net.Listener) {
	for {
		conn, err := claim.Accept()
		if err != nil {
			return
		}
		conn.Close()
	}
}

// tearDown ends all programs and removes all traces of the cluster, apart from its logs.
func (s *supervisor) tearDown() error {
	s.group.Stop(stopGrace)
	if err := removeKubeconfig(s.plan.Options.Kubeconfig, s.plan.Server()); err != nil {
		log.Printf("removing --kubeconfig: %v", err)
	}
	return wipe(s.plan.Layout)
}

// wipe removes what a cluster whose processes are gone has left, apart from its logs.
func wipe(layout cluster.Layout) error {
	if err := realnode.Cleanup(layout); err != nil {
		return err // with its directory in place, the next wipe tries again
	}
	var failed error
	for _, path := range layout.Owned() {
		failed = errors.Join(failed, os.RemoveAll(path))
	}
	return failed
}

func alreadyRunning(layout cluster.Layout) error {
	return fmt.Errorf("a cluster is running in %s: stop it with `lockstep-local down --dir %s`, or choose another --dir", layout.Dir, layout.Dir)
}

func (s *supervisor) setPhase(phase Phase) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state.Phase = phase
	s.save()
}

// programsChanged is told by the group of every change.
func (s *supervisor) programsChanged(programs []process.Status) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state.Programs = programs
	s.save()
}

// save writes the state; s.mu is held. Failing to is no reason to end a cluster that works.
func (s *supervisor) save() {
	if err := writeState(s.plan.Layout, &s.state); err != nil {
		log.Print(err)
	}
}
