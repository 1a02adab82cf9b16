// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/lockstep-k8s/lockstep/localcluster/image"
)

// nobody is who runs the programs. It is the number that the manifests name, too.
const nobody = "65532:65532"

// release is what a release is made from and where it goes.
type release struct {
	// Source is the folder of the source, Out the one to write.
	Source, Out string
	// Version, Revision and Created tell, in labels, what was built.
	Version, Revision string
	Created           time.Time
	// LDFlags are for Go's linker.
	LDFlags string
	// System is what programs are built for, linux for images. Architectures are those of images and archives.
	System        string
	Architectures []string
}

// program is one of a release.
type program struct {
	// Image is the name of the image, Binary the one of the program in it.
	Image, Binary string
	// Package is where its source is.
	Package string
	// Description is a sentence for users.
	Description string
}

// make builds the program for all architectures. It writes Out/IMAGE, an OCI layout with one index,
// and Out/sbom/IMAGE-linux-ARCHITECTURE.spdx.json. It returns the digest of the index.
func (r release) make(p program) (v1.Hash, error) {
	labels := map[string]string{
		"org.opencontainers.image.title":       p.Binary,
		"org.opencontainers.image.description": p.Description,
		"org.opencontainers.image.source":      "https://github.com/lockstep-k8s/lockstep",
		"org.opencontainers.image.licenses":    "Apache-2.0",
		"org.opencontainers.image.version":     r.Version,
		"org.opencontainers.image.revision":    r.Revision,
		"org.opencontainers.image.created":     r.Created.Format(time.RFC3339),
	}
	var index v1.ImageIndex = empty.Index
	for _, architecture := range r.Architectures {
		built, err := r.build(p, architecture)
		if err != nil {
			return v1.Hash{}, err
		}
		sbom := filepath.Join(r.Out, "sbom", fmt.Sprintf("%s-linux-%s.spdx.json", p.Image, architecture))
		if err := r.writeSBOM(sbom, p, built); err != nil {
			return v1.Hash{}, fmt.Errorf("writing %s: %w", sbom, err)
		}
		packed, err := image.Image{
			Architecture: architecture,
			User:         nobody,
			Labels:       labels,
			Created:      r.Created,
			Binaries:     []image.File{{Path: "/bin/" + p.Binary, Source: built.file}},
			Texts:        built.licences(),
			Entrypoint:   []string{"/bin/" + p.Binary},
		}.Build()
		if err != nil {
			return v1.Hash{}, err
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add:        packed,
			Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: architecture}},
		})
	}
	index = mutate.Annotations(index, labels).(v1.ImageIndex)
	path, err := layout.Write(filepath.Join(r.Out, p.Image), empty.Index)
	if err != nil {
		return v1.Hash{}, err
	}
	named := layout.WithAnnotations(map[string]string{"org.opencontainers.image.ref.name": r.Version})
	if err := path.AppendIndex(index, named); err != nil {
		return v1.Hash{}, err
	}
	return index.Digest()
}

// push pushes an image that was made to REGISTRY/IMAGE:VERSION, and returns its full name with the
// digest, by which a manifest can name it for good.
func (r release) push(ctx context.Context, p program, registry string) (string, error) {
	tag, err := name.NewTag(registry+"/"+p.Image+":"+r.Version, name.StrictValidation)
	if err != nil {
		return "", err
	}
	path, err := layout.FromPath(filepath.Join(r.Out, p.Image))
	if err != nil {
		return "", err
	}
	written, err := path.ImageIndex()
	if err != nil {
		return "", err
	}
	manifest, err := written.IndexManifest()
	if err != nil {
		return "", err
	}
	if len(manifest.Manifests) != 1 {
		return "", fmt.Errorf("%s holds %d images, want 1", path, len(manifest.Manifests))
	}
	digest := manifest.Manifests[0].Digest
	index, err := written.ImageIndex(digest)
	if err != nil {
		return "", err
	}
	if err := remote.WriteIndex(tag, index, remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain)); err != nil {
		return "", err
	}
	return tag.String() + "@" + digest.String(), nil
}

// writeFile writes a file, in a folder that may be missing.
func writeFile(file string, content []byte) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return os.WriteFile(file, content, 0o644)
}
