// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package upstream has the CustomResourceDefinitions of other projects, for clusters in which Lockstep is tested and
// measured. Lockstep does not ship these CRDs: users install them from their projects.
package upstream

import _ "embed"

// SchedulerPlugins is the manifest of the PodGroup of scheduler-plugins.
//
//go:embed scheduler-plugins.yaml
var SchedulerPlugins string

// Volcano is the manifest of the PodGroup of Volcano.
//
//go:embed volcano.yaml
var Volcano string
