// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package components

import (
	"slices"
	"strings"
	"testing"
)

// all are the components of clusters of all releases, each of them once.
func all() []Component {
	out := slices.Concat(ControlPlane(Newest()), SimulatedNodes(), RealNode())
	for _, r := range Releases()[1:] {
		for _, c := range ControlPlane(r) {
			if c.Version != "" {
				out = append(out, c)
			}
		}
	}
	return out
}

var linux = Toolchain{GoVersion: "go1.26.8", OS: "linux", Arch: "amd64"}

func TestEveryComponentIsPinned(t *testing.T) {
	for _, c := range all() {
		files, err := c.Files()
		if err != nil {
			t.Errorf("%s: %v", c.Name, err)
			continue
		}
		// A tool directive keeps what the package needs in the pin.
		if c.Source == "" && !strings.Contains(string(files["go.mod"]), c.Package+"\n") {
			t.Errorf("%s: pins/%s.mod has no tool directive for %s", c.Name, c.Pin, c.Package)
		}
	}
}

func TestCacheKey(t *testing.T) {
	key := func(c Component, tc Toolchain) string {
		t.Helper()
		k, err := c.CacheKey(tc)
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	runc := Component{Name: Runc, Pin: "runc", Package: "github.com/opencontainers/runc", Cgo: true, SeccompTag: true}
	kwok := Component{Name: Kwok, Pin: "kwok", Package: "sigs.k8s.io/kwok/cmd/kwok"}
	withSeccomp, otherGo, otherArch := linux, linux, linux
	withSeccomp.Libseccomp = true
	otherGo.GoVersion = "go1.26.9"
	otherArch.Arch = "arm64"
	otherPin := kwok
	otherPin.Pin = "etcd"

	tests := map[string]struct {
		a, b string
		same bool
	}{
		"the same build has the same key":                     {key(kwok, linux), key(kwok, linux), true},
		"another Go makes another build":                      {key(kwok, linux), key(kwok, otherGo), false},
		"another processor makes another build":               {key(kwok, linux), key(kwok, otherArch), false},
		"other versions make another build":                   {key(kwok, linux), key(otherPin, linux), false},
		"libseccomp makes another runc":                       {key(runc, linux), key(runc, withSeccomp), false},
		"libseccomp makes no difference to what does not use": {key(kwok, linux), key(kwok, withSeccomp), true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if (tc.a == tc.b) != tc.same {
				t.Errorf("keys %s and %s, want same: %v", tc.a, tc.b, tc.same)
			}
		})
	}
}

func TestNoTwoComponentsShareAKey(t *testing.T) {
	seen := map[string]string{}
	for _, c := range all() {
		key, err := c.CacheKey(linux)
		if err != nil {
			t.Fatal(err)
		}
		if other, ok := seen[key]; ok {
			t.Errorf("%s and %s have the same key", c.Name, other)
		}
		seen[key] = c.Name
	}
}
