// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package localenv

import (
	"context"

	kubeflowv1 "github.com/lockstep-k8s/lockstep/apis/kubeflow/v1"
	kubeflowv2beta1 "github.com/lockstep-k8s/lockstep/apis/kubeflow/v2beta1"
)

// InstallKubeflowJobs installs all kinds of Kubeflow's training jobs, and gives lockstep-controller the rights for
// them. InstallKubeflowJobs waits until the API server serves the kinds, for at most the default timeout of `kubectl
// wait`.
func (c *Cluster) InstallKubeflowJobs(ctx context.Context) error {
	var crds []string
	for _, plural := range append(kubeflowv1.Plurals(), kubeflowv2beta1.MPIJobPlural) {
		crds = append(crds, "crd/"+plural+"."+kubeflowv1.GroupName)
	}
	return c.installKinds(ctx, "kubeflow", crds...)
}

// WithKubeflowJobs returns the options of a controller that runs Kubeflow's jobs. settings are further settings of the
// integration, as comma-separated YAML such as "takeJobs: All"; they may be empty.
func WithKubeflowJobs(settings string) ControllerOptions {
	return ControllerOptions{Config: "kubeflowJobs: {enabled: true, " + settings + "}\n"}
}
