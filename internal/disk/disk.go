// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package disk has files outlive a crash of the machine.
package disk

import (
	"errors"
	"os"
)

// Sync waits until the content of a file, or the list of the files in a folder, is on disk.
func Sync(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(file.Sync(), file.Close())
}
