// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package manifests holds the objects that a cluster needs before Lockstep can
// run in it: the CRDs, which are generated from apis/, and the namespace, the
// service accounts and their roles.
//
// Each folder but overlays and chart is a base of Kustomize with one part of Lockstep. The overlays
// put bases together, each for one way to install. The chart is for Helm; it reads the bases.
package manifests

import "embed"

// FS holds crds/*.yaml, namespace/namespace.yaml, controller/rbac.yaml, scheduler/rbac.yaml, and in
// rbac/*.yaml the roles of those who use Lockstep, each file one or more YAML documents. CRDs are to be applied first, then the namespace.
//
// It also holds volcano/*.yaml and kubeflow/*.yaml: the CRDs of Volcano's and of Kubeflow's
// kinds, which have an underscore in their names, and what the controller may do with them.
// They are created only where these jobs are switched on, and the CRDs only if they are absent:
// they may be those of Volcano, or of the training operator.
//
// In podgroup-apis/*.yaml is what the scheduler may do with the PodGroups of other projects. The CRDs of
// those are theirs to install. In kueue/*.yaml is what the controller may do with Kueue's.
//
// What the web page may do is in dashboard/rbac.yaml.
//
// Kustomizations and Deployments are not in it.
//
//go:embed crds/*_*.yaml namespace/namespace.yaml controller/rbac.yaml scheduler/rbac.yaml rbac/users.yaml rbac/metrics-reader.yaml
//go:embed volcano/*_*.yaml volcano/rbac.yaml kubeflow/*_*.yaml kubeflow/rbac.yaml kueue/rbac.yaml secrets/rbac.yaml
//go:embed dashboard/rbac.yaml
//go:embed podgroup-apis/native.yaml podgroup-apis/scheduler-plugins.yaml podgroup-apis/volcano.yaml
var FS embed.FS
