// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"math"
	"strings"
	"testing"

	"github.com/lockstep-k8s/lockstep/internal/replay/figures"
)

func TestThePageShowsWhatTheTableShowsAndNeedsNothingElse(t *testing.T) {
	all := []figures.Figures{
		{Policy: "greedy", SOR: 0.963, Occupied: []float64{0, 0.5, 1}, Classes: []figures.Class{{Name: "> 16", Jobs: 661, P99: 7200, Max: figures.Wait(math.Inf(1))}}},
		{Policy: "easy<true>", SOR: 0.977, Classes: []figures.Class{{Name: "> 16", Jobs: 661, P99: 3600, Max: 3600}}},
	}
	var b strings.Builder
	if err := Write(&b, "84 nodes", all); err != nil {
		t.Fatal(err)
	}
	got := b.String()
	for _, want := range []string{"<title>84 nodes</title>", "96.3 %", "97.7 %", "easy&lt;true&gt;", "Size &gt; 16: 661 jobs", "2h0m", "never",
		`points="0.0,160.0 360.0,80.0 720.0,0.0 "`, `<rect width="210"`} {
		if !strings.Contains(got, want) {
			t.Errorf("the page lacks %q:\n%s", want, got)
		}
	}
	for _, needs := range []string{"<script", "http:", "https:", "<link", "<img"} {
		if strings.Contains(got, needs) {
			t.Errorf("the page has %q, and is to need nothing else", needs)
		}
	}
}
