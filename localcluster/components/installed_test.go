// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package components

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

func TestWhichInstalledVersionsFit(t *testing.T) {
	tests := map[string]struct {
		component, printed string
		version            string
		fits               bool
	}{
		"etcd":                         {Etcd, "etcd Version: 3.6.5\nGit SHA: a061450\nGo Version: go1.24.7\n", "3.6.5", true},
		"a later minor version":        {Etcd, "etcd Version: 3.7.0\n", "3.7.0", true},
		"an older minor version":       {Etcd, "etcd Version: 3.4.23\n", "3.4.23", false},
		"another major version":        {Etcd, "etcd Version: 4.0.0\n", "4.0.0", false},
		"a path with a version":        {Containerd, "containerd github.com/containerd/containerd/v2 v2.1.4 75cb2b7193e4", "v2.1.4", true},
		"containerd of version 1":      {Containerd, "containerd github.com/containerd/containerd 1.6.20~ds1 1.6.20~ds1-1+deb12u1", "1.6.20", false},
		"a name with a version":        {ContainerdShim, "containerd-shim-runc-v2:\n  Version:  v2.1.4\n  Revision: 75cb2b7", "v2.1.4", true},
		"runc":                         {Runc, "runc version 1.3.0\ncommit: v1.3.0-0-g4ca628d1\nspec: 1.2.1\n", "1.3.0", true},
		"a plugin":                     {CNIBridge, "CNI bridge plugin v1.9.1\nCNI protocol versions supported: 0.1.0, 1.0.0", "v1.9.1", true},
		"CoreDNS":                      {CoreDNS, "CoreDNS-1.12.1\nlinux/amd64, go1.24.2, 707c7c1\n", "1.12.1", true},
		"who does not tell":            {Runc, "usage: runc\n", "", false},
		"a plugin before its versions": {CNIBridge, "CNI bridge plugin version unknown\nCNI protocol versions supported: 0.1.0, 1.0.0", "0.1.0", false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			i, ok := Component{Name: tc.component}.Installed()
			if !ok {
				t.Fatalf("%s is never taken from the machine", tc.component)
			}
			version, err := i.Fits(tc.printed)
			if version != tc.version || (err == nil) != tc.fits {
				t.Errorf("Fits = %q, %v; want %q, fits: %v", version, err, tc.version, tc.fits)
			}
		})
	}
}

// TestProgramsOfKubernetesAreOfExactlyTheirVersion: a node of one version with an API server of another is
// not what the demo is about.
func TestProgramsOfKubernetesAreOfExactlyTheirVersion(t *testing.T) {
	tests := map[string]struct {
		component, printed string
		version            string
		fits               bool
	}{
		"the version":          {Kubelet, "Kubernetes v1.37.1\n", "v1.37.1", true},
		"that of kubectl":      {Kubectl, "Client Version: v1.37.1\nKustomize Version: v5.8.1\n", "v1.37.1", true},
		"behind a warning":     {APIServer, "W1127 of v1.2.3\nKubernetes v1.37.1\n", "v1.37.1", true},
		"a patch before":       {APIServer, "Kubernetes v1.37.0\n", "v1.37.0", false},
		"one that begins so":   {APIServer, "Kubernetes v1.37.10\n", "v1.37.10", false},
		"a candidate":          {APIServer, "Kubernetes v1.37.1-rc.0\n", "v1.37.1-rc.0", false},
		"a distribution":       {Kubelet, "Kubernetes v1.37.1+k3s1\n", "v1.37.1+k3s1", false},
		"another program's":    {Kubelet, "containerd v1.37.1\n", "", false},
		"nothing, as in vain":  {Kubelet, "", "", false},
		"a version in passing": {Kubectl, "needs Kubernetes v1.37.1\n", "", false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			i, ok := Component{Name: tc.component, Kubernetes: "v1.37.1"}.Installed()
			if !ok {
				t.Fatalf("%s is never taken from the machine", tc.component)
			}
			version, err := i.Fits(tc.printed)
			if version != tc.version || (err == nil) != tc.fits {
				t.Errorf("Fits = %q, %v; want %q, fits: %v", version, err, tc.version, tc.fits)
			}
		})
	}
}

