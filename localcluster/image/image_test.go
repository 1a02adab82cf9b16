// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package image

import (
	"archive/tar"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

func TestWrite(t *testing.T) {
	dir := t.TempDir()
	binary := filepath.Join(dir, "program")
	if err := os.WriteFile(binary, []byte("#!"), 0o755); err != nil {
		t.Fatal(err)
	}
	packed := Image{
		Reference:  "example.com/program:v1",
		Binaries:   []File{{Path: "/bin/program", Source: binary}},
		Links:      []File{{Path: "/bin/sh", Source: "/bin/program"}},
		Entrypoint: []string{"/bin/program"},
	}
	first, second := filepath.Join(dir, "first.tar"), filepath.Join(dir, "second.tar")
	for _, target := range []string{first, second} {
		if err := packed.Write(target); err != nil {
			t.Fatal(err)
		}
	}

	image, err := tarball.ImageFromPath(first, nil)
	if err != nil {
		t.Fatal(err)
	}
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"/bin/program"}, config.Config.Entrypoint); diff != "" {
		t.Errorf("entrypoint (-want,+got):\n%s", diff)
	}
	if config.OS != "linux" || config.Architecture != runtime.GOARCH {
		t.Errorf("platform %s/%s, want linux/%s", config.OS, config.Architecture, runtime.GOARCH)
	}
	layers, err := image.Layers()
	if err != nil {
		t.Fatal(err)
	}
	content, err := layers[0].Uncompressed()
	if err != nil {
		t.Fatal(err)
	}
	defer content.Close()
	var names []string
	for r := tar.NewReader(content); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, header.Name+header.Linkname)
	}
	if diff := cmp.Diff([]string{"tmp/", "bin/program", "bin/sh/bin/program"}, names); diff != "" {
		t.Errorf("files of the layer (-want,+got):\n%s", diff)
	}

	again, err := tarball.ImageFromPath(second, nil)
	if err != nil {
		t.Fatal(err)
	}
	want, _ := image.Digest()
	if got, err := again.Digest(); err != nil || got != want {
		t.Errorf("packing the same again made %v (%v), want %v", got, err, want)
	}
}

func TestWriteNamesWhatIsWrong(t *testing.T) {
	images := map[string]Image{
		"a reference that is none": {Reference: "Not A Reference"},
		"a binary that is missing": {Reference: "example.com/x:v1", Binaries: []File{{Path: "/x", Source: "/does/not/exist"}}},
	}
	if runtime.GOOS == "linux" {
		images["a program that needs a dynamic linker"] = Image{Reference: "example.com/x:v1", Binaries: []File{{Path: "/x", Source: "/bin/sh"}}}
		other := map[string]string{"amd64": "arm64", "arm64": "amd64"}[runtime.GOARCH]
		images["a program of another architecture"] = Image{Reference: "example.com/x:v1", Architecture: other, Binaries: []File{{Path: "/x", Source: os.Args[0]}}}
	}
	for name, image := range images {
		if err := image.Write(filepath.Join(t.TempDir(), "x.tar")); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
