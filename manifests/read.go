// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package manifests

import (
	"fmt"
	"io/fs"
)

// File is a file of FS.
type File struct {
	Name    string
	Content []byte
}

// Read reads the files of FS whose names match a pattern, in the order of their names.
func Read(pattern string) ([]File, error) {
	names, err := fs.Glob(FS, pattern)
	if err != nil {
		return nil, fmt.Errorf("listing the manifests %s: %w", pattern, err)
	}
	files := make([]File, len(names))
	for i, name := range names {
		content, err := FS.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("reading the manifests %s: %w", pattern, err)
		}
		files[i] = File{name, content}
	}
	return files, nil
}
