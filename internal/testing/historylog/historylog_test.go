// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package historylog

import (
	"os"
	"strings"
	"testing"
)

// TestTheHistoryIsReadAsItsPageSays holds the expression of docs/history.md against that of the tests.
func TestTheHistoryIsReadAsItsPageSays(t *testing.T) {
	page, err := os.ReadFile("../../../docs/history.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(page), "\n"+lineOfHistory.String()+"\n") {
		t.Errorf("docs/history.md has not %s", lineOfHistory)
	}
}
