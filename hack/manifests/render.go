// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Command manifests prints the objects of a kustomization as YAML, as `kubectl kustomize` does.
// It is a module of its own, so that Lockstep does not depend on Kustomize.
package main

import (
	"fmt"
	"os"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: manifests FOLDER")
		os.Exit(2)
	}
	rendered, err := render(os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Stdout.Write(rendered)
}

// render makes the objects of the kustomization in a folder, as documents of YAML.
func render(folder string) ([]byte, error) {
	objects, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), folder)
	if err != nil {
		return nil, fmt.Errorf("rendering %s: %w", folder, err)
	}
	return objects.AsYaml()
}
