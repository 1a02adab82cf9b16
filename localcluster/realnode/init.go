// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package realnode

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

// Init is process 1 of the node's namespaces. It gives the node its own view of the file
// system (isolateMounts), starts the runtime and the kubelet, and collects the processes
// that lose their parents. It returns when the runtime or the kubelet ends, or on SIGTERM;
// with it goes everything that it started.
func Init(planFile string) error {
	if os.Getpid() != 1 {
		return errors.New("node is for lockstep-local itself, which starts it as process 1 of a new namespace")
	}
	content, err := os.ReadFile(planFile)
	if err != nil {
		return fmt.Errorf("reading the plan of the node: %w", err)
	}
	var plan initPlan
	if err := json.Unmarshal(content, &plan); err != nil {
		return fmt.Errorf("reading the plan of the node: %w", err)
	}
	if err := isolateMounts(); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- runNode(&plan) }()

	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	select {
	case err := <-ended:
		return err
	case <-signals:
		return nil
	}
}

// runNode starts the programs in order and returns when one of them has ended.
func runNode(plan *initPlan) error {
	children := &reaper{exits: map[int]chan<- syscall.WaitStatus{}}
	containerd, err := children.start(plan.Runtime)
	if err != nil {
		return err
	}
	go children.reap()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := waitSocket(ctx, plan.Socket, containerd); err != nil {
		return err
	}
	imported, err := children.start(plan.Import)
	if err != nil {
		return err
	}
	if status := <-imported; status.ExitStatus() != 0 {
		return fmt.Errorf("importing the sandbox image failed: see %s", plan.Import.Log)
	}
	kubelet, err := children.start(plan.Kubelet)
	if err != nil {
		return err
	}
	select {
	case status := <-containerd:
		return fmt.Errorf("containerd ended (%s): see %s", describe(status), plan.Runtime.Log)
	case status := <-kubelet:
		return fmt.Errorf("kubelet ended (%s): see %s", describe(status), plan.Kubelet.Log)
	}
}

func waitSocket(ctx context.Context, socket string, containerd <-chan syscall.WaitStatus) error {
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	for {
		conn, err := net.Dial("unix", socket)
		if err == nil {
			return conn.Close()
		}
		select {
		case status := <-containerd:
			return fmt.Errorf("containerd ended while starting (%s)", describe(status))
		case <-ctx.Done():
			return fmt.Errorf("containerd does not listen: %w", err)
		case <-ticker.C:
		}
	}
}

// reaper starts processes and collects all that end: its own, and those that the kernel gives
// to process 1 because their parent has ended.
type reaper struct {
	// mu is held from before a process starts until it is in exits, so that its end cannot be
	// noticed in between.
	mu    sync.Mutex
	exits map[int]chan<- syscall.WaitStatus
}

// start starts a program and returns where its exit status will be told.
func (r *reaper) start(c command) (<-chan syscall.WaitStatus, error) {
	log, err := os.OpenFile(c.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, fmt.Errorf("opening a log: %w", err)
	}
	defer log.Close()
	cmd := exec.Command(c.Path, c.Args...)
	cmd.Stdout, cmd.Stderr = log, log

	r.mu.Lock()
	defer r.mu.Unlock()
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting %s: %w", filepath.Base(c.Path), err)
	}
	exit := make(chan syscall.WaitStatus, 1)
	r.exits[cmd.Process.Pid] = exit
	return exit, nil
}

// reap collects processes for ever. It must not run before the first start, for the os package
// tries out process handles on a child of its own then.
func (r *reaper) reap() {
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, 0, nil)
		if err != nil {
			// No child at the moment, or a signal.
			time.Sleep(50 * time.Millisecond)
			continue
		}
		r.mu.Lock()
		if exit, ok := r.exits[pid]; ok {
			exit <- status
			delete(r.exits, pid)
		}
		r.mu.Unlock()
	}
}

func describe(status syscall.WaitStatus) string {
	if status.Signaled() {
		return "signal: " + status.Signal().String()
	}
	return fmt.Sprintf("exit status %d", status.ExitStatus())
}
