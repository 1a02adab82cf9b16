// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package localenv

import (
	"context"
	"fmt"
	"io/fs"

	"github.com/lockstep-k8s/lockstep/manifests"
)

// installKinds applies the manifests of a folder, and the Role for Secrets, which jobs that use ssh need. installKinds
// waits until the API server serves the kinds, for at most the default timeout of `kubectl wait`. crds are named as
// kubectl names them: crd/name.
func (c *Cluster) installKinds(ctx context.Context, folder string, crds ...string) error {
	files, err := fs.Glob(manifests.FS, folder+"/*.yaml")
	if err != nil {
		return err
	}
	if err := c.ApplyManifests(ctx, append(files, "secrets/rbac.yaml")...); err != nil {
		return err
	}
	if out, err := c.Kubectl(ctx, append([]string{"wait", "--for=condition=Established"}, crds...)...); err != nil {
		return fmt.Errorf("waiting for the kinds of %s: %w: %s", folder, err, out)
	}
	return nil
}

// ApplyManifests applies files of package manifests.
func (c *Cluster) ApplyManifests(ctx context.Context, files ...string) error {
	for _, file := range files {
		manifest, err := manifests.FS.ReadFile(file)
		if err != nil {
			return err
		}
		if out, err := c.KubectlApply(ctx, "default", string(manifest)); err != nil {
			return fmt.Errorf("applying %s: %w: %s", file, err, out)
		}
	}
	return nil
}
