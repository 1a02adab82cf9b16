// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"sigs.k8s.io/yaml"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	"github.com/lockstep-k8s/lockstep/internal/disk"
)

// kept is a copy of a Framework in a file. The copy exists while the Framework is deleted and recreated, and is not
// lost if this program ends in between.
type kept struct {
	name, path string
	manifest   []byte
}

// keep writes a Framework and the address of its API server to a file that only the user may read. When keep returns,
// the file is on disk.
func keep(fw *frameworkv1.Framework, server string) (*kept, error) {
	manifest, err := yaml.Marshal(fw)
	if err != nil {
		return nil, err
	}
	manifest = append([]byte("# For the API server "+strconv.Quote(server)+".\n"), manifest...)
	var failures []error
	for _, folder := range keptFolders() {
		path, err := writeKept(folder, keptName(fw.Namespace, fw.Name), manifest)
		if err == nil {
			return &kept{name: fw.Name, path: path, manifest: manifest}, nil
		}
		failures = append(failures, err)
	}
	return nil, errors.Join(failures...)
}

// keptFolders returns where Frameworks are kept: in the first folder that can be written.
func keptFolders() []string {
	temporary := os.TempDir() // Such as in a container without a home.
	if cache, err := os.UserCacheDir(); err == nil {
		return []string{filepath.Join(cache, "kubectl-lockstep"), temporary}
	}
	return []string{temporary}
}

// keptName returns a pattern of the files of a Framework. Names have no underscore.
func keptName(namespace, name string) string { return "lockstep_" + namespace + "_" + name + "_*.yaml" }

// findKept returns the files of a Framework that earlier runs of this program deleted and did not recreate.
func findKept(namespace, name string) []string {
	var found []string
	for _, folder := range keptFolders() {
		files, err := filepath.Glob(filepath.Join(folder, keptName(namespace, name)))
		if err == nil {
			found = append(found, files...)
		}
	}
	return found
}

func writeKept(folder, pattern string, manifest []byte) (path string, err error) {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return "", err
	}
	file, err := os.CreateTemp(folder, pattern)
	if err != nil {
		return "", err
	}
	_, err = file.Write(manifest)
	if err = errors.Join(err, file.Sync(), file.Close(), disk.Sync(folder)); err != nil {
		return "", errors.Join(err, os.Remove(file.Name()))
	}
	return file.Name(), nil
}

// tell reports what has happened to the Framework, and how to recreate it.
func (k *kept) tell(s *session, what string) {
	fmt.Fprintf(s.errOut, "# %s %s. %s recreates it. This is its manifest:\n%s", k.name, what, s.creating(k.path), k.manifest)
}

// creating returns the kubectl command that creates the objects of a file in the cluster and namespace that this
// command uses.
func (s *session) creating(path string) string {
	command := "kubectl create -f " + strconv.Quote(path)
	for _, flag := range []struct {
		name  string
		value *string
	}{
		{"kubeconfig", s.flags.KubeConfig}, {"context", s.flags.Context}, {"cluster", s.flags.ClusterName},
		{"user", s.flags.AuthInfoName}, {"server", s.flags.APIServer}, {"as", s.flags.Impersonate},
	} {
		if flag.value != nil && *flag.value != "" {
			command += " --" + flag.name + "=" + strconv.Quote(*flag.value)
		}
	}
	return "`" + command + "`"
}

// drop removes the file: the API server has the Framework.
func (k *kept) drop(s *session) {
	if err := os.Remove(k.path); err != nil {
		s.note("%v", err)
	}
}
