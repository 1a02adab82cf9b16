// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package build

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lockstep-k8s/lockstep/localcluster/components"
)

// small is a component that builds within a second.
func small(source string) components.Component {
	return components.Component{Name: "small", Pin: "small", Package: ".", Source: source}
}

const hello = "package main\n\nfunc main() { print(\"hello\") }\n"

// newBuilder returns a builder and what it has told.
func newBuilder(t *testing.T, dir string) (*Builder, func() string) {
	t.Helper()
	var mu sync.Mutex
	var lines []string
	progress := func(format string, args ...any) {
		mu.Lock()
		defer mu.Unlock()
		lines = append(lines, fmt.Sprintf(format, args...))
	}
	plenty := func(string) (uint64, error) { return minFree, nil }
	return &Builder{CacheDir: dir, Progress: progress, Free: plenty}, func() string {
		mu.Lock()
		defer mu.Unlock()
		return strings.Join(lines, "\n")
	}
}

func TestEnsureBuildsOnce(t *testing.T) {
	builder, told := newBuilder(t, t.TempDir())
	wanted := []components.Component{small(hello)}
	first, err := builder.Ensure(t.Context(), wanted)
	if err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(first["small"]).CombinedOutput(); err != nil || string(out) != "hello" {
		t.Errorf("the binary says %q (%v)", out, err)
	}
	if !strings.Contains(told(), "small: built in") {
		t.Errorf("no progress was told:\n%s", told())
	}
	again, toldAgain := newBuilder(t, builder.CacheDir)
	second, err := again.Ensure(t.Context(), wanted)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(first, second); diff != "" {
		t.Errorf("binaries (-first,+second):\n%s", diff)
	}
	if toldAgain() != "" {
		t.Errorf("a second call builds again:\n%s", toldAgain())
	}
	leftovers, err := filepath.Glob(filepath.Join(builder.CacheDir, "build-*"))
	if err != nil || len(leftovers) > 0 {
		t.Errorf("left in the cache: %v (%v)", leftovers, err)
	}
}

// TestAnEmptyBinaryIsBuiltAgain: such as is left where the machine went down before all was on its disk.
func TestAnEmptyBinaryIsBuiltAgain(t *testing.T) {
	builder, _ := newBuilder(t, t.TempDir())
	wanted := []components.Component{small(hello)}
	binaries, err := builder.Ensure(t.Context(), wanted)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(binaries["small"], 0); err != nil {
		t.Fatal(err)
	}
	if binaries, err = builder.Ensure(t.Context(), wanted); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(binaries["small"]).CombinedOutput(); err != nil || string(out) != "hello" {
		t.Errorf("the binary says %q (%v)", out, err)
	}
}

func TestABuildOfAnOlderVersionIsNamedByIt(t *testing.T) {
	dir := t.TempDir()
	builder, told := newBuilder(t, dir)
	older := small(hello)
	older.Version = "v1.36.3"
	binaries, err := builder.Ensure(t.Context(), []components.Component{older})
	if err != nil {
		t.Fatal(err)
	}
	if got := binaries["small"]; !strings.HasPrefix(got, filepath.Join(dir, "bin", "small-v1.36.3-")) || filepath.Base(got) != "small" {
		t.Errorf("the binary lies in %s", got)
	}
	if !strings.Contains(told(), "small v1.36.3: built in") {
		t.Errorf("the version was not told:\n%s", told())
	}
}

func TestConcurrentBuildersShareTheWork(t *testing.T) {
	dir := t.TempDir()
	var builds sync.Map
	var wg sync.WaitGroup
	for i := range 3 {
		builder, told := newBuilder(t, dir)
		wg.Go(func() {
			if _, err := builder.Ensure(t.Context(), []components.Component{small(hello)}); err != nil {
				t.Error(err)
			}
			if strings.Contains(told(), "built in") {
				builds.Store(i, true)
			}
		})
	}
	wg.Wait()
	n := 0
	builds.Range(func(any, any) bool { n++; return true })
	if n != 1 {
		t.Errorf("%d of 3 builders built, want 1", n)
	}
}

func TestAFailedBuildSaysWhy(t *testing.T) {
	builder, _ := newBuilder(t, t.TempDir())
	_, err := builder.Ensure(t.Context(), []components.Component{small("package main\n\nfunc main() { nonsense() }\n")})
	if err == nil || !strings.Contains(err.Error(), "building small") || !strings.Contains(err.Error(), "undefined: nonsense") {
		t.Errorf("error %v, want one that names the component and the cause", err)
	}
}

func TestALongBuildGivesSignsOfLife(t *testing.T) {
	builder, told := newBuilder(t, t.TempDir())
	builder.Tick = 10 * time.Millisecond
	if err := builder.runWithProgress(exec.Command("sleep", "0.2"), "[1/1] it"); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(told(), "[1/1] it: still building after") {
		t.Errorf("told:\n%s", told())
	}
}

func TestWithoutGoTheErrorSaysSo(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	builder, _ := newBuilder(t, t.TempDir())
	_, err := builder.Ensure(t.Context(), []components.Component{small(hello)})
	if err == nil || !strings.Contains(err.Error(), "no go command in PATH") {
		t.Errorf("error %v, want one about the missing go command", err)
	}
}

