// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRemoveFilter(t *testing.T) {
	tests := map[string]struct{ spec, want string }{
		"the filter goes and all else stays": {
			`{"ociVersion":"1.3.0","linux":{"seccomp":{"defaultAction":"x"},"new":[1]},"x":{"y":1}}`,
			`{"linux":{"new":[1]},"ociVersion":"1.3.0","x":{"y":1}}`,
		},
		"a specification without a filter stays": {`{"linux":{"a":1}}`, `{"linux":{"a":1}}`},
		"one without a Linux part stays":         {`{"a":1}`, `{"a":1}`},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "config.json")
			if err := os.WriteFile(path, []byte(tc.spec), 0o644); err != nil {
				t.Fatal(err)
			}
			if err := removeFilter(path); err != nil {
				t.Fatal(err)
			}
			got, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, string(got)); diff != "" {
				t.Errorf("specification (-want,+got):\n%s", diff)
			}
		})
	}
}

func TestBundleOf(t *testing.T) {
	tests := map[string]struct {
		args   []string
		want   string
		wantOK bool
	}{
		"two arguments":   {[]string{"--root", "/r", "create", "--bundle", "/b", "id"}, "/b", true},
		"one argument":    {[]string{"create", "--bundle=/b", "id"}, "/b", true},
		"no bundle":       {[]string{"start", "id"}, "", false},
		"bundle of whom?": {[]string{"create", "--bundle"}, "", false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, ok := bundleOf(tc.args)
			if got != tc.want || ok != tc.wantOK {
				t.Errorf("bundleOf = %q, %v; want %q, %v", got, ok, tc.want, tc.wantOK)
			}
		})
	}
}
