// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package mutation shows that tests bite: code that is made wrong on purpose has to
// make them fail.
package mutation

import (
	"cmp"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Mutation is a change of one source file that makes it wrong.
type Mutation struct {
	// File is relative to the folder of the test.
	File string
	// By is the folder of the tests that have to notice, relative to that of the test.
	// Empty means that of the file.
	By string
	// Old is replaced by New. It occurs once in the file.
	Old, New string
	// Tests is a pattern for the tests that have to notice. Empty means the Default.
	Tests string
}

// Suite is how the mutations of a package are noticed.
type Suite struct {
	// Default is a pattern for the tests that notice a mutation that names none.
	Default string
	// Arguments are those of the tests in the folder of the test.
	Arguments []string
}

// Run runs mutations, by what they make wrong, beside each other. Each is compiled in
// the place of the file that it changes, which costs the seconds to compile a package
// and link one binary. The binary stops at the first failure.
func (s Suite) Run(t *testing.T, mutations map[string]Mutation) {
	for name, m := range mutations {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s.check(t, m)
		})
	}
}

// Fit fails for each mutation that would change nothing, because the code is another by now. It
// is quick.
func Fit(t *testing.T, mutations map[string]Mutation) {
	for name, m := range mutations {
		t.Run(name, func(t *testing.T) { m.source(t) })
	}
}

func (s Suite) check(t *testing.T, m Mutation) {
	dir, by := t.TempDir(), cmp.Or(m.By, filepath.Dir(m.File))
	binary := filepath.Join(dir, "mutated.test")
	build := exec.CommandContext(t.Context(), "go", "test", "-c", "-vet=off", "-ldflags=-s -w",
		"-overlay", m.overlay(t, dir), "-o", binary, "./"+by)
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("the mutation does not compile: %v\n%s", err, output)
	}
	tests, arguments := cmp.Or(m.Tests, s.Default), s.Arguments
	if by != "." {
		tests, arguments = cmp.Or(m.Tests, "."), nil
	}
	run := exec.CommandContext(t.Context(), binary, append([]string{"-test.failfast", "-test.run", tests}, arguments...)...)
	run.Dir = by
	output, err := run.CombinedOutput()
	if err == nil {
		t.Fatalf("%s has not noticed", tests)
	}
	t.Logf("noticed: %.400s", output)
}

// overlay writes the mutated file, and says for the compiler what it replaces.
func (m Mutation) overlay(t *testing.T, dir string) string {
	t.Helper()
	source := m.source(t)
	original, err := filepath.Abs(m.File)
	if err != nil {
		t.Fatal(err)
	}
	mutated := filepath.Join(dir, filepath.Base(m.File))
	if err := os.WriteFile(mutated, []byte(strings.Replace(source, m.Old, m.New, 1)), 0o644); err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(map[string]map[string]string{"Replace": {original: mutated}})
	if err != nil {
		t.Fatal(err)
	}
	overlay := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(overlay, data, 0o644); err != nil {
		t.Fatal(err)
	}
	return overlay
}

// source is what is in the file that the mutation changes.
func (m Mutation) source(t *testing.T) string {
	t.Helper()
	source, err := os.ReadFile(m.File)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(source), m.Old); n != 1 {
		t.Fatalf("%s has %d times, want once:\n%s", m.File, n, m.Old)
	}
	return string(source)
}
