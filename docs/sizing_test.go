// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"regexp"
	"strings"
	"testing"
)

// figure finds the figures of a page: a number and its unit.
var figure = regexp.MustCompile(`([\d.]*\d) (KiB|MiB|GiB|ms|s|×|%)(?:\W|$)`)

// TestTheSizingGuideHasTheFiguresOfTheBenchmarks, and those of the manifests where it speaks of them.
func TestTheSizingGuideHasTheFiguresOfTheBenchmarks(t *testing.T) {
	for figure, limit := range map[string]struct{ manifest, says string }{
		"2 GiB": {"../manifests/controller/deployment.yaml", "limits: {memory: 2Gi}"},
		"4 GiB": {"../manifests/scheduler/deployment.yaml", "limits: {memory: 4Gi}"},
	} {
		if !strings.Contains(read(t, limit.manifest), limit.says) {
			t.Errorf("the page says that the manifests allow %s, and %s does not", figure, limit.manifest)
		}
	}
	notMeasured := map[string]string{
		"2 GiB": "of the manifests", "4 GiB": "of the manifests",
		"512 MiB": "advice", "1.5 MiB": "etcd's limit", "700 KiB": "a constant of the code",
	}
	measured := read(t, "benchmarks.md")
	found := figure.FindAllStringSubmatch(read(t, "sizing.md"), -1)
	if len(found) < 15 {
		t.Fatalf("the page has %d figures", len(found))
	}
	for _, f := range found {
		if figure := f[1] + " " + f[2]; notMeasured[figure] == "" && !regexp.MustCompile(`(?:^|[^\d.])`+regexp.QuoteMeta(f[1])+`(?:[^\d.]|$)`).MatchString(measured) {
			t.Errorf("benchmarks.md has no %s", figure)
		}
	}
}
