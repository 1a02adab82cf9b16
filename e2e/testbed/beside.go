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
// scheduler of another kind. The first of these tests starts the cluster, so that a run of other tests does without it.
// Beside is an argument of Main, which stops the cluster.
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

// Start starts the cluster in the background, unless a test has done so before.
func (b *Beside) Start() { go b.once.Do(b.start) }

// Cluster returns the cluster when it is ready, and starts it unless a test has done so before.
func (b *Beside) Cluster(t testing.TB) *Cluster {
	t.Helper()
	b.once.Do(b.start)
	if b.err != nil {
		t.Fatal(b.err)
	}
	return b.cluster
}

func (b *Beside) start() {
	o := b.Options
	o.KubernetesVersion = KubernetesVersion()
	if b.cluster, b.down, b.err = up(b.ctx, o); b.err == nil {
		b.err = b.Use(b.ctx, b.cluster)
	}
}

// stop waits until the namespaces of all tests are gone, and stops the cluster if it was started.
func (b *Beside) stop() error {
	b.once.Do(func() {}) // It may be starting.
	if b.down == nil {
		return nil
	}
	return errors.Join(b.cluster.waitNamespacesGone(b.ctx), b.down())
}
