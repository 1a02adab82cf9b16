// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"sigs.k8s.io/yaml"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
)

// kept is a Framework that may soon be nowhere else, in a file that outlives this program.
type kept struct {
	name, path string
	manifest   []byte
}

// keep writes a Framework to a file that only its user may read. When keep returns, the file outlives the machine, too.
func keep(fw *frameworkv1.Framework) (*kept, error) {
	manifest, err := yaml.Marshal(fw)
	if err != nil {
		return nil, err
	}
	folder := os.TempDir() // Such as in a container without a home.
	if cache, err := os.UserCacheDir(); err == nil {
		if own := filepath.Join(cache, "kubectl-lockstep"); os.MkdirAll(own, 0o700) == nil {
			folder = own
		}
	}
	file, err := os.CreateTemp(folder, fw.Namespace+"-"+fw.Name+"-*.yaml")
	if err != nil {
		return nil, err
	}
	_, err = file.Write(manifest)
	if err = errors.Join(err, file.Sync(), file.Close(), syncFolder(folder)); err != nil {
		return nil, errors.Join(err, os.Remove(file.Name()))
	}
	return &kept{name: fw.Name, path: file.Name(), manifest: manifest}, nil
}

// syncFolder makes the names in a folder outlive the machine.
func syncFolder(path string) error {
	folder, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}

// tell says what has become of the Framework, and how it is made anew.
func (k *kept) tell(s *session, what string) {
	fmt.Fprintf(s.errOut, "# %s %s. `kubectl create -f %s` makes it anew. This is its manifest:\n%s", k.name, what, k.path, k.manifest)
}

// drop removes the file: the API server has the Framework.
func (k *kept) drop(s *session) {
	if err := os.Remove(k.path); err != nil {
		s.note("%v", err)
	}
}
