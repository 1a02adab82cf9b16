// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package localenv

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Process is a program that was started beside the cluster. Nothing restarts it when it ends.
type Process struct {
	// Started is when the process was started.
	Started time.Time

	cmd *exec.Cmd
	log string
	// ended is closed when the process has ended; err is the error of its exit.
	ended chan struct{}
	err   error
}

// running are the processes that Start has started and that are not gone.
var running = struct {
	mu  sync.Mutex
	all map[*Process]bool
}{all: make(map[*Process]bool)}

// KillProcesses kills all processes that Start has started, and waits until they have ended. Call it before the program
// exits, because the contexts of Start do not end then.
func KillProcesses() {
	running.mu.Lock()
	all := slices.Collect(maps.Keys(running.all))
	running.mu.Unlock()
	for _, p := range all {
		p.Kill()
	}
}

// Start starts a program from PATH, and returns at once. The program's output goes to the file `log`. The process is
// killed when ctx ends.
func Start(ctx context.Context, log, program string, args ...string) (*Process, error) {
	file, err := os.Create(log)
	if err != nil {
		return nil, fmt.Errorf("starting %s: %w", program, err)
	}
	defer file.Close() // the process has its own
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = append(os.Environ(), "KUBERNETES_SERVICE_HOST=") // A test may run in a Pod, what it starts does not.
	cmd.Stdout, cmd.Stderr = file, file
	p := &Process{Started: time.Now(), cmd: cmd, log: log, ended: make(chan struct{})}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting %s: %w", program, err)
	}
	running.mu.Lock()
	running.all[p] = true
	running.mu.Unlock()
	go func() {
		p.err = cmd.Wait()
		running.mu.Lock()
		delete(running.all, p)
		running.mu.Unlock()
		close(p.ended)
	}()
	return p, nil
}

// PID returns the number of the process.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Done is closed when the process is gone.
func (p *Process) Done() <-chan struct{} { return p.ended }

// Ended reports whether the process is gone.
func (p *Process) Ended() bool {
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}

// Kill kills the process with SIGKILL, as a crash would end it, and waits until it is gone. Kill does nothing if the
// process has ended.
func (p *Process) Kill() {
	_ = p.cmd.Process.Kill() // the only error is that it has ended
	<-p.ended
}

// Freeze stops the process, as a machine that hangs does. Connections stay open.
func (p *Process) Freeze() error { return p.cmd.Process.Signal(syscall.SIGSTOP) }

// Thaw lets the process go on after Freeze.
func (p *Process) Thaw() error { return p.cmd.Process.Signal(syscall.SIGCONT) }

// Terminate asks the process to end with SIGTERM, as a kubelet does, and waits for the end. Terminate returns an error
// if the exit code is not 0, or if the process still runs when ctx ends.
func (p *Process) Terminate(ctx context.Context) error {
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return fmt.Errorf("asking process %d to end: %w", p.PID(), err)
	}
	select {
	case <-p.ended:
		return p.err
	case <-ctx.Done():
		return fmt.Errorf("process %d does not end: %w", p.PID(), context.Cause(ctx))
	}
}

// Log returns what the process has printed so far.
func (p *Process) Log() (string, error) {
	log, err := os.ReadFile(p.log)
	return string(log), err
}

// LogTail returns at most the last n bytes of the process's output. If the output can't be read, it returns why.
func (p *Process) LogTail(n int) string { return tail(p.log, n) }

// WaitLog waits until the process has printed a text. WaitLog returns an error if the process ends first.
func (p *Process) WaitLog(ctx context.Context, text string) error {
	const enough = 2000 // bytes of the log, for the message
	var tooEarly error
	err := Await(ctx, fmt.Sprintf("process %d to print %q", p.PID(), text), func(context.Context) (bool, string, error) {
		ended := p.Ended() // before its last words are read
		log, err := p.Log()
		if err != nil || strings.Contains(log, text) {
			return err == nil, "", err
		}
		if ended {
			tooEarly = fmt.Errorf("process %d has ended without printing %q: %w; its log ends with\n%s",
				p.PID(), text, p.exit(), p.LogTail(enough))
		}
		return ended, p.LogTail(enough), nil
	})
	return errors.Join(err, tooEarly)
}

// exit is how the process ended.
func (p *Process) exit() error {
	if p.err == nil {
		return errors.New("exit status 0")
	}
	return p.err
}

// tail returns at most the last n bytes of a file. If the file can't be read, it returns why.
func tail(path string, n int) string {
	content, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	if len(content) > n {
		return "…" + string(content[len(content)-n:])
	}
	return string(content)
}
