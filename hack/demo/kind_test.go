// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/lockstep-k8s/lockstep/internal/testing/hangup"
)

// demoInKind runs demo.sh --kind, in a process group of its own, with a kind and a lockstep-demo that write down how they
// are called, and then do what acts says, a case of shell for the call. It returns the calls and what is printed.
func demoInKind(t *testing.T, acts, clusters string) (calls, out string, err error) {
	t.Helper()
	dir := t.TempDir()
	script, err := os.ReadFile("../demo.sh")
	if err != nil {
		t.Fatal(err)
	}
	says := "#!/bin/sh\ncall=\"$(basename \"$0\") $1\"\ncase $call in lockstep-demo*) call=lockstep-demo ;; esac\n" +
		"say() { echo \"$1\" >> " + filepath.Join(dir, "calls") + "; }\nsay \"$call\"\ncase $call in " + acts + "\nesac\n" +
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
	cmd.Env = append(os.Environ(), "PATH="+filepath.Join(dir, "path")+":"+os.Getenv("PATH"), "CLUSTERS="+clusters, "TMPDIR="+dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	printed, err := cmd.CombinedOutput()
	called, readErr := os.ReadFile(filepath.Join(dir, "calls"))
	if readErr != nil {
		t.Error(readErr)
	}
	if left, err := filepath.Glob(filepath.Join(dir, "tmp.*")); err != nil || len(left) > 0 {
		t.Errorf("left are %v (%v)", left, err)
	}
	return string(called), string(printed), err
}

// TestTheDemoRemovesNoClusterButItsOwn of kind's.
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
			calls, out, err := demoInKind(t, "'"+tc.fails+"') exit 7 ;;", tc.clusters)
			if goesWell := name == "the demo goes well"; (err == nil) != goesWell || !strings.Contains(out, tc.wantOut) {
				t.Errorf("it ended with %v and said, want %q:\n%s", err, tc.wantOut, out)
			}
			if calls != strings.Join(tc.want, "\n")+"\n" {
				t.Errorf("called were\n%s\nwant %v", calls, tc.want)
			}
		})
	}
}

// TestADemoWhoseTerminalClosesRemovesItsClusterLast: when it has left it, and whatever the terminal sends meanwhile.
func TestADemoWhoseTerminalClosesRemovesItsClusterLast(t *testing.T) {
	hangup.Heed(t)
	removes := "'kind delete') kill -HUP 0; kill -INT 0; kill -PIPE 0; say removed ;;"
	for name, tc := range map[string]struct {
		acts string
		want []string
	}{
		"while the demo runs": {"lockstep-demo) trap : HUP; kill -HUP 0; sleep 0.3; say left; exit 1 ;;",
			[]string{"kind get", "kind create", "kind load", "lockstep-demo", "left", "kind delete", "removed"}},
		"while the demo runs, by Ctrl-C": {"lockstep-demo) trap : INT; kill -INT 0; sleep 0.3; say left; exit 1 ;;",
			[]string{"kind get", "kind create", "kind load", "lockstep-demo", "left", "kind delete", "removed"}},
		"while kind makes the cluster": {"'kind create') kill -HUP 0; sleep 10 ;;",
			[]string{"kind get", "kind create", "kind delete", "removed"}},
		"while kind makes the cluster, by Ctrl-C": {"'kind create') kill -INT 0; sleep 10 ;;",
			[]string{"kind get", "kind create", "kind delete", "removed"}},
		"while kind loads the image": {"'kind load') kill -HUP 0; sleep 10 ;;",
			[]string{"kind get", "kind create", "kind load", "kind delete", "removed"}},
	} {
		t.Run(name, func(t *testing.T) {
			calls, out, err := demoInKind(t, tc.acts+" "+removes, "")
			if want := strings.Join(tc.want, "\n") + "\n"; calls != want || err == nil {
				t.Errorf("it ended with %v and called\n%s\nwant\n%s\nand said\n%s", err, calls, want, out)
			}
		})
	}
}
