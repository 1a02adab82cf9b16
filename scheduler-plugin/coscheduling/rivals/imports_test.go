// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package rivals

import (
	"testing"

	"github.com/lockstep-k8s/lockstep/internal/testing/imports"
)

// TestWhatKnowsCannotAct: who looks for rivals, and who is told of them, is elsewhere.
func TestWhatKnowsCannotAct(t *testing.T) {
	imports.Only(t,
		"k8s.io/api/coordination/v1",
		"k8s.io/api/core/v1",
		"k8s.io/apimachinery/pkg/apis/meta/v1",
		"k8s.io/apimachinery/pkg/types",
	)
}
