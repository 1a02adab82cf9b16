// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"io/fs"
	"log"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	spdxjson "github.com/spdx/tools-golang/json"
	spdx "github.com/spdx/tools-golang/spdx/v2/v2_3"
)

var tool = program{Image: "tool", Binary: "the-tool", Package: ".", Description: "A tool."}

// of is a release of the small tool, from the commit of an hour in 2026.
func of(t *testing.T) release {
	return release{
		Source: "testdata/tool", Out: t.TempDir(), Version: "v1.2.3", Revision: "abcdef", Created: time.Date(2026, 11, 24, 1, 2, 3, 0, time.UTC),
		System: "linux", Architectures: []string{"amd64", "arm64"},
	}
}

// TestAPulledImageHasWhatIsPromised makes images, pushes them to a registry, and looks at what is
// pulled from it: a user sees no more.
func TestAPulledImageHasWhatIsPromised(t *testing.T) {
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	r := of(t)
	if _, err := r.make(tool); err != nil {
		t.Fatal(err)
	}
	repository := strings.TrimPrefix(server.URL, "http://") + "/team/lockstep"
	pushed, err := r.push(t.Context(), tool, repository)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(pushed, repository+"/tool:v1.2.3@sha256:") {
		t.Errorf("the name to put into a manifest is %s", pushed)
	}
	for _, architecture := range r.Architectures {
		t.Run(architecture, func(t *testing.T) {
			tag, err := name.NewTag(repository + "/tool:v1.2.3")
			if err != nil {
				t.Fatal(err)
			}
			image, err := remote.Image(tag, remote.WithPlatform(v1.Platform{OS: "linux", Architecture: architecture}))
			if err != nil {
				t.Fatal(err)
			}
			holds(t, image, architecture)
		})
	}
}

// holds looks into an image.
func holds(t *testing.T, image v1.Image, architecture string) {
	t.Helper()
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if config.Architecture != architecture || config.OS != "linux" {
		t.Errorf("the image is for %s/%s", config.OS, config.Architecture)
	}
	if config.Config.User != "65532:65532" {
		t.Errorf("user %q runs the program", config.Config.User)
	}
	want := map[string]string{
		"org.opencontainers.image.title":       "the-tool",
		"org.opencontainers.image.description": "A tool.",
		"org.opencontainers.image.source":      "https://github.com/lockstep-k8s/lockstep",
		"org.opencontainers.image.licenses":    "Apache-2.0",
		"org.opencontainers.image.version":     "v1.2.3",
		"org.opencontainers.image.revision":    "abcdef",
		"org.opencontainers.image.created":     "2026-11-24T01:02:03Z",
	}
	if diff := cmp.Diff(want, config.Config.Labels); diff != "" {
		t.Errorf("labels (-want,+got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"/bin/the-tool"}, config.Config.Entrypoint); diff != "" {
		t.Errorf("entrypoint (-want,+got):\n%s", diff)
	}
	layers, err := image.Layers()
	if err != nil || len(layers) != 1 {
		t.Fatalf("%d layers, %v", len(layers), err)
	}
	content, err := layers[0].Uncompressed()
	if err != nil {
		t.Fatal(err)
	}
	defer content.Close()
	var runnable, texts []string
	for files := tar.NewReader(content); ; {
		header, err := files.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		switch {
		case header.Typeflag == tar.TypeDir:
		case header.Mode&0o111 != 0 || header.Typeflag != tar.TypeReg:
			runnable = append(runnable, header.Name)
		default:
			texts = append(texts, header.Name)
		}
	}
	if diff := cmp.Diff([]string{"bin/the-tool"}, runnable); diff != "" {
		t.Errorf("the program is all that can run, there is no shell (-want,+got):\n%s", diff)
	}
	for _, licence := range []string{
		"licenses/std/LICENSE", "licenses/github.com/opencontainers/image-spec/LICENSE", "licenses/example.com/tool/LICENSE",
	} {
		if !slices.Contains(texts, licence) {
			t.Errorf("%s is missing among %q", licence, texts)
		}
	}
}

// TestTheSameSourceMakesTheSameBytes in all files that are written, when it is built again into
// another folder.
func TestTheSameSourceMakesTheSameBytes(t *testing.T) {
	written := func() map[string][]byte {
		r := of(t)
		if _, err := r.make(tool); err != nil {
			t.Fatal(err)
		}
		files := map[string][]byte{}
		if err := filepath.WalkDir(r.Out, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			relative, _ := filepath.Rel(r.Out, path)
			files[relative], err = os.ReadFile(path)
			return err
		}); err != nil {
			t.Fatal(err)
		}
		return files
	}
	first, second := written(), written()
	for file, content := range first {
		if !bytes.Equal(content, second[file]) {
			t.Errorf("%s differs", file)
		}
	}
	// Two programs, two lists, a layout, and in it an index of two images with a layer each.
	if len(first) != len(second) || len(first) != 2+2+2+1+2*3 {
		t.Errorf("%d files were written, then %d", len(first), len(second))
	}
}