func TestWhichProgramsAreNotAlwaysBuilt(t *testing.T) {
	var taken, published []string
	for _, c := range slices.Concat(ControlPlane(Newest()), SimulatedNodes(), RealNode()) {
		if _, ok := c.Installed(); ok {
			taken = append(taken, c.Name)
		}
		if _, ok := c.Published(Toolchain{OS: "linux", Arch: "amd64"}); ok {
			published = append(published, c.Name)
		}
	}
	want := []string{Etcd, APIServer, ControllerManager, Kubectl, Kubelet, Containerd, ContainerdShim, Ctr, Runc, CNIBridge, CNILoopback, CNIHostLocal, CoreDNS}
	if !slices.Equal(taken, want) {
		t.Errorf("taken from the machine: %v, want %v", taken, want)
	}
	want = []string{Etcd, APIServer, ControllerManager, Kubectl, Kwok, Kubelet, Containerd, ContainerdShim, Ctr, Runc, CNIBridge, CNILoopback, CNIHostLocal, CoreDNS}
	if !slices.Equal(published, want) {
		t.Errorf("downloaded: %v, want %v", published, want)
	}
}

// TestWhereProjectsPublish holds a sample against the pages of the projects' releases.
func TestWhereProjectsPublish(t *testing.T) {
	for _, c := range slices.Concat(ControlPlane(Newest()), SimulatedNodes(), RealNode()) {
		p, _ := c.Published(Toolchain{OS: "linux", Arch: "arm64"})
		v := strings.TrimPrefix(p.Version, "v")
		want := map[string][3]string{
			Etcd:      {"etcd-io/etcd/releases/download/v" + v + "/etcd-v" + v + "-linux-arm64.tar.gz", "etcd-io/etcd/releases/download/v" + v + "/SHA256SUMS", "etcd-v" + v + "-linux-arm64/etcd"},
			Ctr:       {"containerd/containerd/releases/download/v" + v + "/containerd-static-" + v + "-linux-arm64.tar.gz", "containerd/containerd/releases/download/v" + v + "/containerd-static-" + v + "-linux-arm64.tar.gz.sha256sum", "bin/ctr"},
			Runc:      {"opencontainers/runc/releases/download/v" + v + "/runc.arm64", "opencontainers/runc/releases/download/v" + v + "/runc.sha256sum", ""},
			CNIBridge: {"containernetworking/plugins/releases/download/v" + v + "/cni-plugins-linux-arm64-v" + v + ".tgz", "containernetworking/plugins/releases/download/v" + v + "/cni-plugins-linux-arm64-v" + v + ".tgz.sha256", "bridge"},
			CoreDNS:   {"coredns/coredns/releases/download/v" + v + "/coredns_" + v + "_linux_arm64.tgz", "coredns/coredns/releases/download/v" + v + "/coredns_" + v + "_linux_arm64.tgz.sha256", "coredns"},
			Kwok:      {"kubernetes-sigs/kwok/releases/download/v" + v + "/kwok-linux-arm64", "kubernetes-sigs/kwok/releases/download/v" + v + "/kwok-linux-arm64.sha256", ""},
		}
		if got := [3]string{p.File, p.Digests, p.Member}; want[c.Name][0] != "" && got != want[c.Name] {
			t.Errorf("%s: %q, want %q", c.Name, got, want[c.Name])
		}
	}
	if p, ok := ControlPlane(Newest())[0].Published(Toolchain{OS: "darwin", Arch: "arm64"}); ok {
		t.Errorf("on macOS etcd comes from %s, want that it is built", p.File)
	}
}

func TestAPublishedProgramIsOfItsVersion(t *testing.T) {
	for printed, fits := range map[string]bool{
		"etcd Version: 3.7.3\nGit SHA: abc\nGo Version: go1.26.1":                 true,
		"containerd github.com/containerd/containerd/v2 v3.7.3 abc":               true,
		"CNI bridge plugin v3.7.3\nCNI protocol versions supported: 0.1.0, 1.1.0": true,
		"etcd Version: 3.7.30": false,
		"exec format error":    false,
	} {
		if err := (Published{Version: "v3.7.3"}).Fits(printed); (err == nil) != fits {
			t.Errorf("%q: %v, want that it fits: %v", printed, err, fits)
		}
	}
}

// TestAnOlderReleaseIsPublishedUnderItsVersion: its control plane is older, and its kubectl is not.
func TestAnOlderReleaseIsPublishedUnderItsVersion(t *testing.T) {
	r := Releases()[1]
	got := map[string]string{}
	for _, c := range ControlPlane(r) {
		if p, _ := c.Published(Toolchain{OS: "linux", Arch: "arm64"}); p.Host == KubernetesHost {
			got[c.Name] = p.File
		}
	}
	want := map[string]string{
		APIServer:         "release/" + r.Version + "/bin/linux/arm64/kube-apiserver",
		ControllerManager: "release/" + r.Version + "/bin/linux/arm64/kube-controller-manager",
		Kubectl:           "release/" + KubernetesVersion + "/bin/linux/arm64/kubectl",
	}
	if !maps.Equal(got, want) {
		t.Errorf("downloaded: %v, want %v", got, want)
	}
}
