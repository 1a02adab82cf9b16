// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package localenv

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"
)

// State is the content of state.json, the file in the cluster's folder in which lockstep-local describes the cluster.
type State struct {
	// Phase is Starting, Ready or Stopping.
	Phase string
	// Programs are the processes of the cluster, in order of start.
	Programs []Program
}

// Program is a process of a cluster, which is started again after an end.
type Program struct {
	// Name is the name of the component, such as controller, scheduler or kube-apiserver.
	Name string
	// PID is the process ID of the program's last process. That process exists only while the program runs.
	PID int
	// State is Starting, Running, Restarting, Failed or Stopped.
	State string
	// Restarts is how often the program was started again.
	Restarts int
	// Address is where the program serves, host:port; empty if the program serves nothing.
	Address string
}

// stateRunning is the state of a program with a process.
const stateRunning = "Running"

// ReadState reads the state of the cluster in a folder.
func ReadState(dir string) (*State, error) {
	content, err := os.ReadFile(filepath.Join(dir, "state.json"))
	if err != nil {
		return nil, fmt.Errorf("reading the state of the cluster: %w", err)
	}
	var file struct {
		Phase     string
		Addresses map[string]string
		Programs  []Program
	}
	if err := json.Unmarshal(content, &file); err != nil {
		return nil, fmt.Errorf("reading the state of the cluster in %s: %w", dir, err)
	}
	for i := range file.Programs {
		file.Programs[i].Address = file.Addresses[file.Programs[i].Name]
	}
	return &State{Phase: file.Phase, Programs: file.Programs}, nil
}

// Program returns a running program of the cluster by the name of its component. Program returns an error if the
// program does not run at the moment.
func (c *Cluster) Program(name string) (Program, error) {
	state, err := ReadState(c.Dir)
	if err != nil {
		return Program{}, err
	}
	if err := c.checkAlive(); err != nil {
		return Program{}, err
	}
	i := slices.IndexFunc(state.Programs, func(p Program) bool { return p.Name == name })
	if i < 0 {
		return Program{}, fmt.Errorf("the cluster has no program %q, but %s", name, names(state.Programs))
	}
	program := state.Programs[i]
	if program.State != stateRunning {
		return Program{}, fmt.Errorf("%s does not run, it is %s", name, program.State)
	}
	return program, nil
}

func names(programs []Program) []string {
	var names []string
	for _, p := range programs {
		names = append(names, p.Name)
	}
	return names
}

// checkAlive returns an error if the cluster was killed: its processes are gone, and other processes may have their
// process IDs.
func (c *Cluster) checkAlive() error {
	runs, err := runsIn(c.Dir)
	if err == nil && !runs {
		err = fmt.Errorf("the cluster in %s was killed", c.Dir)
	}
	return err
}

// runsIn reports whether a cluster runs in a folder, or is being started or stopped there. The process of such a
// cluster holds a lock on the folder.
func runsIn(dir string) (bool, error) {
	lock, err := os.Open(filepath.Join(dir, "lock"))
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("looking for the cluster: %w", err)
	}
	defer lock.Close() // and unlock
	err = syscall.Flock(int(lock.Fd()), syscall.LOCK_SH|syscall.LOCK_NB)
	if err != nil && !errors.Is(err, syscall.EWOULDBLOCK) {
		return false, fmt.Errorf("looking for the cluster: %w", err)
	}
	return err != nil, nil
}

// refuseBesideAnother returns an error if another cluster runs in a folder.
func refuseBesideAnother(dir string) error {
	runs, err := runsIn(dir)
	if runs {
		err = fmt.Errorf("a cluster runs in %[1]s, or is just being started or stopped there; to stop it: lockstep-local down --dir %[1]s", dir)
	}
	return err
}

// Kill ends a program of the cluster with SIGKILL, as a crash would, and returns when lockstep-local has noticed.
// lockstep-local restarts the program a second later.
func (c *Cluster) Kill(ctx context.Context, name string) error {
	const atOnce = 10 * time.Second // the supervisor waits for its children
	program, err := c.Program(name)
	if err != nil {
		return err
	}
	if err := syscall.Kill(program.PID, syscall.SIGKILL); err != nil {
		return fmt.Errorf("killing %s: %w", name, err)
	}
	ctx, cancel := context.WithTimeout(ctx, atOnce)
	defer cancel()
	return Await(ctx, "the end of "+name+" to be noticed", func(context.Context) (bool, string, error) {
		state, err := ReadState(c.Dir)
		if err != nil {
			return false, "", err
		}
		stillRunning := slices.ContainsFunc(state.Programs, func(p Program) bool {
			return p.PID == program.PID && p.State == stateRunning
		})
		return !stillRunning, "it is said to run", nil
	})
}

// Bin returns the folder of links to the programs of the cluster, such as kubectl.
func (c *Cluster) Bin() string { return filepath.Join(c.Dir, "bin") }

// Logs returns the folder of the logs of the cluster's programs.
func (c *Cluster) Logs() string { return filepath.Join(c.Dir, "logs") }

// AuditLog returns the path of the API server's audit log, which records each change and the client that made it: one
// object of audit.k8s.io/v1 per line. The file exists only with Options.Audit.
func (c *Cluster) AuditLog() string { return filepath.Join(c.Logs(), "audit.log") }

// LogTail returns at most the last n bytes of the log of a program of the cluster. If the log can't be read, it returns
// why.
func (c *Cluster) LogTail(name string, n int) string {
	return tail(filepath.Join(c.Logs(), name+".log"), n)
}
