// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package upstream holds CustomResourceDefinitions of other projects, for the clusters in which Lockstep is tested and
// measured. Lockstep does not ship them: users install each from the project that it belongs to.
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
