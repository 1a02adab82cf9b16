// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Command manifests prints the objects of a kustomization as YAML, as `kubectl kustomize` does. With -chart it writes the
// archive of a chart, as `helm package` does, with the same bytes each time.
// It is a module of its own, so that Lockstep does not depend on Kustomize.
package main

import (
	"flag"
	"fmt"
	"os"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

func main() {
	isChart := flag.Bool("chart", false, "write the archive of the chart in the folder")
	flag.Parse()
	if flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "usage: manifests [-chart] FOLDER")
		os.Exit(2)
	}
	make := render
	if *isChart {
		make = packChart
	}
	rendered, err := make(flag.Arg(0))
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
