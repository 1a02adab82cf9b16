// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package scheduling

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/lockstep-k8s/lockstep/internal/localenv"
)

// scheduler is a program that is measured.
type scheduler struct {
	// program is its name in PATH, schedulerName that of its Pods.
	program, schedulerName string
	// alsoServes is another name that Pods may have for it, empty for none.
	alsoServes string
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
	*localenv.Process
}

// start starts a scheduler, with more flags, of which the last of a kind counts.
func (s *stage) start(ctx context.Context, of scheduler, more ...string) (*process, error) {
	flags := append([]string{"--kubeconfig=" + s.cluster.Kubeconfig, "--leader-elect=false",
		"--secure-port=0", "--kube-api-qps=" + rate, "--kube-api-burst=" + rate}, more...)
	if of.alsoServes != "" {
		flags = append(flags, "--also-serve="+of.alsoServes)
	}
	p, err := localenv.Start(ctx, filepath.Join(s.cluster.Dir, of.program+".log"), of.program, flags...)
	if err != nil {
		return nil, err
	}
	return &process{p}, nil
}

// logTail is the end of what it has logged.
func (p *process) logTail() string { return p.LogTail(2000) }

// clockTick is the unit of times in /proc, on all of Linux's platforms.
const clockTick = 10 * time.Millisecond

// cpu is the processor time that the process has used.
func (p *process) cpu() (time.Duration, error) {
	path := fmt.Sprintf("/proc/%d/stat", p.PID())
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
