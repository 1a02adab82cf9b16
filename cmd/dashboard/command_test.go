// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"
	"time"
)

// TestAnAnswerAboutAVisitorIsRememberedForTenSeconds, whether it is about who he is or about what he may.
func TestAnAnswerAboutAVisitorIsRememberedForTenSeconds(t *testing.T) {
	f := newFlags()
	for what, got := range map[string]time.Duration{
		"who he is": f.authentication.CacheTTL, "what he may": f.authorization.AllowCacheTTL, "what he may not": f.authorization.DenyCacheTTL,
	} {
		if got != 10*time.Second {
			t.Errorf("%s is remembered for %v", what, got)
		}
	}
}
