// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestTheDemoRemovesNoClusterButItsOwn runs demo.sh with programs that only say how they are called.
func TestTheDemoRemovesNoClusterButItsOwn(t *testing.T) {
	for name, tc := range map[string]struct {
		clusters string // what kind has
		fails    string // what fails
		want     []string
		wantOut  string
	}{
		"the demo goes well": {clusters: "lockstep-demo-2\nmine",
			want: []string{"kind get", "kind create", "kind load", "lockstep-demo", "kind delete"}},
		"the demo fails": {fails: "lockstep-demo",
			want: []string{"kind get", "kind create", "kind load", "lockstep-demo", "kind delete"}},
		"somebody has a cluster of its name": {clusters: "mine\nlockstep-demo",
			want: []string{"kind get"}, wantOut: "kind delete cluster --name lockstep-demo"},
		"somebody makes one meanwhile": {fails: "kind create",
			want: []string{"kind get", "kind create"}},
		"kind does not answer": {fails: "kind get",
			want: []string{"kind get"}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			calls := filepath.Join(dir, "calls")
			script, err := os.ReadFile("../demo.sh")
			if err != nil {
				t.Fatal(err)
			}
			says := "#!/bin/sh\ncall=\"$(basename \"$0\") $1\"\ncase $call in lockstep-demo*) call=lockstep-demo ;; esac\n" +
				"echo \"$call\" >> " + calls + "\n[ \"$call\" != \"$FAILS\" ] || exit 7\n" +
				"[ \"$call\" != 'kind get' ] || echo \"$CLUSTERS\"\n"
			for path, content := range map[string]string{
				"hack/demo.sh": string(script), "hack/images.sh": "#!/bin/sh\n", "path/go": "#!/bin/sh\n",
				"path/kind": says, "bin/lockstep-demo": says,
			} {
				path = filepath.Join(dir, path)
				if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(content), 0o700); err != nil {
					t.Fatal(err)
				}
			}
			cmd := exec.CommandContext(t.Context(), filepath.Join(dir, "hack/demo.sh"), "--kind")
			cmd.Env = append(os.Environ(), "PATH="+filepath.Join(dir, "path")+":"+os.Getenv("PATH"), "FAILS="+tc.fails, "CLUSTERS="+tc.clusters, "TMPDIR="+dir)
			out, err := cmd.CombinedOutput()
			if goesWell := name == "the demo goes well"; (err == nil) != goesWell || !strings.Contains(string(out), tc.wantOut) {
				t.Errorf("it ended with %v and said, want %q:\n%s", err, tc.wantOut, out)
			}
			if got, err := os.ReadFile(calls); string(got) != strings.Join(tc.want, "\n")+"\n" {
				t.Errorf("called were (%v)\n%s\nwant %v", err, got, tc.want)
			}
			if left, err := filepath.Glob(filepath.Join(dir, "tmp.*")); err != nil || len(left) > 0 {
				t.Errorf("left are %v (%v)", left, err)
			}
		})
	}
}
