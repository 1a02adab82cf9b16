// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package localenv

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// fakeCluster is the folder of a cluster whose only program is the controller, in
// a state. Its lock is held, as a supervisor does.
func fakeCluster(t *testing.T, pid int, state string) *Cluster {
	t.Helper()
	c := &Cluster{Dir: t.TempDir()}
	lock, err := os.Create(filepath.Join(c.Dir, "lock"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { lock.Close() })
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		t.Fatal(err)
	}
	writeFakeState(t, c, pid, state)
	return c
}

func writeFakeState(t *testing.T, c *Cluster, pid int, state string) {
	t.Helper()
	content := fmt.Sprintf(`{"pid": 2, "phase": "Ready", "addresses": {"controller": "127.0.0.1:7"},
		"programs": [{"name": "controller", "pid": %d, "state": %q, "restarts": 3}]}`, pid, state)
	if err := os.WriteFile(filepath.Join(c.Dir, "state.json"), []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestProgramIsFoundByNameWhileItRuns(t *testing.T) {
	for name, tc := range map[string]struct {
		program, state string
		killed         bool // nobody holds the lock
		want           Program
		wantError      string
	}{
		"one that runs": {program: "controller", state: "Running",
			want: Program{Name: "controller", PID: 7, State: "Running", Restarts: 3, Address: "127.0.0.1:7"}},
		"one that is being started again": {program: "controller", state: "Restarting", wantError: "controller does not run, it is Restarting"},
		"one that is not there":           {program: "cook", state: "Running", wantError: `no program "cook", but [controller]`},
		"of a cluster that was killed":    {program: "controller", state: "Running", killed: true, wantError: "was killed"},
	} {
		t.Run(name, func(t *testing.T) {
			c := fakeCluster(t, 7, tc.state)
			if tc.killed {
				// A new file, so that its lock is free.
				lock := filepath.Join(c.Dir, "lock")
				if err := os.Remove(lock); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(lock, nil, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			got, err := c.Program(tc.program)
			if got != tc.want || (err == nil) != (tc.wantError == "") || err != nil && !strings.Contains(err.Error(), tc.wantError) {
				t.Errorf("got %+v, %v; want %+v, error %q", got, err, tc.want, tc.wantError)
			}
		})
	}
}

func TestKillEndsAProgramAndReturnsWhenTheClusterKnows(t *testing.T) {
	sleeper := exec.Command("sleep", "600")
	if err := sleeper.Start(); err != nil {
		t.Fatal(err)
	}
	c := fakeCluster(t, sleeper.Process.Pid, "Running")
	killed := make(chan error, 1)
	go func() { killed <- c.Kill(t.Context(), "controller") }()
	// As the supervisor does: it notices the death of its child, and says so.
	if err := sleeper.Wait(); err == nil || sleeper.ProcessState.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Errorf("the program ended by %v, want SIGKILL", err)
	}
	select {
	case err := <-killed:
		t.Errorf("Kill returned %v before the cluster knew", err)
	default:
	}
	writeFakeState(t, c, sleeper.Process.Pid, "Restarting")
	if err := <-killed; err != nil {
		t.Error(err)
	}
	if err := c.Kill(t.Context(), "controller"); err == nil {
		t.Error("a program that does not run was killed")
	}
}
