// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package testbed

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ReaderOfMetrics makes an account in a namespace that has the role for metrics until the test ends, and
// returns a token of it.
func (c *Cluster) ReaderOfMetrics(t testing.TB, namespace string) string {
	t.Helper()
	reader, err := c.Kube.CoreV1().ServiceAccounts(namespace).Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "reader"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if out, err := c.Kubectl(t.Context(), "create", "clusterrolebinding", namespace, "--clusterrole=lockstep-metrics-reader", "--serviceaccount="+namespace+":"+reader.Name); err != nil {
		t.Fatal(err, out)
	}
	t.Cleanup(func() {
		if err := c.Kube.RbacV1().ClusterRoleBindings().Delete(context.WithoutCancel(t.Context()), namespace, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	return c.Token(t, namespace, reader.Name)
}

// Metric is the value of one series of the metrics of a program of Lockstep's, such as
// lockstep_controller_panics_total or name{kind="a",result="b"}; 0 if it has none. The token is that of
// a reader, empty where none is asked for.
func Metric(t testing.TB, url, token, series string) int {
	t.Helper()
	status, metrics := MustAsk(t, url+"/metrics", token)
	if status != http.StatusOK {
		t.Fatalf("%s/metrics answers with %d: %.200s", url, status, metrics)
	}
	for line := range strings.Lines(metrics) {
		text, found := strings.CutPrefix(strings.TrimSpace(line), series+" ")
		if !found {
			continue
		}
		value, err := strconv.ParseFloat(text, 64)
		if err != nil {
			t.Fatalf("reading the metric %s: %v", series, err)
		}
		return int(value)
	}
	return 0
}