func TestBinaryName(t *testing.T) {
	tests := map[string]struct {
		component components.Component
		want      string
	}{
		"the last element":               {components.Component{Package: "k8s.io/kubernetes/cmd/kubelet"}, "kubelet"},
		"not a major version":            {components.Component{Package: "go.etcd.io/etcd/server/v3"}, "server"},
		"a name that starts with v":      {components.Component{Package: "example.com/v"}, "v"},
		"the module of a source at hand": {components.Component{Package: ".", Pin: "pause", Source: "x"}, "pause"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := binaryName(tc.component); got != tc.want {
				t.Errorf("binaryName = %q, want %q", got, tc.want)
			}
		})
	}
}

func TestByPinBuildsTogetherWhatSharesAPin(t *testing.T) {
	var got [][]string
	for _, group := range byPin(slices.Concat(components.ControlPlane(components.Newest()), components.SimulatedNodes(), components.RealNode())) {
		got = append(got, names(group))
	}
	want := [][]string{
		{"etcd"},
		{"kube-apiserver", "kube-controller-manager", "kubectl", "kubelet"},
		{"kwok"},
		{"containerd", "containerd-shim-runc-v2", "ctr"},
		{"runc"},
		{"bridge", "loopback", "host-local"},
		{"coredns"},
		{"pause"},
		{"runc-unconfined"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("groups (-want,+got):\n%s", diff)
	}
}

func TestDefaultCacheDir(t *testing.T) {
	tests := map[string]struct {
		env     map[string]string
		want    string
		wantErr bool
	}{
		"the variable of lockstep-local wins": {map[string]string{"LOCKSTEP_CACHE_DIR": "/l", "XDG_CACHE_HOME": "/x", "HOME": "/h"}, "/l", false},
		"then that of the desktop":            {map[string]string{"XDG_CACHE_HOME": "/x", "HOME": "/h"}, "/x/lockstep-local", false},
		"then the home":                       {map[string]string{"HOME": "/h"}, "/h/.cache/lockstep-local", false},
		"without any there is none":           {nil, "", true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			for _, variable := range []string{"LOCKSTEP_CACHE_DIR", "XDG_CACHE_HOME", "HOME"} {
				t.Setenv(variable, tc.env[variable])
				if tc.env[variable] == "" {
					os.Unsetenv(variable)
				}
			}
			got, err := DefaultCacheDir()
			if got != tc.want || (err != nil) != tc.wantErr {
				t.Errorf("DefaultCacheDir = %q, %v; want %q, error: %v", got, err, tc.want, tc.wantErr)
			}
		})
	}
}

func TestABuildThatWouldFillTheDiskIsNotBegun(t *testing.T) {
	builder, _ := newBuilder(t, t.TempDir())
	builder.Free = func(string) (uint64, error) { return minFree - 1<<30, nil }
	_, err := builder.Ensure(t.Context(), []components.Component{{Name: "kwok", Pin: "kwok", Package: "sigs.k8s.io/kwok/cmd/kwok"}})
	if err == nil || !strings.Contains(err.Error(), "has 6.0 GiB free, and building the components takes up to 7 GiB") {
		t.Errorf("the build ends with %v", err)
	}
}

// TestModulesOfTheNextPartsComeWhileOneIsCompiled: they are downloaded beside it, and a download that
// fails, as without a network, leaves it to the build to say so.
func TestModulesOfTheNextPartsComeWhileOneIsCompiled(t *testing.T) {
	dir, calls := t.TempDir(), filepath.Join(t.TempDir(), "calls")
	// A go command that writes down how it is called, and ends a first build when the modules of the next
	// one have been asked for.
	script := fmt.Sprintf(`#!/bin/sh
case "$1" in
env) echo go1.26.8; exit ;;
list) echo list "$3" >> %[1]s; exit 1 ;;
esac
while [ "${2}" = -o ] && ! grep -q list %[1]s 2> /dev/null; do sleep 0.01; done
for package; do :; done
echo build "$package" >> %[1]s
mkdir -p "$3"
echo built > "$3/$(basename "$package")"
`, calls)
	tools := t.TempDir()
	if err := os.WriteFile(filepath.Join(tools, "go"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", tools+":"+os.Getenv("PATH"))
	builder, _ := newBuilder(t, dir)
	_, err := builder.Ensure(t.Context(), []components.Component{
		{Name: "kwok", Pin: "kwok", Package: "sigs.k8s.io/kwok/cmd/kwok"},
		{Name: "bridge", Pin: "cni", Package: "example.com/bridge"},
	})
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(calls)
	if err != nil {
		t.Fatal(err)
	}
	want := "list example.com/bridge\nbuild sigs.k8s.io/kwok/cmd/kwok\nbuild example.com/bridge\n"
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("calls of go (-want,+got):\n%s", diff)
	}
	leftovers, err := filepath.Glob(filepath.Join(dir, "build-*"))
	if err != nil || len(leftovers) > 0 {
		t.Errorf("left in the cache: %v (%v)", leftovers, err)
	}
}
