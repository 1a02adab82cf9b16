// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build integration

// Package integration tests lockstep-local as its users see it: by its command line, on real
// clusters. The first run builds the components, which takes minutes.
package integration

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/lockstep-k8s/lockstep/localcluster/cluster"
	"github.com/lockstep-k8s/lockstep/localcluster/realnode"
	"github.com/lockstep-k8s/lockstep/localcluster/supervisor"
)

// program is the lockstep-local under test.
var program string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "lockstep-local")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	program = filepath.Join(dir, "lockstep-local")
	build := exec.Command("go", "build", "-o", program, "../cmd/lockstep-local")
	build.Stdout, build.Stderr = os.Stdout, os.Stderr
	if err := build.Run(); err != nil {
		fmt.Fprintf(os.Stderr, "building lockstep-local: %v\n", err)
		os.Exit(1)
	}
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

// local is one cluster of a test.
type local struct {
	t      *testing.T
	layout cluster.Layout
	client kubernetes.Interface
}

// up starts a cluster in a directory of its own, and takes it down when the test ends.
func up(t *testing.T, args ...string) *local {
	t.Helper()
	c := &local{t: t, layout: cluster.Layout{Dir: shortDir(t)}}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("end of the supervisor's log:\n%s", c.run("logs", "supervisor", "--dir", c.layout.Dir))
		}
		c.run("down", "--dir", c.layout.Dir)
	})
	c.mustRun(append([]string{"up", "--dir", c.layout.Dir, "--with", "none"}, args...)...)
	config, err := clientcmd.BuildConfigFromFlags("", c.layout.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	config.QPS = -1
	if c.client, err = kubernetes.NewForConfig(config); err != nil {
		t.Fatal(err)
	}
	return c
}

// shortDir is a directory with a path short enough for sockets in it. It does not exist yet.
func shortDir(t *testing.T) string {
	t.Helper()
	parent, err := os.MkdirTemp("", "ll")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(parent) })
	return filepath.Join(parent, "c")
}

// run runs lockstep-local and returns what it writes, and a last line if it fails.
func (c *local) run(args ...string) string {
	out, err := exec.Command(program, args...).CombinedOutput()
	if err != nil {
		return fmt.Sprintf("%s%v", out, err)
	}
	return string(out)
}

func (c *local) mustRun(args ...string) string {
	c.t.Helper()
	out, err := exec.Command(program, args...).CombinedOutput()
	if err != nil {
		c.t.Fatalf("lockstep-local %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

func (c *local) supervisorPID() int {
	c.t.Helper()
	state, err := supervisor.ReadState(c.layout)
	if err != nil {
		c.t.Fatal(err)
	}
	return state.PID
}

func (c *local) create(pod *corev1.Pod) {
	c.t.Helper()
	if _, err := c.client.CoreV1().Pods(metav1.NamespaceDefault).Create(c.t.Context(), pod, metav1.CreateOptions{}); err != nil {
		c.t.Fatal(err)
	}
}

// waitPod waits until a Pod of the default namespace is as wanted, and returns it.
func (c *local) waitPod(name, what string, wanted func(*corev1.Pod) bool) *corev1.Pod {
	c.t.Helper()
	var pod *corev1.Pod
	eventually(c.t, "Pod "+name+" "+what, func(ctx context.Context) (bool, error) {
		var err error
		pod, err = c.client.CoreV1().Pods(metav1.NamespaceDefault).Get(ctx, name, metav1.GetOptions{})
		return err == nil && wanted(pod), err
	})
	return pod
}

// expectNothingLeft fails the test unless every process that names the directory is gone, and
// what a real node has outside it.
func (c *local) expectNothingLeft() {
	c.t.Helper()
	var left string
	eventually(c.t, "nothing is left of "+c.layout.Dir, func(context.Context) (bool, error) {
		left = leftovers(c.t, c.layout.Dir)
		if left != "" {
			return false, nil
		}
		return true, nil
	})
}

// leftovers names the first trace of a cluster outside its directory, or is empty.
func leftovers(t *testing.T, dir string) string {
	t.Helper()
	processes, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range processes {
		// The slash keeps one directory from being taken for the parent of another.
		if line, err := os.ReadFile(path); err == nil && strings.Contains(string(line), dir+"/") {
			return fmt.Sprintf("process %s", strings.ReplaceAll(string(line), "\x00", " "))
		}
	}
	aliases, err := filepath.Glob("/sys/class/net/*/ifalias")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range aliases {
		if alias, err := os.ReadFile(path); err == nil && strings.HasSuffix(strings.TrimSpace(string(alias)), dir) {
			return "network interface " + path
		}
	}
	// A cgroup cannot be removed while a container is in it, so this covers containers too.
	cgroup := realnode.CgroupName(dir)
	for _, pattern := range []string{"/sys/fs/cgroup/" + cgroup, "/sys/fs/cgroup/*/" + cgroup} {
		if found, _ := filepath.Glob(pattern); len(found) > 0 {
			return "cgroup " + found[0]
		}
	}
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(mounts), dir) {
		return "a mount"
	}
	return ""
}

// eventually waits up to a minute for a condition.
func eventually(t *testing.T, what string, condition wait.ConditionWithContextFunc) {
	t.Helper()
	if err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, time.Minute, true, condition); err != nil {
		t.Fatalf("waiting until %s: %v", what, err)
	}
}

func kill(t *testing.T, pid int) {
	t.Helper()
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
}

func notExists(path string) bool {
	_, err := os.Stat(path)
	return errors.Is(err, os.ErrNotExist)
}
