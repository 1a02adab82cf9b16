// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/spf13/cobra"

	"github.com/lockstep-k8s/lockstep/internal/testing/hangup"
	"github.com/lockstep-k8s/lockstep/localcluster/build"
	"github.com/lockstep-k8s/lockstep/localcluster/cluster"
	"github.com/lockstep-k8s/lockstep/localcluster/components"
)

// TestMistakesAreOneLine runs command lines that fail before anything is built or started.
func TestMistakesAreOneLine(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "c")
	tests := map[string]struct {
		args []string
		want string
	}{
		"an unknown command":           {[]string{"launch"}, `unknown command "launch"`},
		"an unknown flag":              {[]string{"up", "--nodes=3"}, "unknown flag: --nodes"},
		"an unknown program":           {[]string{"up", "--dir", dir, "--with=webhook"}, `--with "webhook": want a list of controller and scheduler, or none`},
		"a quantity that is none":      {[]string{"up", "--dir", dir, "--node-cpu=many"}, `--node-cpu "many" is not a quantity`},
		"an unknown version":           {[]string{"up", "--dir", dir, "--with=none", "--kubernetes-version=1.12"}, `--kubernetes-version "1.12" is not known: it is one of 1.37, 1.36, 1.35 and 1.34`},
		"a version not to be built":    {[]string{"build", "--kubernetes-version=v1.36.0"}, `--kubernetes-version "v1.36.0" is not known: it is one of 1.37,`},
		"a node newer than its server": {[]string{"build", "--real-node", "--kubernetes-version=1.36"}, "--kubernetes-version 1.36 is given with --real-node, whose kubelet is of 1.37 and may not be newer than the API server: only --kubernetes-version 1.37 goes with it"},
		"an address that is none":      {[]string{"build", "--installed", "--kubernetes-url=dl.k8s.io"}, `--kubernetes-url "dl.k8s.io" is not an address such as https://dl.k8s.io; empty means that what is published there is built`},
		"an address for nothing":       {[]string{"build", "--kubernetes-url=https://dl.k8s.io"}, "--kubernetes-url is given without --installed: all components are built then"},
		"a program that is not there":  {[]string{"up", "--dir", dir, "--with=scheduler", "--bin-dir", dir}, "no lockstep-scheduler in " + dir},
		"a directory below a file":     {[]string{"up", "--dir", "/dev/null/c", "--with=none"}, "--dir: mkdir /dev/null: not a directory"},
		"status of no cluster":         {[]string{"status", "--dir", dir + "/none"}, "no cluster in " + dir + "/none"},
		"logs of no cluster":           {[]string{"logs", "etcd", "--dir", dir + "/none"}, "no cluster in " + dir + "/none"},
		"images for no cluster":        {[]string{"load-image", "x.tar", "--dir", dir + "/none"}, "no cluster in"},
		"logs of which component?":     {[]string{"logs", "--dir", dir}, "accepts 1 arg(s), received 0"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var stdout, stderr strings.Builder
			if code := Main(tc.args, &stdout, &stderr); code != 1 {
				t.Errorf("exit code %d, want 1", code)
			}
			message := stderr.String()
			if !strings.HasPrefix(message, "lockstep-local: ") || !strings.Contains(message, tc.want) || strings.Count(message, "\n") != 1 {
				t.Errorf("stderr %q, want one line with %q", message, tc.want)
			}
		})
	}
}

