// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Command apiref writes the reference of all fields and of events, docs/reference, from the
// comments and the markers of the types in apis, and from those of constants elsewhere. `make generate` runs it: apiref FOLDER.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// page is one of the reference.
type page struct {
	file, title, guide string
	// packages are folders in apis.
	packages []string
	// roots are types that have a place in the document without a marker that says so: users write them, or objects of
	// other documents have them.
	roots []string
}

var pages = []page{
	{file: "framework.md", title: "Framework", guide: "framework.md", packages: []string{"framework/v1"}},
	{file: "podgroup.md", title: "PodGroup", guide: "podgroup.md", packages: []string{"scheduling/v1alpha1"}, roots: []string{"RuntimeLimit"}},
	{file: "volcano.md", title: "Volcano Job and Command", guide: "volcano-job.md", packages: []string{"batch/v1alpha1", "bus/v1alpha1"}},
	{file: "kubeflow.md", title: "Kubeflow's training jobs", guide: "kubeflow.md", packages: []string{"kubeflow/v1", "kubeflow/v1alpha2", "kubeflow/v2beta1"}},
	{
		file: "configuration.md", title: "Configuration", guide: "operating.md", packages: []string{"config/v1alpha1"},
		roots: []string{"ControllerConfiguration", "CoschedulingArgs"},
	},
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: apiref FOLDER")
		os.Exit(2)
	}
	if err := run("apis", os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "apiref:", err)
		os.Exit(1)
	}
}

// run writes all pages from the types in a folder to another one.
func run(apis, to string) error {
	if err := os.MkdirAll(to, 0o755); err != nil {
		return err
	}
	for _, p := range pages {
		text, err := p.write(apis)
		if err != nil {
			return fmt.Errorf("writing %s: %w", p.file, err)
		}
		if err := os.WriteFile(filepath.Join(to, p.file), []byte(text), 0o644); err != nil {
			return err
		}
	}
	text, err := writeEvents(filepath.Dir(apis))
	if err != nil {
		return fmt.Errorf("writing events.md: %w", err)
	}
	return os.WriteFile(filepath.Join(to, "events.md"), []byte(text), 0o644)
}

// write is the text of a page.
func (p page) write(apis string) (string, error) {
	var out strings.Builder
	fmt.Fprintf(&out, "# Reference: %s\n\n`make generate` writes this page from `apis`. The guide is [%s](../%s).\n", p.title, p.guide, p.guide)
	for _, folder := range p.packages {
		types, err := read(filepath.Join(apis, folder))
		if err != nil {
			return "", err
		}
		section := section{types: types, out: &out}
		if len(p.packages) > 1 {
			section.suffix = " of " + types.group
		}
		fmt.Fprintf(&out, "\n## %s\n", types.group)
		section.write(p.roots)
	}
	return out.String(), nil
}
