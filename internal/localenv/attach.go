// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package localenv

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/lockstep-k8s/lockstep/internal/statedir"
)

// Attach returns a Cluster for a running cluster, also for one that lockstep-local did not start. Attach uses kubectl
// from PATH. Attach creates dir for the logs of programs that are started beside the cluster, and returns an error if a
// local cluster uses dir. The Cluster has no programs of its own, so do not call Down.
func Attach(dir, kubeconfig string) (*Cluster, error) {
	if err := statedir.Make(dir); err != nil {
		return nil, err
	}
	if err := refuseBesideAnother(dir); err != nil {
		return nil, err
	}
	path, err := filepath.Abs(kubeconfig)
	if err != nil {
		return nil, err
	}
	kubectl, err := exec.LookPath("kubectl")
	if err != nil {
		return nil, fmt.Errorf("kubectl is needed: %w", err)
	}
	c := &Cluster{Dir: dir, Kubeconfig: path}
	if err := os.RemoveAll(c.Bin()); err != nil {
		return nil, err
	}
	for _, folder := range []string{c.Bin(), c.Logs()} {
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return nil, fmt.Errorf("making a folder beside the cluster: %w", err)
		}
	}
	if err := os.Symlink(kubectl, filepath.Join(c.Bin(), "kubectl")); err != nil {
		return nil, err
	}
	return c, c.connect()
}
