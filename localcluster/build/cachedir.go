// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package build

import (
	"errors"
	"os"
	"path/filepath"
)

// DefaultCacheDir is the cache of the user who runs the program: $LOCKSTEP_CACHE_DIR, or
// lockstep-local in the user's cache directory ($XDG_CACHE_HOME or ~/.cache).
func DefaultCacheDir() (string, error) {
	if dir := os.Getenv("LOCKSTEP_CACHE_DIR"); dir != "" {
		return filepath.Abs(dir)
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", errors.New("cannot tell where to keep built components: set --cache-dir, LOCKSTEP_CACHE_DIR or HOME")
	}
	return filepath.Join(dir, "lockstep-local"), nil
}
