// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/lockstep-k8s/lockstep/localcluster/cluster"
	"github.com/lockstep-k8s/lockstep/localcluster/pki"
)

func TestPrepareWritesKubeconfigsThatWork(t *testing.T) {
	dir := t.TempDir()
	plan := &cluster.Plan{
		Options:  cluster.Options{Dir: dir, Kubeconfig: filepath.Join(dir, "extra")},
		Layout:   cluster.Layout{Dir: dir},
		Ports:    cluster.Ports{APIServer: 20001},
		Network:  cluster.Network{X: 150},
		Binaries: map[string]string{"kubectl": "/cache/kubectl", "controller": "/b/lockstep-controller"},
	}
	if err := prepare(plan, time.Now()); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{plan.Layout.Kubeconfig(), plan.Options.Kubeconfig, plan.Layout.ComponentKubeconfig("kubelet")} {
		config, err := clientcmd.BuildConfigFromFlags("", path)
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		if config.Host != "https://127.0.0.1:20001" || len(config.CertData) == 0 || len(config.CAData) == 0 {
			t.Errorf("%s leads to %s", path, config.Host)
		}
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != 0o600 {
			t.Errorf("%s may be read by others: %v", path, info.Mode())
		}
	}
	for link, want := range map[string]string{"kubectl": "/cache/kubectl", "lockstep-controller": "/b/lockstep-controller"} {
		if got, err := os.Readlink(filepath.Join(plan.Layout.Bin(), link)); got != want {
			t.Errorf("bin/%s leads to %q (%v), want %s", link, got, err, want)
		}
	}
}

func TestCheckKubeconfig(t *testing.T) {
	ours, err := kubeconfig("https://127.0.0.1:1", []byte("ca"), pki.Pair{Cert: []byte("c"), Key: []byte("k")})
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		content string
		wantErr string
	}{
		"an empty file may be filled":   {"", ""},
		"one of ours may be replaced":   {string(ours), ""},
		"one of someone else may not":   {strings.ReplaceAll(string(ours), "lockstep-local", "production"), "holds other clusters"},
		"what is no kubeconfig may not": {"Dear diary,\n", "cannot be read as a kubeconfig"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "config")
			if err := os.WriteFile(path, []byte(tc.content), 0o600); err != nil {
				t.Fatal(err)
			}
			err := CheckKubeconfig(path)
			if tc.wantErr == "" && err != nil || tc.wantErr != "" && (err == nil || !strings.Contains(err.Error(), tc.wantErr)) {
				t.Errorf("error %v, want %q", err, tc.wantErr)
			}
		})
	}
	if err := CheckKubeconfig(filepath.Join(t.TempDir(), "none")); err != nil {
		t.Errorf("a file that does not exist: %v", err)
	}
}

func TestOnlyTheKubeconfigOfThisClusterIsRemoved(t *testing.T) {
	content, err := kubeconfig("https://127.0.0.1:1", []byte("ca"), pki.Pair{Cert: []byte("c"), Key: []byte("k")})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := removeKubeconfig(path, "https://127.0.0.1:2"); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Error("the kubeconfig of another cluster is gone")
	}
	if err := removeKubeconfig(path, "https://127.0.0.1:1"); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Error("the kubeconfig is still there")
	}
}

func TestTheLockTellsWhetherAClusterRuns(t *testing.T) {
	layout := cluster.Layout{Dir: filepath.Join(t.TempDir(), "c")}
	expect := func(want bool) {
		t.Helper()
		if got, err := Running(layout); got != want || err != nil {
			t.Errorf("Running = %v, %v; want %v", got, err, want)
		}
	}
	expect(false)
	held, err := lock(layout)
	if err != nil {
		t.Fatal(err)
	}
	expect(true)
	if err := CheckDir(layout); err == nil || !strings.Contains(err.Error(), "lockstep-local down") {
		t.Errorf("error %v, want one that names down", err)
	}
	held.Close()
	expect(false)
	if err := CheckDir(layout); err != nil {
		t.Errorf("after the lock is free: %v", err)
	}
}

