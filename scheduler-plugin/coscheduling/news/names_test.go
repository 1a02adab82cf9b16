// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package news

import (
	"strings"
	"testing"

	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
)

// TestAGroupThatNoPodCanNameIsToldSo, once.
func TestAGroupThatNoPodCanNameIsToldSo(t *testing.T) {
	named := func(d dialect.Dialect, length int) func(*Gang) {
		return func(g *Gang) {
			g.Key = dialect.Key{Dialect: d, Namespace: "ns", Name: strings.Repeat("x", length)}
			g.Group.Key = g.Key
		}
	}
	tests := map[string]struct {
		change []func(*Gang)
		told   bool
	}{
		"63 characters of scheduler-plugins":   {[]func(*Gang){named(dialect.SchedulerPlugins, 63)}, false},
		"64 characters of scheduler-plugins":   {[]func(*Gang){named(dialect.SchedulerPlugins, 64)}, true},
		"64 characters of Lockstep's":          {[]func(*Gang){named(dialect.Own, 64)}, true},
		"64 characters, of which it was told":  {[]func(*Gang){named(dialect.Own, 64), func(g *Gang) { g.Record.ToldName = true }}, false},
		"64 characters, by an annotation":      {[]func(*Gang){named(dialect.Volcano, 64)}, false},
		"64 characters of a group that is not": {[]func(*Gang){named(dialect.Own, 64), groupless}, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			g := gangOf(tc.change...)
			if got := g.Naming(); (got != "") != tc.told || tc.told && !strings.Contains(got, "63 characters, and its name has 64") {
				t.Errorf("it is told %q", got)
			}
		})
	}
}
