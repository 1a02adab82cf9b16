// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package manifests holds the objects that a cluster needs before Lockstep can
// run in it: the CRDs, which are generated from apis/, and the namespace, the
// service accounts and their roles.
package manifests

import "embed"

// FS holds crds/*.yaml and rbac/*.yaml, each file one or more YAML documents.
// Files are to be applied in the order of their names, crds first.
//
// It also holds volcano/*.yaml and kubeflow/*.yaml: the CRDs of Volcano's and of Kubeflow's
// kinds, which have an underscore in their names, and what the controller may do with them.
// They are created only where these jobs are switched on, and the CRDs only if they are absent:
// they may be those of Volcano, or of the training operator.
//
// In dialects/*.yaml is what the scheduler may do with the PodGroups of other projects. The CRDs of
// those are theirs to install. In kueue/*.yaml is what the controller may do with Kueue's.
//
//go:embed crds/*.yaml rbac/*.yaml volcano/*.yaml kubeflow/*.yaml dialects/*.yaml kueue/*.yaml
var FS embed.FS
