//go:build e2e

// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/lockstep-k8s/lockstep/e2e/testbed"
	"github.com/lockstep-k8s/lockstep/internal/testing/hangup"
)

// demo runs the demo in the cluster and returns what it prints. When ctx ends it is sent a signal.
func demo(ctx context.Context, t *testing.T, program string, signal os.Signal) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(ctx, program, "-kubeconfig", cluster.Kubeconfig, "-image-name", "lockstep.dev/training:dev", "-dir", t.TempDir())
	cmd.Dir = repository // the job is a file of the repository
	cmd.Env = append(os.Environ(), "PATH="+cluster.Bin()+":"+os.Getenv("PATH"))
	cmd.Cancel = func() error { return cmd.Process.Signal(signal) }
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// endedBy runs the demo until its first job is there, and sends it a signal. It returns what it prints.
func endedBy(t *testing.T, program string, signal os.Signal) string {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	watching := make(chan struct{})
	go func() {
		defer close(watching)
		// It ends with its context.
		_ = wait.PollUntilContextCancel(ctx, 20*time.Millisecond, true, func(ctx context.Context) (bool, error) {
			_, err := cluster.Lockstep.FrameworkcontrollerV1().Frameworks("lockstep-demo").Get(ctx, "training-a", metav1.GetOptions{})
			return err == nil, nil
		})
		cancel()
	}()
	out, err := demo(ctx, t, program, signal)
	if err == nil {
		t.Errorf("the demo got %s and says that it went well:\n%s", signal, out)
	}
	cancel()
	<-watching
	return out
}

// programs are the command lines of what the demo has started and that runs.
func programs() ([]string, error) {
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	var lines []string
	for _, file := range files {
		line, err := os.ReadFile(file)
		if err != nil {
			continue // It has just ended.
		}
		if strings.HasPrefix(string(line), "lockstep-") && strings.Contains(string(line), "--kubeconfig="+cluster.Kubeconfig+"\x00") {
			lines = append(lines, strings.ReplaceAll(string(line), "\x00", " "))
		}
	}
	return lines, err
}

// nothingIsLeft holds that the demo has taken away what it had brought.
func nothingIsLeft(t *testing.T) {
	t.Helper()
	if _, err := cluster.Kube.CoreV1().Namespaces().Get(t.Context(), "lockstep-demo", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the namespace of the demo is left (%v)", err)
	}
	nodes, err := cluster.Kube.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, node := range nodes.Items {
		if amount, ok := node.Status.Capacity["demo.lockstep.dev/seat"]; ok {
			t.Errorf("node %s has %s seats left", node.Name, amount.String())
		}
	}
	if _, err := cluster.Lockstep.FrameworkcontrollerV1().Frameworks("").List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Errorf("the kinds that were there before are gone: %v", err)
	}
}

func TestTheDemoIsAGuest(t *testing.T) {
	hangup.Heed(t)
	program := filepath.Join(t.TempDir(), "lockstep-demo")
	if out, err := exec.Command("go", "build", "-o", program, "../../hack/demo").CombinedOutput(); err != nil {
		t.Fatalf("building the demo: %v\n%s", err, out)
	}
	for what, signal := range map[string]os.Signal{"it is interrupted": os.Interrupt, "its terminal closes": syscall.SIGHUP} {
		t.Run("that leaves nothing behind when "+what, func(t *testing.T) {
			if out := endedBy(t, program, signal); !strings.Contains(out, "Taking away what the demo has brought") {
				t.Errorf("it does not say what it does last:\n%s", out)
			}
			nothingIsLeft(t)
		})
	}
	t.Run("whose programs end with its namespace after it was killed", func(t *testing.T) {
		endedBy(t, program, os.Kill)
		if err := cluster.DeleteNamespace(t.Context(), "lockstep-demo"); err != nil {
			t.Fatal(err)
		}
		testbed.Eventually(t, "the programs of the demo to be gone", func(context.Context) (bool, string, error) {
			left, err := programs()
			return len(left) == 0, strings.Join(left, "\n"), err
		})
	})
	t.Run("that then runs to its end, and leaves nothing behind", func(t *testing.T) {
		out, err := demo(t.Context(), t, program, os.Kill)
		if err != nil || !strings.Contains(out, "waited whole and said why") {
			t.Errorf("the demo: %v\n%s", err, out)
		}
		nothingIsLeft(t)
	})
	t.Run("that goes where Lockstep runs already", func(t *testing.T) {
		holder, seconds := "somebody", int32(3600)
		lease := &coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Name: "lockstep-controller"},
			Spec:       coordinationv1.LeaseSpec{HolderIdentity: &holder, LeaseDurationSeconds: &seconds, RenewTime: &metav1.MicroTime{Time: time.Now()}},
		}
		if _, err := cluster.Kube.CoordinationV1().Leases("default").Create(t.Context(), lease, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		out, err := demo(t.Context(), t, program, os.Kill)
		if err == nil || !strings.Contains(out, "the lease default/lockstep-controller is held") {
			t.Errorf("the demo: %v\n%s", err, out)
		}
		nothingIsLeft(t)
	})
}
