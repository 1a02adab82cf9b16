//go:build verify

// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"io/fs"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// quoted finds what a cell of a table quotes.
var quoted = regexp.MustCompile("`([^`]+)`")

// TestTroubleshootingQuotesWhatTheProgramsSay looks up all symptoms that are quoted in the code, and wants
// each row to say how to learn more.
func TestTroubleshootingQuotesWhatTheProgramsSay(t *testing.T) {
	said := sources(t)
	symptoms := 0
	for line := range strings.Lines(read(t, "troubleshooting.md")) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), " | ")
		if !strings.HasPrefix(line, "| ") || strings.Contains(line, "you see") {
			continue
		}
		if len(cells) != 3 || strings.TrimSpace(cells[1]) == "" {
			t.Errorf("want what is seen, what tells more, and what to do: %s", line)
			continue
		}
		for _, symptom := range quoted.FindAllStringSubmatch(cells[0], -1) {
			symptoms++
			if !strings.Contains(said, symptom[1]) {
				t.Errorf("no program says %q", symptom[1])
			}
		}
	}
	if symptoms < 25 {
		t.Errorf("only %d quoted symptoms were found", symptoms)
	}
}

// sources is the text of all code but tests.
func sources(t *testing.T) string {
	t.Helper()
	var all strings.Builder
	for _, folder := range []string{"apis", "cmd", "controller", "internal", "manifests", "podgroup", "scheduler-plugin"} {
		if err := filepath.WalkDir(filepath.Join("..", folder), func(path string, _ fs.DirEntry, err error) error {
			isCode := strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go") || strings.HasSuffix(path, ".yaml")
			if err == nil && isCode {
				all.WriteString(read(t, path))
			}
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
	return all.String()
}
