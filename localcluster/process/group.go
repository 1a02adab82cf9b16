// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Spec is a program to run.
type Spec struct {
	Name string
	Path string
	Args []string
	// Dir is the working directory.
	Dir string
	// Env is added to the environment of the parent.
	Env []string
	// Log is the file that gets what the program writes, at its end.
	Log string
	// Isolated gives the program a PID and a mount namespace of its own, in which it is
	// process 1: when it dies, the kernel kills its descendants and drops its mounts.
	Isolated bool
}

// State of a program.
type State string

const (
	// Starting: the process exists and is not healthy yet. Exits: Running, Failed.
	Starting State = "Starting"
	// Running: it has been healthy once. Exits: Restarting, Stopped.
	Running State = "Running"
	// Restarting: it ended by itself and will be started again. Exits: Running, Stopped.
	Restarting State = "Restarting"
	// Failed: it ended, or was given up, before it was healthy. Final.
	Failed State = "Failed"
	// Stopped: it was ended by Stop. Final.
	Stopped State = "Stopped"
)

// Status is what a Group knows of one program.
type Status struct {
	Name     string    `json:"name"`
	PID      int       `json:"pid"`
	State    State     `json:"state"`
	Restarts int       `json:"restarts"`
	Since    time.Time `json:"since"`
}

const (
	// healthInterval is the time between two questions whether a program is healthy.
	healthInterval = 100 * time.Millisecond
	// minRestartDelay doubles with each restart that follows a short life, up to
	// maxRestartDelay; a life longer than that sets it back.
	minRestartDelay = time.Second
	maxRestartDelay = 30 * time.Second
	// tailLines is how much of a log an error quotes.
	tailLines = 4
)

// Group is a set of programs with one fate.
type Group struct {
	// Logf is told of programs that die and are started again.
	Logf func(format string, args ...any)
	// Changed is called after every change of a status, one call at a time.
	Changed func([]Status)

	spawner *spawner

	mu       sync.Mutex
	children []*child
	stopping bool
	// notify serializes calls of Changed.
	notify sync.Mutex
}

type child struct {
	spec   Spec
	cmd    *exec.Cmd
	status Status
	// exited is closed when the present process has ended; exit then says how.
	exited chan struct{}
	exit   error
}

// NewGroup returns an empty group. The two functions may be nil.
func NewGroup(logf func(string, ...any), changed func([]Status)) *Group {
	if logf == nil {
		logf = func(string, ...any) {}
	}
	if changed == nil {
		changed = func([]Status) {}
	}
	return &Group{Logf: logf, Changed: changed, spawner: newSpawner()}
}

// Start runs a program and returns when it is healthy. If it ends before, or the context does,
// the error quotes the end of its log. From then on the program is started again whenever it
// ends.
func (g *Group) Start(ctx context.Context, spec Spec, healthy func(context.Context) error) error {
	c := &child{spec: spec, status: Status{Name: spec.Name}}
	g.mu.Lock()
	g.children = append(g.children, c)
	g.mu.Unlock()

	if err := g.spawn(c); err != nil {
		g.set(c, Failed)
		return err
	}
	if err := waitHealthy(ctx, c, healthy); err != nil {
		g.set(c, Failed)
		return err
	}
	g.set(c, Running)
	go g.keepRunning(c)
	return nil
}

func waitHealthy(ctx context.Context, c *child, healthy func(context.Context) error) error {
	ticker := time.NewTicker(healthInterval)
	defer ticker.Stop()
	for {
		err := healthy(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-c.exited:
			return fmt.Errorf("%s ended while starting (%w)%s", c.spec.Name, c.exit, quoteTail(c.spec.Log))
		case <-ctx.Done():
			return fmt.Errorf("%s did not get healthy (%w; last answer: %w)%s", c.spec.Name, context.Cause(ctx), err, quoteTail(c.spec.Log))
		case <-ticker.C:
		}
	}
}

