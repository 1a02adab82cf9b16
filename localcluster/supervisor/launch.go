// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lockstep-k8s/lockstep/internal/statedir"
	"github.com/lockstep-k8s/lockstep/localcluster/cluster"
	"github.com/lockstep-k8s/lockstep/localcluster/process"
)

// minFree is the free space that a cluster asks for under its directory, in bytes.
const minFree = 512 << 20

// CheckDir tells in one line why a cluster cannot be started in a directory.
func CheckDir(layout cluster.Layout) error {
	if err := statedir.Make(layout.Dir); err != nil {
		return err
	}
	running, err := Running(layout)
	if err != nil {
		return err
	}
	if running {
		return alreadyRunning(layout)
	}
	if err := os.MkdirAll(layout.Logs(), 0o755); err != nil {
		return fmt.Errorf("--dir: %w", err)
	}
	if err := unix.Access(layout.Dir, unix.W_OK); err != nil {
		return fmt.Errorf("--dir %s: %w", layout.Dir, err)
	}
	var fs unix.Statfs_t
	if err := unix.Statfs(layout.Dir, &fs); err != nil {
		return fmt.Errorf("--dir %s: %w", layout.Dir, err)
	}
	if free := fs.Bavail * uint64(fs.Bsize); free < minFree {
		return fmt.Errorf("--dir %s has %d MiB free, and a cluster asks for %d MiB", layout.Dir, free>>20, minFree>>20)
	}
	return nil
}

// Launch starts a supervisor and returns when the cluster is ready. progress is told what
// happens. If ctx ends before, the supervisor takes everything down, and Launch waits for it.
func Launch(ctx context.Context, order Order, progress func(string)) error {
	layout := cluster.Layout{Dir: order.Options.Dir}
	clearLogs(layout)
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("finding the executable: %w", err)
	}
	logFile, err := os.OpenFile(layout.Log("supervisor"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("opening the log of the supervisor: %w", err)
	}
	defer logFile.Close()

	cmd := exec.Command(self, SuperviseCommand)
	cmd.Dir = layout.Dir
	cmd.Stderr = logFile
	// A session of its own: the end of the terminal is not the end of the cluster.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	orders, err := cmd.StdinPipe()
	if err != nil {
		return fmt.Errorf("making a pipe: %w", err)
	}
	messages, err := cmd.StdoutPipe()
	if err != nil {
		return fmt.Errorf("making a pipe: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("starting the supervisor: %w", err)
	}
	stop := context.AfterFunc(ctx, func() { orders.Close() })
	defer stop()
	if err := json.NewEncoder(orders).Encode(order); err != nil {
		return fmt.Errorf("giving the order to the supervisor: %w", err)
	}
	ready, err := follow(messages, progress)
	if ready {
		return nil
	}
	cmd.Wait()
	if err == nil {
		err = fmt.Errorf("the supervisor died; the end of %s: %s", layout.Log("supervisor"),
			strings.Join(process.Tail(layout.Log("supervisor"), 3), " | "))
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// follow passes progress on until the supervisor says that the cluster is ready, or why not.
func follow(messages io.Reader, progress func(string)) (ready bool, err error) {
	for scanner := bufio.NewScanner(messages); scanner.Scan(); {
		var m Message
		if err := json.Unmarshal(scanner.Bytes(), &m); err != nil {
			return false, fmt.Errorf("reading from the supervisor: %w", err)
		}
		switch {
		case m.Ready:
			return true, nil
		case m.Error != "":
			err = errors.New(m.Error)
		case m.Progress != "":
			progress(m.Progress)
		}
	}
	return false, err
}

// clearLogs removes the logs of an earlier cluster, so that they are not taken for those of
// the present one.
func clearLogs(layout cluster.Layout) {
	entries, err := os.ReadDir(layout.Logs())
	if err != nil {
		return
	}
	for _, e := range entries {
		if name, ok := strings.CutSuffix(e.Name(), ".log"); ok {
			os.Remove(layout.Log(name))
		}
	}
}

// downTimeout is how long Down waits for a supervisor before it kills it, and then for the
// reaper.
const downTimeout = 30 * time.Second

// Down ends the cluster in a directory, if there is one, and removes what is left of it. With
// keepLogs the logs stay.
func Down(ctx context.Context, layout cluster.Layout, keepLogs bool) error {
	if _, err := os.Stat(layout.Dir); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	lockFile, err := stopSupervisor(ctx, layout)
	if err != nil {
		return err
	}
	defer lockFile.Close()
	if state, err := ReadState(layout); err == nil {
		// The supervisor was killed before it could do this.
		if err := removeKubeconfig(state.Options.Kubeconfig, state.Server); err != nil {
			return fmt.Errorf("removing --kubeconfig: %w", err)
		}
	}
	if err := wipe(layout); err != nil {
		return err
	}
	if !keepLogs {
		clearLogs(layout)
		os.Remove(layout.Logs()) // unless it holds files of someone else
	}
	if err := os.Remove(layout.Lock()); err != nil {
		return fmt.Errorf("removing the lock: %w", err)
	}
	os.Remove(layout.Dir) // unless it holds files of someone else
	return nil
}

// stopSupervisor returns with the lock of the cluster held.
func stopSupervisor(ctx context.Context, layout cluster.Layout) (*os.File, error) {
	deadline := time.Now().Add(downTimeout)
	asked, killed := false, false
	for {
		lockFile, err := lock(layout)
		if !errors.Is(err, errLocked) {
			return lockFile, err
		}
		switch state, err := ReadState(layout); {
		case err != nil:
			// It is just starting, and has not written its state, or stopping, and has removed it.
		case !asked:
			asked = true
			signal(state.PID, unix.SIGTERM)
		case !killed && time.Now().After(deadline):
			killed = true
			deadline = time.Now().Add(downTimeout)
			signal(state.PID, unix.SIGKILL)
		}
		if time.Now().After(deadline) && (killed || !asked) {
			return nil, fmt.Errorf("the cluster in %s does not stop: see %s", layout.Dir, layout.Log("supervisor"))
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// signal sends a signal to a supervisor. That it is gone already is what is wanted.
func signal(pid int, sig unix.Signal) {
	unix.Kill(pid, sig)
}
