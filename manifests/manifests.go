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
// It also holds volcano/*.yaml: the CRDs of Volcano's kinds, which have an underscore in their
// names, and what the controller may do with them. They are created only where these Jobs are
// switched on, and the CRDs only if they are absent: they may be Volcano's own. The CRDs of
// Kubeflow's kinds in kubeflow/*.yaml are for nobody yet: no program runs these jobs.
//
// In dialects/*.yaml is what the scheduler may do with the PodGroups of other projects. The CRDs of
// those are theirs to install.
//
//go:embed crds/*.yaml rbac/*.yaml volcano/*.yaml kubeflow/*.yaml dialects/*.yaml
var FS embed.FS
