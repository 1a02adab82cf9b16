// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package image packs static binaries into container images, without a base image
// and without a registry.
package image

import (
	"archive/tar"
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"runtime"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// Image is what an image holds. Equal contents make equal images: all times in
// it are zero.
type Image struct {
	// Reference names it, such as example.com/name:tag.
	Reference string
	// Binaries are programs of this machine by their absolute path in the image.
	Binaries []File
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
	content, err := i.layer()
	if err != nil {
		return fmt.Errorf("packing image %s: %w", i.Reference, err)
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(content)), nil
	})
	if err != nil {
		return fmt.Errorf("packing image %s: %w", i.Reference, err)
	}
	image, err := mutate.AppendLayers(empty.Image, layer)
	if err != nil {
		return fmt.Errorf("packing image %s: %w", i.Reference, err)
	}
	config, err := image.ConfigFile()
	if err != nil {
		return fmt.Errorf("packing image %s: %w", i.Reference, err)
	}
	config = config.DeepCopy()
	// Without a platform containerd takes the image for one of another machine.
	config.OS, config.Architecture = "linux", runtime.GOARCH
	config.Config = v1.Config{
		Entrypoint: i.Entrypoint,
		Env:        []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"},
	}
	image, err = mutate.ConfigFile(image, config)
	if err != nil {
		return fmt.Errorf("packing image %s: %w", i.Reference, err)
	}
	if err := tarball.WriteToFile(target, tag, image); err != nil {
		return fmt.Errorf("writing image %s to %s: %w", i.Reference, target, err)
	}
	return nil
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
		if err := static(file.Source); err != nil {
			return nil, err
		}
		content, err := os.ReadFile(file.Source)
		if err != nil {
			return nil, err
		}
		header := &tar.Header{Name: inLayer(file.Path), Mode: 0o755, Size: int64(len(content)), ModTime: time.Unix(0, 0)}
		if err := w.WriteHeader(header); err != nil {
			return nil, err
		}
		if _, err := w.Write(content); err != nil {
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

// static returns an error for a program that needs a dynamic linker, which no
// image made here has: its container would fail with "no such file".
func static(program string) error {
	file, err := elf.Open(program)
	var format *elf.FormatError
	if errors.As(err, &format) || errors.Is(err, io.EOF) {
		return nil // a script, say
	}
	if err != nil {
		return err
	}
	defer file.Close()
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
