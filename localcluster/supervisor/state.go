// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/lockstep-k8s/lockstep/internal/statedir"
	"github.com/lockstep-k8s/lockstep/localcluster/cluster"
	"github.com/lockstep-k8s/lockstep/localcluster/process"
)

// Phase of a cluster.
type Phase string

const (
	// Starting: `up` is waiting for it. Exits: Ready, or its state is removed.
	Starting Phase = "Starting"
	// Ready: it may be used. Exit: Stopping.
	Ready Phase = "Ready"
	// Stopping: `down` is waiting for it to be gone.
	Stopping Phase = "Stopping"
)

// State is what the supervisor writes to Layout.State, for `status`, `logs` and `down`, and for
// internal/localenv, which reads phase, addresses and programs.
type State struct {
	// PID is the supervisor. It means something only while the lock of the cluster is held.
	PID     int               `json:"pid"`
	Phase   Phase             `json:"phase"`
	Started time.Time         `json:"started"`
	Options cluster.Options   `json:"options"`
	Ports   cluster.Ports     `json:"ports"`
	Network cluster.Network   `json:"network"`
	Server  string            `json:"server"`
	Address map[string]string `json:"addresses"`
	// Programs are the processes, in order of start.
	Programs []process.Status `json:"programs"`
}

// errNoCluster says that a directory holds no cluster.
var errNoCluster = errors.New("no cluster")

// ReadState reads the state of the cluster in a directory.
func ReadState(layout cluster.Layout) (*State, error) {
	content, err := os.ReadFile(layout.State())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w in %s: start one with `lockstep-local up --dir %s`", errNoCluster, layout.Dir, layout.Dir)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the state of the cluster: %w", err)
	}
	// Programs and the kubeconfig beside it are used next.
	if err := statedir.Check(layout.Dir); err != nil {
		return nil, err
	}
	state := &State{}
	if err := json.Unmarshal(content, state); err != nil {
		return nil, fmt.Errorf("reading %s: %w", layout.State(), err)
	}
	return state, nil
}

// writeState replaces the state file, so that a reader sees the old or the new one whole.
func writeState(layout cluster.Layout, state *State) error {
	content, err := json.MarshalIndent(state, "", "  ")
	if err != nil {
		return fmt.Errorf("encoding the state: %w", err)
	}
	return writeFile(layout.State(), append(content, '\n'))
}

// writeFile writes a file that only its owner may read, making its directory.
func writeFile(path string, content []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("making a directory: %w", err)
	}
	temporary := path + ".new"
	if err := os.WriteFile(temporary, content, 0o600); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	if err := os.Rename(temporary, path); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return nil
}