// spawn starts a process for c.
func (g *Group) spawn(c *child) error {
	log, err := os.OpenFile(c.spec.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("opening the log of %s: %w", c.spec.Name, err)
	}
	defer log.Close()
	cmd := exec.Command(c.spec.Path, c.spec.Args...)
	cmd.Dir = c.spec.Dir
	// The local cluster may be made in a Pod of another one, whose API server is not meant.
	cmd.Env = append(append(withoutProxies(os.Environ()), "KUBERNETES_SERVICE_HOST="), c.spec.Env...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	if c.spec.Isolated {
		cmd.SysProcAttr.Cloneflags = syscall.CLONE_NEWPID | syscall.CLONE_NEWNS
	}

	g.mu.Lock()
	if g.stopping {
		g.mu.Unlock()
		return errors.New("the cluster is being stopped")
	}
	if err := g.spawner.start(cmd); err != nil {
		g.mu.Unlock()
		return fmt.Errorf("starting %s: %w", c.spec.Name, err)
	}
	exited := make(chan struct{})
	c.cmd, c.exited = cmd, exited
	c.status.PID = cmd.Process.Pid
	c.status.State, c.status.Since = Starting, time.Now()
	g.mu.Unlock()
	g.changed()

	go func() {
		err := cmd.Wait()
		if err == nil {
			err = errors.New("exit status 0")
		}
		c.exit = err
		close(exited)
	}()
	return nil
}

// keepRunning starts the program again when it ends, until the group is stopped.
func (g *Group) keepRunning(c *child) {
	delay := minRestartDelay
	for {
		began := time.Now()
		<-c.exited
		if g.isStopping() {
			return
		}
		if time.Since(began) > maxRestartDelay {
			delay = minRestartDelay
		}
		g.Logf("%s ended (%v); starting it again in %s", c.spec.Name, c.exit, delay)
		g.set(c, Restarting)
		time.Sleep(delay)
		delay = min(2*delay, maxRestartDelay)
		if err := g.spawn(c); err != nil {
			if !g.isStopping() {
				g.Logf("%v", err)
				g.set(c, Failed)
			}
			return
		}
		g.mu.Lock()
		c.status.Restarts++
		g.mu.Unlock()
		g.set(c, Running)
	}
}

// Stop ends all programs: the latest first are asked to, and those that still run after the
// grace period are killed. It returns when none is left.
func (g *Group) Stop(grace time.Duration) {
	g.mu.Lock()
	g.stopping = true
	children := slices.Clone(g.children)
	g.mu.Unlock()

	slices.Reverse(children)
	deadline := time.After(grace)
	for _, c := range children {
		c.signal(syscall.SIGTERM)
	}
	expired := false
	for _, c := range children {
		if c.cmd == nil {
			continue
		}
		if !expired {
			select {
			case <-c.exited:
			case <-deadline:
				expired = true
			}
		}
		if expired {
			c.signal(syscall.SIGKILL)
			<-c.exited
		}
		g.set(c, Stopped)
	}
}

// signal sends a signal to the process group of c, if it runs.
func (c *child) signal(sig syscall.Signal) {
	if c.cmd == nil {
		return
	}
	select {
	case <-c.exited:
	default:
		// The child leads its own group (Setpgid).
		syscall.Kill(-c.cmd.Process.Pid, sig)
	}
}

// Statuses returns a copy of what is known of all programs, in order of start.
func (g *Group) Statuses() []Status {
	g.mu.Lock()
	defer g.mu.Unlock()
	var out []Status
	for _, c := range g.children {
		out = append(out, c.status)
	}
	return out
}

func (g *Group) isStopping() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.stopping
}

func (g *Group) set(c *child, state State) {
	g.mu.Lock()
	if c.status.State != state {
		c.status.State, c.status.Since = state, time.Now()
	}
	g.mu.Unlock()
	g.changed()
}

func (g *Group) changed() {
	g.notify.Lock()
	defer g.notify.Unlock()
	g.Changed(g.Statuses())
}

// quoteTail returns the last lines of a log, in a form to be put behind an error.
func quoteTail(path string) string {
	lines := Tail(path, tailLines)
	if len(lines) == 0 {
		return "; its log " + path + " is empty"
	}
	return "; the end of " + path + ":\n  " + strings.Join(lines, "\n  ")
}

// Tail returns up to n of the last lines of a file that are not empty.
func Tail(path string, n int) []string {
	const window = 16 << 10
	f, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.Size() > window {
		f.Seek(-window, io.SeekEnd)
	}
	content, err := io.ReadAll(f)
	if err != nil {
		return nil
	}
	lines := slices.DeleteFunc(strings.Split(string(content), "\n"), func(line string) bool {
		return strings.TrimSpace(line) == ""
	})
	return lines[max(0, len(lines)-n):]
}

// withoutProxies drops the variables that would send traffic within the machine to a proxy.
func withoutProxies(env []string) []string {
	return slices.DeleteFunc(env, func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return strings.HasSuffix(strings.ToUpper(name), "_PROXY")
	})
}
