//go:build e2e

// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"testing"

	"github.com/lockstep-k8s/lockstep/internal/testing/apiserver/conformance"
)

// TestTheAPIServerDoesWhatTestsBelieve holds the real one to the cases that the one
// in memory is held to.
func TestTheAPIServerDoesWhatTestsBelieve(t *testing.T) {
	conformance.Run(t, func(t *testing.T, test conformance.Test) {
		test(t, cluster.Config, cluster.Namespace(t))
	})
}
