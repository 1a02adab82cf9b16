// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package testbed

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
)

// Namespace makes a namespace for one test. When the test ends, it says what was
// in it if the test failed, deletes it, and waits until no Pod of it is left, so
// that the next test finds the nodes free.
func (c *Cluster) Namespace(t testing.TB) string {
	t.Helper()
	namespace, err := c.Kube.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "e2e-"},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx := context.Background()
		if t.Failed() {
			t.Log(c.dump(ctx, namespace.Name))
		}
		c.deleteNamespace(ctx, t, namespace.Name)
	})
	c.waitDefaultServiceAccount(t, namespace.Name)
	return namespace.Name
}

// waitDefaultServiceAccount waits for what every Pod of the namespace needs.
func (c *Cluster) waitDefaultServiceAccount(t testing.TB, namespace string) {
	t.Helper()
	Eventually(t, "the default service account", func(ctx context.Context) (bool, string, error) {
		_, err := c.Kube.CoreV1().ServiceAccounts(namespace).Get(ctx, "default", metav1.GetOptions{})
		return err == nil, "", err
	})
}

func (c *Cluster) deleteNamespace(ctx context.Context, t testing.TB, namespace string) {
	// Frameworks first, and in the foreground: their controller must not make
	// new Pods while the namespace empties.
	foreground := metav1.DeletePropagationForeground
	err := c.Lockstep.FrameworkcontrollerV1().Frameworks(namespace).DeleteCollection(ctx, metav1.DeleteOptions{PropagationPolicy: &foreground}, metav1.ListOptions{})
	if err != nil {
		t.Errorf("deleting Frameworks: %v", err)
	}
	zero := int64(0)
	if err := c.Kube.CoreV1().Pods(namespace).DeleteCollection(ctx, metav1.DeleteOptions{GracePeriodSeconds: &zero}, metav1.ListOptions{}); err != nil {
		t.Errorf("deleting Pods: %v", err)
	}
	if err := c.Kube.CoreV1().Namespaces().Delete(ctx, namespace, metav1.DeleteOptions{}); err != nil {
		t.Errorf("deleting namespace: %v", err)
	}
	err = wait.PollUntilContextTimeout(ctx, poll, patience, true, func(ctx context.Context) (bool, error) {
		if err := c.release(ctx, namespace); err != nil {
			return false, nil // tried again
		}
		_, err := c.Kube.CoreV1().Namespaces().Get(ctx, namespace, metav1.GetOptions{})
		return apierrors.IsNotFound(err), nil
	})
	if err != nil {
		t.Errorf("namespace %s is not gone: %v\n%s", namespace, err, c.dump(ctx, namespace))
	}
}

// dump says what is in a namespace, and what Lockstep's programs logged last.
func (c *Cluster) dump(ctx context.Context, namespace string) string {
	var b strings.Builder
	for _, args := range [][]string{
		{"get", "frameworks,podgroups,pods,configmaps", "-n", namespace, "-o", "wide"},
		{"get", "frameworks,podgroups", "-n", namespace, "-o", "yaml"},
		{"get", "events", "-n", namespace, "--sort-by=.lastTimestamp"},
	} {
		out, err := c.Kubectl(ctx, args...)
		fmt.Fprintf(&b, "$ kubectl %s\n%s", strings.Join(args, " "), clip(out, 8000))
		if err != nil {
			fmt.Fprintln(&b, err)
		}
	}
	for _, component := range []string{"controller", "scheduler"} {
		text, err := os.ReadFile(filepath.Join(c.Dir, "logs", component+".log"))
		fmt.Fprintf(&b, "log of %s:\n%s\n", component, tail(string(text), 8000))
		if err != nil {
			fmt.Fprintln(&b, err)
		}
	}
	return b.String()
}

func clip(s string, n int) string {
	if len(s) > n {
		return s[:n] + "\n…\n"
	}
	return s
}

func tail(s string, n int) string {
	if len(s) > n {
		return "…" + s[len(s)-n:]
	}
	return s
}

func (c *Cluster) kubectlStdin(ctx context.Context, stdin string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, filepath.Join(c.Dir, "bin", "kubectl"), append([]string{"--kubeconfig", c.Kubeconfig}, args...)...)
	cmd.Stdin = bytes.NewBufferString(stdin)
	out, err := cmd.CombinedOutput()
	return string(out), err
}
