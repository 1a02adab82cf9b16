//go:build e2e

// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"testing"

	"github.com/lockstep-k8s/lockstep/internal/testing/apiserver/conformance"
)

// TestTheAPIServerDoesWhatTestsBelieve holds the real one to the cases that the one
// in memory is held to. No scheduler runs meanwhile: it would write to their PodGroups.
func TestTheAPIServerDoesWhatTestsBelieve(t *testing.T) {
	cluster.StopScheduler(t)
	conformance.Run(t, func(t *testing.T, test conformance.Test) {
		test(t, cluster.Config, cluster.Namespace(t))
	})
}
