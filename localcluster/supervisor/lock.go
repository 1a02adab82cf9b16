// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/lockstep-k8s/lockstep/internal/statedir"
	"github.com/lockstep-k8s/lockstep/localcluster/cluster"
)

// errLocked says that another process holds the lock.
var errLocked = errors.New("locked")

// lock takes the lock of a cluster, which is held as long as the returned file, or a copy of
// it that a child has inherited, is open.
func lock(layout cluster.Layout) (*os.File, error) {
	if err := statedir.Make(layout.Dir); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(layout.Lock(), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening the lock of the cluster: %w", err)
	}
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if err == nil {
		return f, nil
	}
	f.Close()
	if errors.Is(err, unix.EWOULDBLOCK) {
		return nil, errLocked
	}
	return nil, fmt.Errorf("locking %s: %w", layout.Lock(), err)
}

// Running tells whether a cluster runs in the directory, or is being started or stopped.
func Running(layout cluster.Layout) (bool, error) {
	if _, err := os.Stat(layout.Lock()); errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	f, err := lock(layout)
	if errors.Is(err, errLocked) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	return false, f.Close()
}