// TestTheListOfPartsNamesEachModule reads it with the library of SPDX.
func TestTheListOfPartsNamesEachModule(t *testing.T) {
	r := of(t)
	r.Architectures = []string{"amd64"}
	if _, err := r.make(tool); err != nil {
		t.Fatal(err)
	}
	file, err := os.Open(filepath.Join(r.Out, "sbom", "tool-linux-amd64.spdx.json"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var document spdx.Document
	if err := spdxjson.ReadInto(file, &document); err != nil {
		t.Fatal(err)
	}
	licences, locators := map[string]string{}, map[string]string{}
	for _, p := range document.Packages {
		licences[p.PackageName] = p.PackageLicenseDeclared
		for _, reference := range p.PackageExternalReferences {
			locators[p.PackageName] = reference.Locator
		}
	}
	if diff := cmp.Diff(map[string]string{
		"the-tool":                             "Apache-2.0",
		"example.com/tool":                     "Apache-2.0",
		"std":                                  "BSD-3-Clause",
		"github.com/opencontainers/image-spec": "Apache-2.0",
	}, licences); diff != "" {
		t.Errorf("licences by module (-want,+got):\n%s", diff)
	}
	if locator := locators["github.com/opencontainers/image-spec"]; !strings.HasPrefix(locator, "pkg:golang/github.com/opencontainers/image-spec@v1.") {
		t.Errorf("a scanner would look for %q", locator)
	}
	if document.SPDXVersion != "SPDX-2.3" || len(document.Relationships) != 4 {
		t.Errorf("version %s, %d relationships", document.SPDXVersion, len(document.Relationships))
	}
}

// TestTheLicenceOfEachPartOfTheProgramsIsKnown to the table, and nothing is passed on without a
// licence. No program is built for it.
func TestTheLicenceOfEachPartOfTheProgramsIsKnown(t *testing.T) {
	r := of(t)
	r.Source = "../.."
	for _, p := range append(programs, plugin) {
		modules, err := r.modules(p, "amd64")
		if err != nil {
			t.Fatal(err)
		}
		if len(modules) < 20 {
			t.Errorf("%s has only %d modules", p.Binary, len(modules))
		}
		for _, m := range modules {
			if m.declared() == unknown {
				t.Errorf("%s: which licence does %s have? Its texts: %q", p.Binary, m.path, m.texts)
			}
		}
	}
}

// TestAPushSaysWhatIsWrong with the name of a registry.
func TestAPushSaysWhatIsWrong(t *testing.T) {
	for _, registry := range []string{"Not A Registry", "registry.example.com/UPPER"} {
		if _, err := of(t).push(t.Context(), tool, registry); err == nil {
			t.Errorf("%s was taken", registry)
		}
	}
}
