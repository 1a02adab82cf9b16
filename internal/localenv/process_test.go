// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package localenv

import (
	"context"
	"errors"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func start(t *testing.T, script string) *Process {
	t.Helper()
	p, err := Start(t.Context(), filepath.Join(t.TempDir(), "log"), "sh", "-c", script)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Kill)
	return p
}

func TestAProcessIsTerminatedGracefully(t *testing.T) {
	p := start(t, `trap 'echo bye; exit 3' TERM; echo ready; while :; do sleep 0.01; done`)
	if err := p.WaitLog(t.Context(), "ready"); err != nil {
		t.Fatal(err)
	}
	if p.Ended() {
		t.Fatal("it has ended by itself")
	}
	var exit *exec.ExitError
	if err := p.Terminate(t.Context()); !errors.As(err, &exit) || exit.ExitCode() != 3 || !p.Ended() {
		t.Errorf("it ended with %v, want exit code 3", err)
	}
	if log, err := p.Log(); log != "ready\nbye\n" || err != nil {
		t.Errorf("its log is %q (%v)", log, err)
	}
}

func TestTerminateGivesUpWithItsContext(t *testing.T) {
	p := start(t, `trap '' TERM; echo ready; while :; do sleep 0.01; done`)
	if err := p.WaitLog(t.Context(), "ready"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := p.Terminate(ctx); !errors.Is(err, context.DeadlineExceeded) || p.Ended() {
		t.Errorf("a process that ignores the signal: %v, ended %t", err, p.Ended())
	}
}

func TestAllProcessesAreKilledWhateverTheirContexts(t *testing.T) {
	p, err := Start(context.WithoutCancel(t.Context()), filepath.Join(t.TempDir(), "log"), "sh", "-c", `trap '' TERM; sleep 600`)
	if err != nil {
		t.Fatal(err)
	}
	KillProcesses()
	if !p.Ended() {
		p.Kill()
		t.Error("a process runs on")
	}
	KillProcesses() // There are none.
}

func TestAProcessThatEndsIsNotWaitedFor(t *testing.T) {
	p := start(t, "echo no such flag >&2; exit 2")
	err := p.WaitLog(t.Context(), "ready")
	if err == nil || !strings.Contains(err.Error(), "exit status 2") || !strings.Contains(err.Error(), "no such flag") {
		t.Errorf("waiting for a process that has ended: %v", err)
	}
	if err := p.WaitLog(t.Context(), "such"); err != nil {
		t.Errorf("what it printed before it ended was not found: %v", err)
	}
}

func TestAProcessDiesWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	p, err := Start(ctx, filepath.Join(t.TempDir(), "log"), "sleep", "600")
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	<-p.Done()
}

func TestLogTailIsTheEndOfALog(t *testing.T) {
	p := start(t, "echo 0123456789")
	<-p.Done()
	for n, want := range map[int]string{100: "0123456789\n", 4: "…789\n"} {
		if got := p.LogTail(n); got != want {
			t.Errorf("the last %d bytes are %q, want %q", n, got, want)
		}
	}
}
