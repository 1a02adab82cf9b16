// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package monitoring tests the rules and the dashboard of manifests/monitoring with Prometheus' own libraries. It
// is a module of its own, so that Lockstep does not depend on Prometheus.
package monitoring
