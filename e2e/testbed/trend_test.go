// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package testbed

import (
	"math"
	"testing"
)

func TestATrendIsTheLineThroughTheFigures(t *testing.T) {
	for name, tc := range map[string]struct {
		figures    []float64
		want       Trend
		wantGrowth float64
	}{
		"what stays is flat":               {[]float64{7, 7, 7}, Trend{7, 7}, 0},
		"what grows evenly":                {[]float64{10, 11, 12}, Trend{10, 12}, 0.2},
		"what shrinks":                     {[]float64{20, 15, 10}, Trend{20, 10}, -0.5},
		"ups and downs even out":           {[]float64{1, 3, 1, 3, 1}, Trend{1.8, 1.8}, 0},
		"one figure has no trend":          {[]float64{5}, Trend{5, 5}, 0},
		"no figures":                       {nil, Trend{}, 0},
		"what was nothing grows by itself": {[]float64{0, 1, 2}, Trend{0, 2}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			got := TrendOf(tc.figures)
			for what, pair := range map[string][2]float64{
				"begins": {got.From, tc.want.From}, "ends": {got.To, tc.want.To}, "grows by": {got.Growth(), tc.wantGrowth},
			} {
				if math.Abs(pair[0]-pair[1]) > 1e-9 {
					t.Errorf("it %s %v, want %v", what, pair[0], pair[1])
				}
			}
		})
	}
}
