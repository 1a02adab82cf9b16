// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package scheduling

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// scheduler is a program that is measured.
type scheduler struct {
	// program is its name in PATH, schedulerName that of its Pods.
	program, schedulerName string
}

var (
	lockstep = scheduler{program: "lockstep-scheduler", schedulerName: "lockstep-scheduler"}
	plain    = scheduler{program: "plain-scheduler", schedulerName: "default-scheduler"}
)

// rate is a request rate that no scheduler reaches here: they are to wait for
// the API server, not for their clients.
const rate = "10000"

// process is a scheduler that runs.
type process struct {
	started time.Time
	cmd     *exec.Cmd
	log     string
	// exited is closed when it has.
	exited chan struct{}
}

// start starts a scheduler.
func (s *stage) start(ctx context.Context, of scheduler) (*process, error) {
	path := filepath.Join(s.cluster.Dir, of.program+".log")
	log, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	defer log.Close() // the process has its own
	cmd := exec.CommandContext(ctx, of.program, "--kubeconfig="+s.cluster.Kubeconfig, "--leader-elect=false",
		"--secure-port=0", "--kube-api-qps="+rate, "--kube-api-burst="+rate)
	cmd.Stdout, cmd.Stderr = log, log
	p := &process{cmd: cmd, log: path, exited: make(chan struct{}), started: time.Now()}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting %s: %w", of.program, err)
	}
	go func() {
		defer close(p.exited)
		_ = cmd.Wait() // it is killed in the end
	}()
	return p, nil
}

// kill ends the process and waits until it is gone.
func (p *process) kill() {
	_ = p.cmd.Process.Kill() // the only error is that it has ended
	<-p.exited
}

// logTail is the end of what it has logged.
func (p *process) logTail() string {
	const most = 2000
	data, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	return string(data[max(0, len(data)-most):])
}

// clockTick is the unit of times in /proc, on all of Linux's platforms.
const clockTick = 10 * time.Millisecond

// cpu is the processor time that the process has used.
func (p *process) cpu() (time.Duration, error) {
	path := fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid)
	data, err := os.ReadFile(path)
	if err != nil {
		return 0, fmt.Errorf("reading processor time: %w", err)
	}
	// PID (NAME) STATE …; utime and stime are the 14th and 15th field.
	_, rest, _ := strings.Cut(string(bytes.TrimSpace(data)), ") ")
	fields := strings.Fields(rest)
	if len(fields) < 13 {
		return 0, fmt.Errorf("reading processor time: %s has %d fields", path, len(fields))
	}
	var ticks time.Duration
	for _, field := range fields[11:13] {
		n, err := strconv.Atoi(field)
		if err != nil {
			return 0, fmt.Errorf("reading processor time: %s: %w", path, err)
		}
		ticks += time.Duration(n)
	}
	return ticks * clockTick, nil
}

// waitIdle waits until the process has used no processor time for a while,
// twice in a row: it has nothing left to do.
func (p *process) waitIdle(ctx context.Context) error {
	const while, quiet = 500 * time.Millisecond, 2
	before, calm := time.Duration(-1), 0
	err := wait.PollUntilContextCancel(ctx, while, true, func(context.Context) (bool, error) {
		now, err := p.cpu()
		if err != nil {
			return false, err
		}
		if now-before <= clockTick && before >= 0 {
			calm++
		} else {
			calm = 0
		}
		before = now
		return calm >= quiet, nil
	})
	if err != nil {
		return fmt.Errorf("waiting until the scheduler is idle: %w", err)
	}
	return nil
}
