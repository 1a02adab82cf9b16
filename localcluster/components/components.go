// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package components says which programs a local Kubernetes is made of and at which
// versions, so that they can be built from Go modules alone, without an image registry.
//
// Each upstream project has a pin: a go.mod and a go.sum under pins/, named *.mod and *.sum
// because a folder with a go.mod cannot be embedded. One pin per project keeps the
// dependencies of one project from choosing versions for another. A component is one program
// of a pin.
//
// Kubernetes has a pin for each release of which a control plane can be built; see Releases.
//
// To move a component to another version, run
//
//	hack/pin.sh <pin> <package@version>...
//
// and commit the two files that it rewrites.
package components

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strings"
)

//go:embed pins/*.mod pins/*.sum
var pins embed.FS

// Sources of programs of our own; see their package comments.
var (
	//go:embed pause/main.go
	pauseSource string
	//go:embed unconfined/main.go
	unconfinedSource string
	//go:embed coredns/main.go.txt
	corednsSource string
)

// Names of the components. They name the binary, the log file and the argument of
// `lockstep-local logs`.
const (
	Etcd              = "etcd"
	APIServer         = "kube-apiserver"
	ControllerManager = "kube-controller-manager"
	Kubectl           = "kubectl"
	Kwok              = "kwok"
	Kubelet           = "kubelet"
	Containerd        = "containerd"
	ContainerdShim    = "containerd-shim-runc-v2"
	Ctr               = "ctr"
	Runc              = "runc"
	CNIBridge         = "bridge"
	CNILoopback       = "loopback"
	CNIHostLocal      = "host-local"
	CoreDNS           = "coredns"
	Pause             = "pause"
	RuncUnconfined    = "runc-unconfined"
)

// Component is one program built from a pin.
type Component struct {
	// Name is the name of the binary.
	Name string
	// Version names the binary in the cache beside Name, for a program that is built at several
	// versions; empty for the usual one.
	Version string
	// Pin names the files pins/<Pin>.mod and pins/<Pin>.sum that fix its versions.
	Pin string
	// Kubernetes is the version of Kubernetes that the program is part of; empty for programs of other
	// projects.
	Kubernetes string
	// Package is the import path of its main package.
	Package string
	// Source is the main package itself, for a component whose Package is ".". It may import what
	// the files of its pin name. If there are none, it needs nothing but the standard library.
	Source string
	// LinkerFlags are given to the linker in addition to -s -w.
	LinkerFlags string
	// Cgo says that the program cannot be built without a C compiler.
	Cgo bool
	// SeccompTag says that the build tag "seccomp" adds seccomp support where libseccomp is
	// installed for development.
	SeccompTag bool
}

// ControlPlane lists what every cluster of a release needs. kube-controller-manager may not be newer
// than the API server. kubectl and etcd are the same for all.
func ControlPlane(r Release) []Component {
	return []Component{
		{Name: Etcd, Pin: "etcd", Package: "go.etcd.io/etcd/server/v3"},
		r.program(APIServer),
		r.program(ControllerManager),
		Newest().program(Kubectl),
	}
}

// SimulatedNodes lists what simulated nodes need in addition.
func SimulatedNodes() []Component {
	return []Component{{Name: Kwok, Pin: "kwok", Package: "sigs.k8s.io/kwok/cmd/kwok"}}
}

// RealNode lists what a node that runs containers needs in addition.
func RealNode() []Component {
	const containerd = "github.com/containerd/containerd/v2/cmd/"
	const cni = "github.com/containernetworking/plugins/plugins/"
	return []Component{
		Newest().program(Kubelet),
		{Name: Containerd, Pin: "containerd", Package: containerd + "containerd"},
		{Name: ContainerdShim, Pin: "containerd", Package: containerd + "containerd-shim-runc-v2"},
		{Name: Ctr, Pin: "containerd", Package: containerd + "ctr"},
		{Name: Runc, Pin: "runc", Package: "github.com/opencontainers/runc", Cgo: true, SeccompTag: true},
		{Name: CNIBridge, Pin: "cni", Package: cni + "main/bridge"},
		{Name: CNILoopback, Pin: "cni", Package: cni + "main/loopback"},
		{Name: CNIHostLocal, Pin: "cni", Package: cni + "ipam/host-local"},
		{Name: CoreDNS, Pin: "coredns", Package: ".", Source: corednsSource},
		{Name: Pause, Pin: Pause, Package: ".", Source: pauseSource},
		{Name: RuncUnconfined, Pin: RuncUnconfined, Package: ".", Source: unconfinedSource},
	}
}

// NeedsModules says whether the component is made of Go modules that have to be downloaded.
func (c Component) NeedsModules() bool {
	if c.Source == "" {
		return true
	}
	_, err := fs.Stat(pins, "pins/"+c.Pin+".mod")
	return err == nil
}

// Files returns what the folder in which `go build` makes the component has to hold.
func (c Component) Files() (map[string][]byte, error) {
	if !c.NeedsModules() {
		mod := "module pin.lockstep.dev/" + c.Pin + "\n\ngo 1.26.0\n"
		return map[string][]byte{"go.mod": []byte(mod), "main.go": []byte(c.Source)}, nil
	}
	files := map[string][]byte{}
	if c.Source != "" {
		files["main.go"] = []byte(c.Source)
	}
	for name, file := range map[string]string{"go.mod": c.Pin + ".mod", "go.sum": c.Pin + ".sum"} {
		content, err := pins.ReadFile("pins/" + file)
		if err != nil {
			return nil, fmt.Errorf("reading the pin of %s: %w", c.Name, err)
		}
		files[name] = content
	}
	return files, nil
}

// Toolchain is what besides the component itself decides what a build makes.
type Toolchain struct {
	// GoVersion is the output of `go env GOVERSION`.
	GoVersion string
	// OS and Arch are the target, as GOOS and GOARCH.
	OS, Arch string
	// Libseccomp says that libseccomp can be linked.
	Libseccomp bool
}

// BuildFlags returns the flags of `go build` for the component, without output and package.
func (c Component) BuildFlags(tc Toolchain) []string {
	flags := []string{"-trimpath", "-ldflags", strings.TrimSpace("-s -w " + c.LinkerFlags)}
	if c.SeccompTag && tc.Libseccomp {
		flags = append(flags, "-tags", "seccomp")
	}
	return flags
}

// CacheKey names a build of the component: it changes when the pinned versions, the flags or
// the toolchain do, and with nothing else.
func (c Component) CacheKey(tc Toolchain) (string, error) {
	files, err := c.Files()
	if err != nil {
		return "", err
	}
	parts := []string{
		c.Package, strings.Join(c.BuildFlags(tc), " "), fmt.Sprint(c.Cgo),
		tc.GoVersion, tc.OS, tc.Arch,
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		parts = append(parts, name, string(files[name]))
	}
	h := sha256.New()
	for _, part := range parts {
		// The length keeps two neighbours from trading bytes.
		fmt.Fprintf(h, "%d:", len(part))
		io.WriteString(h, part)
	}
	return hex.EncodeToString(h.Sum(nil))[:16], nil
}
