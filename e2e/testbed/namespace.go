// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package testbed

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kubeflowv1 "github.com/lockstep-k8s/lockstep/apis/kubeflow/v1"
	kubeflowv2beta1 "github.com/lockstep-k8s/lockstep/apis/kubeflow/v2beta1"
)

// Namespace makes a namespace for one test. When the test ends, it says what was
// in it if the test failed, deletes it, and waits until no Framework and no Pod of it is
// left, so that the next test finds the nodes free. That the rest of it goes, too, is
// waited for when all tests have ended, as Kubernetes takes its time: see
// waitNamespacesGone.
func (c *Cluster) Namespace(t testing.TB) string {
	t.Helper()
	return c.LabelledNamespace(t, nil)
}

// LabelledNamespace is Namespace with labels. Whoever sees the namespace sees the labels.
func (c *Cluster) LabelledNamespace(t testing.TB, labels map[string]string) string {
	t.Helper()
	namespace, err := c.CreateNamespace(t.Context(), metav1.ObjectMeta{GenerateName: "e2e-", Labels: labels})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context()) // it has ended
		if t.Failed() {
			t.Log(c.dump(ctx, namespace))
		}
		c.leaving.add(leavingNamespace{namespace, t.Name()})
		deleting, cancel := context.WithTimeout(ctx, 2*Patience)
		defer cancel()
		if err := c.ClearNamespace(deleting, namespace); err != nil {
			t.Errorf("%v\n%s", err, c.dump(ctx, namespace))
		}
	})
	return namespace
}

// leavingNamespace is a namespace that is being deleted, and the test that had it.
type leavingNamespace struct{ name, test string }

// leavingNamespaces are those of tests that have ended. Tests end beside each other.
type leavingNamespaces struct {
	mu  sync.Mutex
	all []leavingNamespace
}

func (l *leavingNamespaces) add(namespace leavingNamespace) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, namespace)
}

// waitNamespacesGone waits until the namespaces of all tests that have ended are gone. The
// error says what is left of those that stay.
func (c *Cluster) waitNamespacesGone(ctx context.Context) error {
	c.leaving.mu.Lock()
	defer c.leaving.mu.Unlock()
	waiting, cancel := context.WithTimeoutCause(ctx, Patience, fmt.Errorf("timed out after %v", Patience))
	defer cancel()
	var errs []error
	for _, namespace := range c.leaving.all {
		if err := c.WaitNamespaceGone(waiting, namespace.name); err != nil {
			errs = append(errs, fmt.Errorf("after %s: %w\n%s", namespace.test, err, c.dump(ctx, namespace.name)))
		}
	}
	return errors.Join(errs...)
}

// dump says what is in a namespace, and what Lockstep's programs logged last.
func (c *Cluster) dump(ctx context.Context, namespace string) string {
	var b strings.Builder
	for _, args := range [][]string{
		{"get", "frameworks,podgroups,pods,configmaps", "-n", namespace, "-o", "wide"},
		{"get", "frameworks,podgroups", "-n", namespace, "-o", "yaml"},
		// Not every cluster has them.
		{"get", "jobs.batch.volcano.sh,commands.bus.volcano.sh", "-n", namespace, "-o", "yaml", "--ignore-not-found"},
		{"get", strings.Join(append(kubeflowv1.Plurals(), kubeflowv2beta1.MPIJobPlural), "."+kubeflowv1.GroupName+",") + "." + kubeflowv1.GroupName, "-n", namespace, "-o", "yaml", "--ignore-not-found"},
		{"get", "events", "-n", namespace, "--sort-by=.lastTimestamp"},
	} {
		out, err := c.Kubectl(ctx, args...)
		fmt.Fprintf(&b, "$ kubectl %s\n%s", strings.Join(args, " "), clip(out, 8000))
		if err != nil {
			fmt.Fprintln(&b, err)
		}
	}
	for _, component := range []string{"controller", "scheduler"} {
		log := c.LogTail(component, 8000)
		if component == "controller" && c.controller != nil {
			log = c.controller.LogTail(8000)
		}
		if component == "scheduler" && c.scheduler != nil {
			log = c.scheduler.LogTail(8000)
		}
		fmt.Fprintf(&b, "log of %s:\n%s\n", component, log)
	}
	return b.String()
}

func clip(s string, n int) string {
	if len(s) > n {
		return s[:n] + "\n…\n"
	}
	return s
}
