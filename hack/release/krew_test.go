// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// TestAnInstallerOfPluginsFindsTheProgram does what krew does: it reads the manifest, takes the archive of this
// machine from below the address, compares its sum, unpacks it and runs the program.
func TestAnInstallerOfPluginsFindsTheProgram(t *testing.T) {
	const address = "https://example.com/v1.2.3"
	r := of(t)
	if _, err := r.krew(tool, address+"/"); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(r.Out, "tool.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var manifest krewManifest
	if err := yaml.UnmarshalStrict(text, &manifest); err != nil {
		t.Fatal(err)
	}
	ran := false
	for _, platform := range manifest.Spec.Platforms {
		archive, err := os.ReadFile(filepath.Join(r.Out, strings.TrimPrefix(platform.URI, address+"/")))
		if err != nil {
			t.Fatal(err)
		}
		if sum := sha256.Sum256(archive); hex.EncodeToString(sum[:]) != platform.SHA256 {
			t.Errorf("%s has another sum than the manifest says", platform.URI)
		}
		folder := t.TempDir()
		unpack(t, archive, folder)
		for _, licence := range []string{"licenses/std/LICENSE", "licenses/example.com/tool/LICENSE"} {
			if _, err := os.Stat(filepath.Join(folder, licence)); err != nil {
				t.Error(err)
			}
		}
		if platform.Selector.MatchLabels["os"] != runtime.GOOS || platform.Selector.MatchLabels["arch"] != runtime.GOARCH {
			continue
		}
		ran = true
		if out, err := exec.Command(filepath.Join(folder, platform.Bin)).CombinedOutput(); err != nil || !strings.HasPrefix(string(out), "1.") {
			t.Errorf("the program says %q, %v", out, err)
		}
	}
	if len(manifest.Spec.Platforms) != 4 || !ran {
		t.Errorf("%d platforms; one is this machine: %t", len(manifest.Spec.Platforms), ran)
	}
	if manifest.Kind != "Plugin" || manifest.Metadata.Name != "tool" || manifest.Spec.Version != "v1.2.3" {
		t.Errorf("the manifest is of %s %s %s", manifest.Kind, manifest.Metadata.Name, manifest.Spec.Version)
	}
}

func unpack(t *testing.T, archive []byte, folder string) {
	t.Helper()
	packed, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		t.Fatal(err)
	}
	for files := tar.NewReader(packed); ; {
		header, err := files.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(files)
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(folder, header.Name)
		if err := writeFile(file, content); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(file, header.FileInfo().Mode()); err != nil {
			t.Fatal(err)
		}
	}
}

func TestWhatKrewWouldNotTakeIsRefusedBeforeAnythingIsRemoved(t *testing.T) {
	out := t.TempDir()
	kept := filepath.Join(out, "lockstep.yaml")
	if err := os.WriteFile(kept, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for want, args := range map[string][]string{
		"-krew has to be the https:// address": {"-version", "v1.2.3", "-krew", "http://example.com"},
		"-version has to be such as v1.2.3":    {"-version", "4614948-dirty", "-krew", "https://example.com"},
	} {
		if err := run(append(args, "-source", "../..", "-out", out), io.Discard); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", args, err)
		}
		if _, err := os.Stat(kept); err != nil {
			t.Errorf("%q: %v", args, err)
		}
	}
}
