// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package testbed

import (
	"context"
	"fmt"

	"github.com/lockstep-k8s/lockstep/internal/localenv"
)

// ApplyOnceServed applies a manifest of a kind that was installed just before. What kubectl discovers has the kind some time
// after its CustomResourceDefinition is established.
func (c *Cluster) ApplyOnceServed(ctx context.Context, namespace, manifest string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, Patience, fmt.Errorf("timed out after %v", Patience))
	defer cancel()
	return localenv.Await(ctx, "kubectl to know the kind", func(ctx context.Context) (bool, string, error) {
		out, err := c.KubectlApply(ctx, namespace, manifest)
		return err == nil, out, err
	})
}
