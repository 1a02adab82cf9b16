// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package statedir finds, creates and checks the folders that hold the state of local clusters. Programs are run from
// these folders, so no other user may have the right to write there.
package statedir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// Default returns where the cluster of a name is kept, unless --dir says otherwise.
func Default(name string) (string, error) {
	state := os.Getenv("XDG_STATE_HOME")
	if state == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", errors.New("there is no folder to keep the cluster in: set --dir, XDG_STATE_HOME or HOME")
		}
		state = filepath.Join(home, ".local", "state")
	}
	return filepath.Join(state, "lockstep-local", name), nil
}

// Make creates the folder of a cluster, unless it exists, and checks it.
func Make(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("making --dir: %w", err)
	}
	return Check(dir)
}

// Check returns an error if another user owns a folder, or may write to it. If dir is a link, that holds for the link
// and for the folder.
func Check(dir string) error {
	for _, look := range []func(string) (fs.FileInfo, error){os.Lstat, os.Stat} {
		info, err := look(dir)
		if err != nil {
			return fmt.Errorf("--dir: %w", err)
		}
		if err := judge(info, os.Geteuid(), os.Getegid()); err != nil {
			return fmt.Errorf("--dir %s %w: name another one, as programs are run from it", dir, err)
		}
	}
	return nil
}

// judge returns an error if a folder is not safe for a user. The group of the folder may write only if it is the user's
// own group, which many systems allow by default.
func judge(info fs.FileInfo, user, group int) error {
	owner := info.Sys().(*syscall.Stat_t)
	if int(owner.Uid) != user {
		return fmt.Errorf("belongs to user %d, not to %d", owner.Uid, user)
	}
	mode := info.Mode()
	if mode.IsDir() && (mode&0o002 != 0 || mode&0o020 != 0 && int(owner.Gid) != group) {
		return fmt.Errorf("may be written by others (%v)", mode)
	}
	return nil
}