// TestATerminalThatClosesInterrupts, as Ctrl-C does, so that a cluster which is being started is taken down.
func TestATerminalThatClosesInterrupts(t *testing.T) {
	hangup.Heed(t)
	dir := t.TempDir()
	log := cluster.Layout{Dir: dir}.Log("etcd")
	if err := os.MkdirAll(filepath.Dir(log), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(log, []byte("begun"), 0o600); err != nil {
		t.Fatal(err)
	}
	if code := Main([]string{"logs", "-f", "etcd", "--dir", dir}, closing{}, os.Stderr); code != 0 {
		t.Errorf("exit code %d, want that following a log ends", code)
	}
}

// closing is a terminal that closes when something is printed.
type closing struct{}

func (closing) Write(p []byte) (int, error) { return len(p), syscall.Kill(os.Getpid(), syscall.SIGHUP) }

func TestHelpNamesTheCommands(t *testing.T) {
	var stdout, stderr strings.Builder
	if code := Main([]string{"--help"}, &stdout, &stderr); code != 0 {
		t.Fatalf("exit code %d: %s", code, stderr.String())
	}
	for _, name := range []string{"up", "down", "status", "logs", "load-image", "build", "versions"} {
		if !strings.Contains(stdout.String(), "\n  "+name+" ") {
			t.Errorf("help does not name %s:\n%s", name, stdout.String())
		}
	}
	for _, hidden := range []string{"supervise", "reap"} {
		if strings.Contains(stdout.String(), hidden) {
			t.Errorf("help names %s, which is for lockstep-local itself", hidden)
		}
	}
}

func TestDefaultDir(t *testing.T) {
	t.Setenv("HOME", "/home/u")
	t.Setenv("XDG_STATE_HOME", "")
	layout, err := layoutOf("")
	if err != nil || layout.Dir != "/home/u/.local/state/lockstep-local/default" {
		t.Errorf("default directory %q, %v", layout.Dir, err)
	}
	t.Setenv("XDG_STATE_HOME", "/state")
	if layout, err = layoutOf(""); err != nil || layout.Dir != "/state/lockstep-local/default" {
		t.Errorf("with XDG_STATE_HOME %q, %v", layout.Dir, err)
	}
	t.Setenv("XDG_STATE_HOME", "")
	t.Setenv("HOME", "")
	if _, err := layoutOf(""); err == nil || !strings.Contains(err.Error(), "set --dir") {
		t.Errorf("without a home: %v", err)
	}
}

// TestVersionsAreThoseThatCanBeBuilt: hack/e2e-versions.sh tries what it prints.
func TestVersionsAreThoseThatCanBeBuilt(t *testing.T) {
	var stdout, stderr strings.Builder
	if code := Main([]string{"versions"}, &stdout, &stderr); code != 0 {
		t.Fatalf("exit code %d: %s", code, stderr.String())
	}
	want := []string{"1.37", "1.36", "1.35", "1.34"}
	if got := strings.Fields(stdout.String()); !slices.Equal(got, want) || strings.Count(stdout.String(), "\n") != len(want) {
		t.Errorf("it prints %q, want a line for each of %v", stdout.String(), want)
	}
}

// TestWhereProgramsComeFrom: the flag counts before the variable, and an empty value of either has the programs built.
func TestWhereProgramsComeFrom(t *testing.T) {
	tests := map[string]struct {
		args      []string
		variables map[string]string
		want      map[components.Host]string
		wantErr   string
	}{
		"without --installed all are built": {nil, map[string]string{"LOCKSTEP_KUBERNETES_URL": "https://mirror.example"}, nil, ""},
		"their projects publish them":       {[]string{"--installed"}, nil, map[components.Host]string{components.KubernetesHost: "https://dl.k8s.io", components.GitHub: "https://github.com"}, ""},
		"variables name mirrors": {[]string{"--installed"}, map[string]string{"LOCKSTEP_KUBERNETES_URL": "https://mirror.example/k8s", "LOCKSTEP_GITHUB_URL": "https://mirror.example/github"},
			map[components.Host]string{components.KubernetesHost: "https://mirror.example/k8s", components.GitHub: "https://mirror.example/github"}, ""},
		"a flag counts more":              {[]string{"--installed", "--github-url=http://other.example"}, map[string]string{"LOCKSTEP_GITHUB_URL": "https://mirror.example", "LOCKSTEP_KUBERNETES_URL": ""}, map[components.Host]string{components.GitHub: "http://other.example"}, ""},
		"an empty flag has them built":    {[]string{"--installed", "--kubernetes-url=", "--github-url="}, map[string]string{"LOCKSTEP_KUBERNETES_URL": "https://mirror.example"}, nil, ""},
		"a mistake in a variable is told": {[]string{"--installed"}, map[string]string{"LOCKSTEP_GITHUB_URL": "mirror"}, nil, `LOCKSTEP_GITHUB_URL "mirror" is not an address such as https://github.com`},
		"a mirror without --installed":    {[]string{"--github-url=https://mirror.example"}, nil, nil, "--github-url is given without --installed"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			for _, variable := range []string{"LOCKSTEP_KUBERNETES_URL", "LOCKSTEP_GITHUB_URL"} {
				value, has := tc.variables[variable]
				if t.Setenv(variable, value); !has {
					os.Unsetenv(variable)
				}
			}
			cmd, programs := &cobra.Command{}, &programFlags{}
			programs.add(cmd)
			if err := cmd.ParseFlags(tc.args); err != nil {
				t.Fatal(err)
			}
			got, err := programs.sites(cmd)
			if tc.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), tc.wantErr) {
					t.Errorf("error %v, want %q", err, tc.wantErr)
				}
				return
			}
			want := map[components.Host]*build.Site{}
			for host, address := range tc.want {
				want[host], _ = build.ParseSite(host, address)
			}
			if err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("they come from %+v, %v; want %+v", got, err, want)
			}
		})
	}
}
