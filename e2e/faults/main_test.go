//go:build e2e

// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package faults tests Lockstep behind a proxy that breaks its requests, with leaders that go, and with clocks that
// are off, for `make reliability`. Without -all-faults some of these are tried, shorter.
package faults

import (
	"context"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/lockstep-k8s/lockstep/e2e/testbed"
	"github.com/lockstep-k8s/lockstep/e2e/testbed/faultproxy"
	"github.com/lockstep-k8s/lockstep/internal/localenv"
)

// cluster is what the tests share. TestMain sets it once, before any test.
var cluster *testbed.Cluster

// all has every fault tried, and not only those that are tried each time.
var all = flag.Bool("all-faults", false, "try all faults, for `make reliability`")

func TestMain(m *testing.M) {
	os.Exit(testbed.Main(m, localenv.Options{SimulatedNodes: 3, NodeCPU: "4", With: "none"},
		func(_ context.Context, c *testbed.Cluster) error {
			cluster = c
			return nil
		}))
}

// measured tells a row of one of the tables of docs/reliability.md, where hack/measured.sh finds it.
func measured(t *testing.T, table, cells string) {
	t.Helper()
	t.Logf("measured: %s | %s |", table, cells)
}

// proxyOf starts a proxy for a component, which is gone when the test ends.
func proxyOf(t *testing.T, component string) (proxy *faultproxy.Proxy, kubeconfig string) {
	t.Helper()
	proxy, err := faultproxy.Start(filepath.Join(cluster.Dir, "kubeconfigs", component))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := proxy.Close(); err != nil {
			t.Error(err)
		}
	})
	kubeconfig = filepath.Join(t.TempDir(), "kubeconfig")
	if err := proxy.WriteKubeconfig(kubeconfig); err != nil {
		t.Fatal(err)
	}
	return proxy, kubeconfig
}
