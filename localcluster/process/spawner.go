// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package process runs programs as children that cannot outlive their parent, writes their
// output to logs, restarts those that die, and stops them all.
package process

import (
	"os/exec"
	"runtime"
)

// A spawner starts processes from one operating system thread that lives as long as the
// program does.
//
// Linux sends a child its parent death signal when the *thread* that started it ends. Go ends
// threads at will, so that a child started from any goroutine could be killed at any time.
type spawner struct {
	requests chan spawnRequest
}

type spawnRequest struct {
	cmd  *exec.Cmd
	done chan<- error
}

func newSpawner() *spawner {
	s := &spawner{requests: make(chan spawnRequest)}
	go func() {
		runtime.LockOSThread()
		for r := range s.requests {
			r.done <- r.cmd.Start()
		}
	}()
	return s
}

func (s *spawner) start(cmd *exec.Cmd) error {
	done := make(chan error, 1)
	s.requests <- spawnRequest{cmd, done}
	return <-done
}
