// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package testbed

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/lockstep-k8s/lockstep/internal/localenv"
)

// Beside is a cluster that some tests of a package share beside the cluster of Main, because they need an API server or a
// scheduler of another kind. The first test that asks for the cluster starts it: a run without these tests does without
// the cluster. Beside is an argument of Main, which stops the cluster.
type Beside struct {
	Options localenv.Options
	// Use is called with the cluster before any test has it.
	Use func(ctx context.Context, c *Cluster) error

	ctx     context.Context
	once    sync.Once
	cluster *Cluster
	down    func() error
	err     error
}

// Cluster returns the cluster, and starts it if no test has asked for it before.
func (b *Beside) Cluster(t testing.TB) *Cluster {
	t.Helper()
	b.once.Do(func() {
		o := b.Options
		o.KubernetesVersion = KubernetesVersion()
		if b.cluster, b.down, b.err = up(b.ctx, o); b.err == nil {
			b.err = b.Use(b.ctx, b.cluster)
		}
	})
	if b.err != nil {
		t.Fatal(b.err)
	}
	return b.cluster
}

// stop waits until the namespaces of all tests are gone, and stops the cluster if it was started.
func (b *Beside) stop() error {
	if b.down == nil {
		return nil
	}
	return errors.Join(b.cluster.waitNamespacesGone(b.ctx), b.down())
}
