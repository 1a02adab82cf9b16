// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package components

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
)

// Host is the address at which projects publish their releases.
type Host string

// The hosts of all programs that are published.
const (
	// KubernetesHost has the programs of Kubernetes.
	KubernetesHost Host = "https://dl.k8s.io"
	// GitHub has those of all other projects.
	GitHub Host = "https://github.com"
)

// Published is a build of a component that its own project has published.
type Published struct {
	Host Host
	// File is the path of a file below the host: the program, or an archive (tar and gzip) with the program in it.
	File string
	// Digests is the path of the file with the SHA-256 digest of File.
	Digests string
	// Member is the path of the program in the archive; empty if File is the program.
	Member string
	// Version is what the program reports, such as v1.37.1.
	Version string
	// Ask are the arguments with which the program reports its version.
	Ask []string
}

// release is where on GitHub a project publishes a version. In all paths {V} stands for the version without v, {A} for the
// architecture as Go names it, {N} for the name of the program, and in digests {F} for the name of file.
type release struct {
	module                         string // whose version in the pin is the version
	project, file, digests, member string
	ask                            []string
}

// releases has what the projects of pins publish, as their release scripts or their pages of releases have it. KWOK publishes no
// digests, so a program of KWOK comes from a mirror that has them, and is built elsewhere.
var releases = map[string]release{
	"etcd": {
		module: "go.etcd.io/etcd/server/v3", project: "etcd-io/etcd",
		file: "etcd-v{V}-linux-{A}.tar.gz", digests: "SHA256SUMS", member: "etcd-v{V}-linux-{A}/{N}",
	},
	"containerd": {
		module: "github.com/containerd/containerd/v2", project: "containerd/containerd",
		file: "containerd-static-{V}-linux-{A}.tar.gz", digests: "{F}.sha256sum", member: "bin/{N}",
	},
	"runc": {
		module: "github.com/opencontainers/runc", project: "opencontainers/runc",
		file: "runc.{A}", digests: "runc.sha256sum",
	},
	"cni": {
		module: "github.com/containernetworking/plugins", project: "containernetworking/plugins",
		file: "cni-plugins-linux-{A}-v{V}.tgz", digests: "{F}.sha256", member: "{N}",
	},
	"coredns": {
		module: "github.com/coredns/coredns", project: "coredns/coredns",
		file: "coredns_{V}_linux_{A}.tgz", digests: "{F}.sha256", member: "{N}",
	},
	"kwok": {
		module: "sigs.k8s.io/kwok", project: "kubernetes-sigs/kwok",
		file: "kwok-linux-{A}", digests: "{F}.sha256", ask: []string{"--version"},
	},
}

// Published says where the project of the component publishes the pinned version for a system. It is false for a component that is
// always built.
func (c Component) Published(tc Toolchain) (Published, bool) {
	if tc.OS != "linux" {
		return Published{}, false
	}
	how, _ := c.Installed()
	if c.Kubernetes != "" {
		file := path.Join("release", c.Kubernetes, "bin", tc.OS, tc.Arch, c.Name)
		return Published{Host: KubernetesHost, File: file, Digests: file + ".sha256", Version: c.Kubernetes, Ask: how.Ask}, true
	}
	r, ok := releases[c.Pin]
	version := c.pinned(r.module)
	if !ok || version == "" {
		return Published{}, false
	}
	named := strings.NewReplacer("{V}", strings.TrimPrefix(version, "v"), "{A}", tc.Arch, "{N}", c.Name)
	file := named.Replace(r.file)
	folder := path.Join(r.project, "releases/download", version)
	return Published{
		Host:    GitHub,
		File:    path.Join(folder, file),
		Digests: path.Join(folder, strings.ReplaceAll(r.digests, "{F}", file)),
		Member:  named.Replace(r.member),
		Version: version,
		Ask:     slices.Concat(how.Ask, r.ask),
	}, true
}

// pinned is the version of a module in the pin of the component; empty if the pin does not name the module.
func (c Component) pinned(module string) string {
	mod, err := pins.ReadFile("pins/" + c.Pin + ".mod")
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(mod)) {
		if words := strings.Fields(line); len(words) > 1 && words[0] == module {
			return words[1]
		}
	}
	return ""
}

// Fits says why a program that printed this about itself is not the published one; nil if the program is.
func (p Published) Fits(printed string) error {
	found := versionPattern.FindString(printed)
	if found == "" {
		return errors.New("it does not tell its version")
	}
	if strings.TrimLeft(found, "vV") != strings.TrimLeft(p.Version, "vV") {
		return fmt.Errorf("%s is not %s", found, p.Version)
	}
	return nil
}
