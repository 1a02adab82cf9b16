// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/zip"
	"bytes"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestTheWheelHasThePackageAndTheSameBytesEachTime: pip finds the modules, the version and what they need.
func TestTheWheelHasThePackageAndTheSameBytesEachTime(t *testing.T) {
	made := make([][]byte, 2)
	for i := range made {
		r := of(t)
		r.Source, r.Version = "../..", "v0.1.0-rc.1"
		file, err := r.wheel()
		if err != nil {
			t.Fatal(err)
		}
		if want := "lockstep-0.1.0rc1-py3-none-any.whl"; filepath.Base(file) != want {
			t.Errorf("it is called %s, want %s", file, want)
		}
		if made[i], err = os.ReadFile(file); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(made[0], made[1]) {
		t.Error("the second one has other bytes than the first one")
	}
	archive, err := zip.NewReader(bytes.NewReader(made[0]), int64(len(made[0])))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, file := range archive.File {
		names = append(names, file.Name)
	}
	for _, want := range []string{"lockstep/__init__.py", "lockstep/py.typed", "lockstep-0.1.0rc1.dist-info/RECORD"} {
		if !slices.Contains(names, want) {
			t.Errorf("it lacks %s: %v", want, names)
		}
	}
	metadata, err := archive.Open("lockstep-0.1.0rc1.dist-info/METADATA")
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(metadata)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"Version: 0.1.0rc1\n", "Requires-Python: >=3.9\n", "Requires-Dist: kubernetes>=22\n"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the metadata lack %q:\n%s", want, text)
		}
	}
}

func TestAVersionThatPythonHasNoFormForIsRefused(t *testing.T) {
	for _, version := range []string{"1.2.3", "v1.2", "v1.2.3-next.1"} {
		if got, err := pythonVersion(version); err == nil {
			t.Errorf("%s is %s", version, got)
		}
	}
}
