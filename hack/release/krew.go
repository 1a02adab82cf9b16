// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// plugin is the one of kubectl. Its archives and their manifest are for krew, which installs plugins.
var plugin = program{Image: "lockstep", Binary: "kubectl-lockstep", Package: "./cmd/kubectl-lockstep", Description: "See and steer gangs of training jobs"}

// systems are those that the plugin is made for.
var systems = []string{"darwin", "linux"}

// krewManifest is what krew reads of a plugin: https://krew.sigs.k8s.io/docs/developer-guide/plugin-manifest/.
type krewManifest struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Name string `json:"name"`
	} `json:"metadata"`
	Spec krewSpec `json:"spec"`
}

type krewSpec struct {
	Version          string         `json:"version"`
	Homepage         string         `json:"homepage"`
	ShortDescription string         `json:"shortDescription"`
	Description      string         `json:"description"`
	Platforms        []krewPlatform `json:"platforms"`
}

type krewPlatform struct {
	Selector struct {
		MatchLabels map[string]string `json:"matchLabels"`
	} `json:"selector"`
	URI    string `json:"uri"`
	SHA256 string `json:"sha256"`
	Bin    string `json:"bin"`
}

// semantic is what krew takes for a version: https://semver.org, with a v before it.
var semantic = regexp.MustCompile(`^v(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-[0-9A-Za-z.-]+)?$`)

// checkKrew says what krew would not take.
func checkKrew(version, address string) error {
	if !semantic.MatchString(version) {
		return fmt.Errorf("the version %q is none for krew: -version has to be such as v1.2.3", version)
	}
	if at, err := url.Parse(address); err != nil || at.Scheme != "https" || at.Host == "" {
		return fmt.Errorf("-krew has to be the https:// address below which the archives will be, not %q", address)
	}
	return nil
}

// krew writes an archive of a plugin of kubectl for each system and architecture, and Out/NAME.yaml, the manifest by
// which krew installs it from below an address. It returns the files that it has written.
func (r release) krew(p program, address string) ([]string, error) {
	manifest := krewManifest{APIVersion: "krew.googlecontainertools.github.com/v1alpha2", Kind: "Plugin", Spec: krewSpec{
		Version: r.Version, Homepage: "https://github.com/lockstep-k8s/lockstep", ShortDescription: p.Description,
		Description: "Shows the jobs that Lockstep runs, their attempts and tasks, says why one waits and what would happen if,\nand starts, stops, scales and retries Frameworks.\n",
	}}
	manifest.Metadata.Name = p.Image
	var written []string
	for _, system := range systems {
		for _, architecture := range r.Architectures {
			r.System = system
			built, err := r.build(p, architecture)
			if err != nil {
				return nil, err
			}
			archive, err := r.archive(p, built)
			if err != nil {
				return nil, err
			}
			name := fmt.Sprintf("%s-%s-%s-%s.tar.gz", p.Binary, r.Version, system, architecture)
			file := filepath.Join(r.Out, name)
			if err := writeFile(file, archive); err != nil {
				return nil, err
			}
			sum := sha256.Sum256(archive)
			platform := krewPlatform{URI: strings.TrimSuffix(address, "/") + "/" + name, SHA256: hex.EncodeToString(sum[:]), Bin: p.Binary}
			platform.Selector.MatchLabels = map[string]string{"os": system, "arch": architecture}
			manifest.Spec.Platforms = append(manifest.Spec.Platforms, platform)
			written = append(written, file)
		}
	}
	text, err := yaml.Marshal(manifest)
	if err != nil {
		return nil, err
	}
	file := filepath.Join(r.Out, p.Image+".yaml")
	return append(written, file), writeFile(file, text)
}

// archive is a program with the licences of its parts. The commit's time is the only one in it.
func (r release) archive(p program, b *built) ([]byte, error) {
	content, err := os.ReadFile(b.file)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	packed := gzip.NewWriter(&out)
	files := tar.NewWriter(packed)
	add := func(name string, mode int64, content []byte) error {
		header := &tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: mode, Size: int64(len(content)), ModTime: r.Created, Format: tar.FormatPAX}
		if err := files.WriteHeader(header); err != nil {
			return err
		}
		_, err := files.Write(content)
		return err
	}
	if err := add(p.Binary, 0o755, content); err != nil {
		return nil, err
	}
	licences := b.licences()
	for _, name := range slices.Sorted(maps.Keys(licences)) {
		if err := add(strings.TrimPrefix(name, "/"), 0o644, licences[name]); err != nil {
			return nil, err
		}
	}
	if err := files.Close(); err != nil {
		return nil, err
	}
	err = packed.Close()
	return out.Bytes(), err
}
