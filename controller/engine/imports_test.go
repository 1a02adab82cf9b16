// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"slices"
	"strings"
	"testing"

	"github.com/lockstep-k8s/lockstep/internal/testing/imports"
)

// TestTheEngineKnowsNoCore holds that what is special to a kind of owner is in its core.
func TestTheEngineKnowsNoCore(t *testing.T) {
	const module = "github.com/lockstep-k8s/lockstep/"
	allowed := []string{
		"controller/engine/plan", "controller/pacing",
		"internal/controlled", "internal/fair", "internal/informing", "internal/podend", "internal/text", "internal/tombstone", "internal/unknownfields",
	}
	for _, pkg := range imports.Of(t) {
		if own, ok := strings.CutPrefix(pkg, module); ok && !slices.Contains(allowed, own) {
			t.Errorf("the engine imports %s", own)
		}
	}
}
