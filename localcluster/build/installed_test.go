// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package build

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lockstep-k8s/lockstep/localcluster/components"
)

// machine makes a PATH with programs that print their versions, and returns its folder.
func machine(t *testing.T, prints map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range prints {
		script := fmt.Sprintf("#!/bin/sh\necho '%s'\n", text)
		if err := os.WriteFile(filepath.Join(dir, name), []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir+":/bin:/usr/bin")
	return dir
}

func TestWhatTheMachineHasInAFittingVersionIsUsed(t *testing.T) {
	const version = components.KubernetesVersion
	tests := map[string]struct {
		prints map[string]string
		wanted []string
		want   []string
	}{
		"an etcd that fits":          {map[string]string{"etcd": "etcd Version: 3.6.5"}, []string{"etcd", "kube-apiserver"}, []string{"etcd"}},
		"one that is too old":        {map[string]string{"etcd": "etcd Version: 3.4.23"}, []string{"etcd"}, nil},
		"a project is taken whole":   {map[string]string{"containerd": "containerd v2.1.4", "containerd-shim-runc-v2": "Version: v2.1.4", "ctr": "ctr v2.1.4"}, []string{"containerd", "containerd-shim-runc-v2", "ctr"}, []string{"containerd", "containerd-shim-runc-v2", "ctr"}},
		"or not at all":              {map[string]string{"containerd": "containerd v2.1.4", "containerd-shim-runc-v2": "Version: v1.7.1", "ctr": "ctr v2.1.4"}, []string{"containerd", "containerd-shim-runc-v2", "ctr"}, nil},
		"Kubernetes of the version":  {map[string]string{"kubelet": "Kubernetes " + version, "kubectl": "Client Version: " + version + "\nKustomize Version: v5.8.1"}, []string{"kubectl", "kubelet"}, []string{"kubectl", "kubelet"}},
		"not of another patch":       {map[string]string{"kubelet": "Kubernetes " + version + "0"}, []string{"kubelet"}, nil},
		"not a distribution of it":   {map[string]string{"kubelet": "Kubernetes " + version + "+k3s1"}, []string{"kubelet"}, nil},
		"not a part of Kubernetes":   {map[string]string{"kubelet": "Kubernetes " + version}, []string{"kubectl", "kubelet"}, nil},
		"nothing that says nothing":  {map[string]string{"runc": "hello"}, []string{"runc"}, nil},
		"only what is asked for":     {map[string]string{"etcd": "etcd Version: 3.6.5", "runc": "runc version 1.3.0"}, []string{"runc"}, []string{"runc"}},
		"nothing, where there is no": {nil, []string{"etcd", "coredns"}, nil},
	}
	everything := slices.Concat(components.ControlPlane(components.Newest()), components.RealNode())
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			dir := machine(t, tc.prints)
			var wanted []components.Component
			for _, c := range everything {
				if slices.Contains(tc.wanted, c.Name) {
					wanted = append(wanted, c)
				}
			}
			var told []string
			got := FindInstalled(t.Context(), wanted, func(format string, args ...any) { told = append(told, fmt.Sprintf(format, args...)) })
			want := Binaries{}
			for _, name := range tc.want {
				want[name] = filepath.Join(dir, name)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("taken from the machine (-want,+got):\n%s", diff)
			}
			for _, name := range tc.want {
				if !strings.Contains(strings.Join(told, "\n"), "of this machine is used: "+want[name]) {
					t.Errorf("%s is used and not told of: %q", name, told)
				}
			}
		})
	}
}

// TestAClusterThatGoesTakesNoProgramAlong: users have the bin folder of a cluster in their PATH.
func TestAClusterThatGoesTakesNoProgramAlong(t *testing.T) {
	cache := machine(t, map[string]string{"etcd": "etcd Version: 3.6.5", "multi": "runc version 1.3.0"})
	bin := t.TempDir()
	for name, target := range map[string]string{"etcd": "etcd", "runc": "multi"} {
		if err := os.Symlink(filepath.Join(cache, target), filepath.Join(bin, name)); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", bin+":/bin:/usr/bin")
	wanted := []components.Component{{Name: components.Etcd, Pin: "etcd"}, {Name: components.Runc, Pin: "runc"}}
	got := FindInstalled(t.Context(), wanted, func(string, ...any) {})
	// A program that does many things is told by its name what it is to do.
	want := Binaries{"etcd": filepath.Join(cache, "etcd"), "runc": filepath.Join(bin, "runc")}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("taken from the machine (-want,+got):\n%s", diff)
	}
}
