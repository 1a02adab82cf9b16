// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package image packs static binaries into container images, without a base image
// and without a registry: for the local cluster into a tar, for a release as an image that
// can be pushed.
package image

import (
	"archive/tar"
	"bytes"
	"cmp"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// Image is what an image holds. Equal contents make equal images: all times in
// it are zero, but the one that is given.
type Image struct {
	// Reference names it, such as example.com/name:tag. Only Write needs it.
	Reference string
	// Architecture is that of the binaries, such as arm64. The default is this machine's.
	Architecture string
	// User runs the program, as USER:GROUP in numbers. The default is root.
	User string
	// Labels are those of the image.
	Labels map[string]string
	// Created is when the image was made, as far as it tells. The default is not to tell.
	Created time.Time
	// Binaries are programs for Linux by their absolute path in the image.
	Binaries []File
	// Texts are files that nobody runs: contents by their absolute path in the image.
	Texts map[string][]byte
	// Links are symbolic links by their absolute path in the image.
	Links []File
	// Entrypoint is what a container without a command runs.
	Entrypoint []string
}

// File is a path in the image and what it stands for: a file of this machine or
// the target of a link.
type File struct {
	Path, Source string
}

// Write packs the image into a tar that containerd imports and docker loads.
func (i Image) Write(target string) error {
	tag, err := name.NewTag(i.Reference)
	if err != nil {
		return fmt.Errorf("naming the image: %w", err)
	}
	image, err := i.build(types.DockerManifestSchema2, types.DockerConfigJSON, types.DockerLayer)
	if err != nil {
		return fmt.Errorf("packing image %s: %w", i.Reference, err)
	}
	if err := tarball.WriteToFile(target, tag, image); err != nil {
		return fmt.Errorf("writing image %s to %s: %w", i.Reference, target, err)
	}
	return nil
}

// Build makes the image in the form of the Open Container Initiative.
func (i Image) Build() (v1.Image, error) {
	return i.build(types.OCIManifestSchema1, types.OCIConfigJSON, types.OCILayer)
}

func (i Image) build(ofManifest, ofConfig, ofLayer types.MediaType) (v1.Image, error) {
	content, err := i.layer()
	if err != nil {
		return nil, err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(content)), nil
	}, tarball.WithMediaType(ofLayer))
	if err != nil {
		return nil, err
	}
	image, err := mutate.AppendLayers(mutate.ConfigMediaType(mutate.MediaType(empty.Image, ofManifest), ofConfig), layer)
	if err != nil {
		return nil, err
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	// Without a platform containerd takes the image for one of another machine.
	config.OS, config.Architecture = "linux", i.architecture()
	config.Created = v1.Time{Time: i.Created}
	config.Config = v1.Config{
		User:       i.User,
		Labels:     i.Labels,
		Entrypoint: i.Entrypoint,
		Env:        []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"},
	}
	return mutate.ConfigFile(image, config)
}

func (i Image) architecture() string {
	return cmp.Or(i.Architecture, runtime.GOARCH)
}

// layer is the only layer, as a tar.
func (i Image) layer() ([]byte, error) {
	var buffer bytes.Buffer
	w := tar.NewWriter(&buffer)
	// Programs expect a place for temporary files.
	if err := w.WriteHeader(&tar.Header{Name: "tmp/", Typeflag: tar.TypeDir, Mode: 0o1777, ModTime: time.Unix(0, 0)}); err != nil {
		return nil, err
	}
	for _, file := range i.Binaries {
		if err := runnable(file.Source, i.architecture()); err != nil {
			return nil, err
		}
		content, err := os.ReadFile(file.Source)
		if err != nil {
			return nil, err
		}
		if err := add(w, file.Path, 0o755, content); err != nil {
			return nil, err
		}
	}
	for _, path := range slices.Sorted(maps.Keys(i.Texts)) {
		if err := add(w, path, 0o644, i.Texts[path]); err != nil {
			return nil, err
		}
	}
	for _, link := range i.Links {
		header := &tar.Header{Name: inLayer(link.Path), Linkname: link.Source, Typeflag: tar.TypeSymlink, Mode: 0o777, ModTime: time.Unix(0, 0)}
		if err := w.WriteHeader(header); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return buffer.Bytes(), nil
}

func add(w *tar.Writer, path string, mode int64, content []byte) error {
	header := &tar.Header{Name: inLayer(path), Mode: mode, Size: int64(len(content)), ModTime: time.Unix(0, 0)}
	if err := w.WriteHeader(header); err != nil {
		return err
	}
	_, err := w.Write(content)
	return err
}

// machines are the architectures that ELF files tell, by their name in Go.
var machines = map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}

// runnable returns an error for a program that no container of the image could start: one of
// another architecture, or one that needs a dynamic linker, which no image made here has. The
// container would fail with "exec format error" or "no such file".
func runnable(program, architecture string) error {
	file, err := elf.Open(program)
	var format *elf.FormatError
	if errors.As(err, &format) || errors.Is(err, io.EOF) {
		return nil // a script, say
	}
	if err != nil {
		return err
	}
	defer file.Close()
	if want, known := machines[architecture]; known && file.Machine != want {
		return fmt.Errorf("%s is for %v, not for %s", program, file.Machine, architecture)
	}
	for _, segment := range file.Progs {
		if segment.Type == elf.PT_INTERP {
			return fmt.Errorf("%s is linked dynamically: build it with CGO_ENABLED=0", program)
		}
	}
	return nil
}

// inLayer is a path as layers hold it, without the leading slash.
func inLayer(file string) string {
	return strings.TrimPrefix(path.Clean("/"+file), "/")
}
