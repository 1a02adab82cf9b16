// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// built is a program, and what is in it.
type built struct {
	// file is where it is.
	file, architecture string
	// modules are those that packages of the program are from, by path: the main one first, then
	// Go's own library, then the others.
	modules []module
}

// module is one that a program is made from.
type module struct {
	path, version string
	// texts are its licences and notices, by their path in the module. There is at least one.
	texts map[string][]byte
}

// standard is how Go's own library is named, as a module.
const standard = "std"

// build builds a program, without C, into Out/bin/SYSTEM-ARCHITECTURE.
func (r release) build(p program, architecture string) (*built, error) {
	file, err := filepath.Abs(filepath.Join(r.Out, "bin", r.System+"-"+architecture, p.Binary))
	if err != nil {
		return nil, err
	}
	if _, err := r.tool(architecture, "build", "-trimpath", "-ldflags", r.LDFlags, "-o", file, p.Package); err != nil {
		return nil, err
	}
	modules, err := r.modules(p, architecture)
	if err != nil {
		return nil, err
	}
	return &built{file: file, architecture: architecture, modules: modules}, nil
}

// tool runs a go command for an architecture.
func (r release) tool(architecture string, args ...string) ([]byte, error) {
	command := exec.Command("go", args...)
	command.Dir = r.Source
	command.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+r.System, "GOARCH="+architecture)
	command.Stderr = os.Stderr
	out, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("go %s for %s: %w", args[0], architecture, err)
	}
	return out, nil
}

// listed is a package, in what go list says.
type listed struct {
	Dir      string
	Standard bool
	Module   *struct {
		Path, Version, Dir string
		Main               bool
	}
}

// modules are those that packages of the program are from.
func (r release) modules(p program, architecture string) ([]module, error) {
	list, err := r.tool(architecture, "list", "-deps", "-json=Dir,Standard,Module", p.Package)
	if err != nil {
		return nil, err
	}
	environment, err := r.tool(architecture, "env", "GOROOT", "GOVERSION")
	if err != nil {
		return nil, err
	}
	root, version, _ := strings.Cut(strings.TrimSpace(string(environment)), "\n")

	library := module{path: standard, version: strings.TrimPrefix(version, "go"), texts: map[string][]byte{}}
	if err := library.read(root, root); err != nil {
		return nil, err
	}
	own := module{version: r.Version}
	others := map[string]module{}
	for packages := json.NewDecoder(bytes.NewReader(list)); ; {
		var l listed
		if err := packages.Decode(&l); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, fmt.Errorf("reading what go list says: %w", err)
		}
		if l.Standard {
			continue
		}
		m, known := others[l.Module.Path]
		if !known {
			m = module{path: l.Module.Path, version: l.Module.Version, texts: map[string][]byte{}}
			if l.Module.Main {
				m.version = r.Version
				own = m
			}
			others[m.path] = m
		}
		// Some packages are copies from elsewhere, and have a licence of their own.
		if err := m.read(l.Module.Dir, l.Dir); err != nil {
			return nil, err
		}
	}
	delete(others, own.path)
	modules := []module{own, library}
	for _, name := range slices.Sorted(maps.Keys(others)) {
		modules = append(modules, others[name])
	}
	for _, m := range modules {
		if len(m.texts) == 0 {
			return nil, fmt.Errorf("module %s has no licence: nobody may pass it on", m.path)
		}
	}
	return modules, nil
}

// legal finds the files that have to be passed on with a program.
var legal = regexp.MustCompile(`(?i)^(licen[cs]e|copying|copyright|notice|patents)([.-].*)?$`)

// read adds the texts in a folder of the module and in those above it.
func (m module) read(root, folder string) error {
	for {
		relative, err := filepath.Rel(root, folder)
		if err != nil {
			return err
		}
		entries, err := os.ReadDir(folder)
		if err != nil {
			return err
		}
		for _, entry := range entries {
			if !entry.Type().IsRegular() || !legal.MatchString(entry.Name()) || strings.HasSuffix(entry.Name(), ".go") {
				continue
			}
			content, err := os.ReadFile(filepath.Join(folder, entry.Name()))
			if err != nil {
				return err
			}
			m.texts[path.Join(filepath.ToSlash(relative), entry.Name())] = content
		}
		if folder == root || relative == "." || strings.HasPrefix(relative, "..") {
			return nil
		}
		folder = filepath.Dir(folder)
	}
}

// licences are the texts of all modules, by their path in an image.
func (b built) licences() map[string][]byte {
	all := map[string][]byte{}
	for _, m := range b.modules {
		for file, text := range m.texts {
			all[path.Join("/licenses", m.path, file)] = text
		}
	}
	return all
}
