// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package localenv

import "context"

// InstallKubeflowJobs has the API server serve Kubeflow's TFJobs and PyTorchJobs, and gives
// lockstep-controller the rights that it needs for them. It waits until both are served, for
// as long as kubectl waits by itself.
func (c *Cluster) InstallKubeflowJobs(ctx context.Context) error {
	return c.installKinds(ctx, "kubeflow", "crd/tfjobs.kubeflow.org", "crd/pytorchjobs.kubeflow.org")
}

// WithKubeflowJobs are options of a controller that runs Kubeflow's jobs. settings are more of
// them, such as "takeJobs: All", in YAML with commas; they may be empty.
func WithKubeflowJobs(settings string) ControllerOptions {
	return ControllerOptions{Config: "kubeflowJobs: {enabled: true, " + settings + "}\n"}
}