func TestDownRemovesNothingOfOthers(t *testing.T) {
	layout := cluster.Layout{Dir: t.TempDir()}
	for _, path := range []string{layout.Kubeconfig(), layout.Dir + "/thesis.tex", layout.Dir + "/logs/notes.txt", layout.Log("etcd")} {
		if err := writeFile(path, []byte("x")); err != nil {
			t.Fatal(err)
		}
	}
	if err := Down(t.Context(), layout, false); err != nil {
		t.Fatal(err)
	}
	var left []string
	filepath.WalkDir(layout.Dir, func(path string, entry os.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			left = append(left, strings.TrimPrefix(path, layout.Dir))
		}
		return err
	})
	if diff := cmp.Diff([]string{"/logs/notes.txt", "/thesis.tex"}, left); diff != "" {
		t.Errorf("files left (-want,+got):\n%s", diff)
	}
}

// TestAFolderThatOthersMayWriteIsNotUsed: programs would be run from it, processes of its state be ended.
func TestAFolderThatOthersMayWriteIsNotUsed(t *testing.T) {
	layout := cluster.Layout{Dir: t.TempDir()}
	if err := writeState(layout, &State{PID: os.Getpid(), Phase: Ready}); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(layout.Dir, 0o777); err != nil {
		t.Fatal(err)
	}
	_, readErr := ReadState(layout)
	for command, err := range map[string]error{"up": CheckDir(layout), "down": Down(t.Context(), layout, false), "load-image and status": readErr} {
		if err == nil || !strings.Contains(err.Error(), "may be written by others") {
			t.Errorf("%s: error %v", command, err)
		}
	}
	if _, err := os.Stat(layout.State()); err != nil {
		t.Errorf("what was there: %v", err)
	}
}

func TestDownOfNothingIsDone(t *testing.T) {
	if err := Down(t.Context(), cluster.Layout{Dir: filepath.Join(t.TempDir(), "none")}, false); err != nil {
		t.Error(err)
	}
}

func TestStateOfNoClusterSaysHowToStartOne(t *testing.T) {
	_, err := ReadState(cluster.Layout{Dir: t.TempDir()})
	if !errors.Is(err, errNoCluster) || !strings.Contains(err.Error(), "lockstep-local up") {
		t.Errorf("error %v", err)
	}
}

func TestFollow(t *testing.T) {
	tests := map[string]struct {
		messages     string
		wantReady    bool
		wantErr      string
		wantProgress []string
	}{
		"ready ends it":         {`{"progress":"a"}` + "\n" + `{"progress":"b"}` + "\n" + `{"ready":true}` + "\n", true, "", []string{"a", "b"}},
		"an error is passed on": {`{"error":"no room"}` + "\n", false, "no room", nil},
		"a death is no success": {`{"progress":"a"}` + "\n", false, "", []string{"a"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var progress []string
			ready, err := follow(strings.NewReader(tc.messages), func(s string) { progress = append(progress, s) })
			if ready != tc.wantReady || (err == nil) != (tc.wantErr == "") || err != nil && err.Error() != tc.wantErr {
				t.Errorf("follow = %v, %v; want %v, %q", ready, err, tc.wantReady, tc.wantErr)
			}
			if diff := cmp.Diff(tc.wantProgress, progress); diff != "" {
				t.Errorf("progress (-want,+got):\n%s", diff)
			}
		})
	}
}

func TestASupervisorThatGetsNoOrderEnds(t *testing.T) {
	var out strings.Builder
	if err := Run(context.Background(), strings.NewReader(""), &out); err == nil {
		t.Error("no error")
	}
	if !strings.Contains(out.String(), `"error":"reading the order`) {
		t.Errorf("told: %s", out.String())
	}
}
