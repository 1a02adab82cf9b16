// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"context"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestAFigureIsHeldToItsBar(t *testing.T) {
	tests := map[string]struct {
		figure  Figure
		holds   bool
		verdict string
		line    string
	}{
		"without a bar":         {Figure{What: "time", Value: 1.25, Unit: "s"}, true, "", "time 1.25 s"},
		"below the most":        {Figure{What: "ratio", Value: 1.2, Unit: "×", Bar: AtMost(1.3)}, true, "ok", "ratio 1.20 × (bar ≤ 1.30 ×: ok)"},
		"the most itself":       {Figure{What: "n", Value: 40, Bar: AtMost(40)}, true, "ok", "n 40 (bar ≤ 40: ok)"},
		"above the most":        {Figure{What: "n", Value: 41, Bar: AtMost(40), Note: "of 3"}, false, "MISS", "n 41 (bar ≤ 40: MISS), of 3"},
		"below the least":       {Figure{What: "n", Value: 7, Bar: Between(8, 12)}, false, "MISS", "n 7 (bar 8 – 12: MISS)"},
		"exactly":               {Figure{What: "n", Value: 0, Bar: Exactly(0)}, true, "ok", "n 0 (bar = 0: ok)"},
		"something for nothing": {Figure{What: "n", Value: 1, Bar: Exactly(0)}, false, "MISS", "n 1 (bar = 0: MISS)"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := tc.figure.Holds(); got != tc.holds {
				t.Errorf("it holds: %t", got)
			}
			if got := tc.figure.Verdict(); got != tc.verdict {
				t.Errorf("the verdict is %q, want %q", got, tc.verdict)
			}
			if got := tc.figure.String(); got != tc.line {
				t.Errorf("it reads %q, want %q", got, tc.line)
			}
		})
	}
}

func TestRun(t *testing.T) {
	reports := func(value float64) func(context.Context, *Bench) error {
		return func(_ context.Context, b *Bench) error {
			b.Report(Figure{What: "n", Value: value, Bar: AtMost(10)})
			b.Draw(Chart{File: "n.svg", Series: []Series{{Name: "a", Points: []Point{{1, 2}, {10, 20}}}}})
			return nil
		}
	}
	fails := func(context.Context, *Bench) error { return errors.New("no cluster") }
	cases := func(a, b func(context.Context, *Bench) error) []Case {
		return []Case{{Name: "x/a", Title: "A", Run: a}, {Name: "x/b", Title: "B", Run: b}}
	}
	tests := map[string]struct {
		cases       []Case
		options     Options
		wantError   string
		wantReports []string
	}{
		"both hold":             {cases: cases(reports(1), reports(10)), options: Options{Cases: ".", Rounds: 1}, wantReports: []string{"A: n", "B: n"}},
		"only one is chosen":    {cases: cases(fails, reports(1)), options: Options{Cases: "b$", Rounds: 1}, wantReports: []string{"B: n"}},
		"one misses":            {cases: cases(reports(11), reports(1)), options: Options{Cases: ".", Rounds: 1}, wantError: "x/a misses its bar", wantReports: []string{"A: n", "B: n"}},
		"one fails":             {cases: cases(fails, reports(1)), options: Options{Cases: ".", Rounds: 1}, wantError: "x/a: no cluster", wantReports: []string{"B: n"}},
		"no case of that name":  {cases: cases(fails, fails), options: Options{Cases: "c", Rounds: 1}, wantError: `-cases "c"`},
		"no regular expression": {cases: cases(fails, fails), options: Options{Cases: "(", Rounds: 1}, wantError: `-cases "("`},
		"no round":              {cases: cases(fails, fails), options: Options{Cases: ".", Rounds: 0}, wantError: "-rounds 0"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			tc.options.Out = filepath.Join(t.TempDir(), "out")
			err := Run(t.Context(), tc.cases, tc.options)
			if (err != nil) != (tc.wantError != "") || err != nil && !strings.Contains(err.Error(), tc.wantError) {
				t.Errorf("got error %v, want %q", err, tc.wantError)
			}
			report, _ := os.ReadFile(filepath.Join(tc.options.Out, reportFile))
			for _, want := range tc.wantReports {
				if !strings.Contains(string(report), want) {
					t.Errorf("the report has no %q:\n%s", want, report)
				}
			}
		})
	}
}

func TestResultsOfOtherCasesAreKept(t *testing.T) {
	options := Options{Rounds: 1, Out: t.TempDir()}
	report := func(value float64) func(context.Context, *Bench) error {
		return func(_ context.Context, b *Bench) error {
			b.Report(Figure{What: "n", Value: value})
			return nil
		}
	}
	cases := []Case{{Name: "x/a", Title: "A", Run: report(1)}, {Name: "x/b", Title: "B", Run: report(2)}}
	for _, selected := range []string{"a", "b"} {
		options.Cases = selected
		if err := Run(t.Context(), cases, options); err != nil {
			t.Fatal(err)
		}
	}
	kept, err := load(options.Out)
	if err != nil {
		t.Fatal(err)
	}
	if len(kept) != 2 || kept["x/a"].Figures[0].Value != 1 || kept["x/b"].Figures[0].Value != 2 {
		t.Errorf("kept are %+v", kept)
	}
}

func TestAChartIsAPictureWithAllPointsInside(t *testing.T) {
	charts := map[string]Chart{
		"two lines": {Title: "a < b & c", X: "tasks", Y: "s", Series: []Series{
			{Name: "bare", Points: []Point{{100, 0.5}, {1000, 6}}}, {Name: "<ours>", Points: []Point{{100, 0.7}, {1000, 7}}}}},
		"one point":  {Series: []Series{{Name: "a", Points: []Point{{5, 5}}}}},
		"no point":   {},
		"from zero":  {Linear: true, Series: []Series{{Name: "a", Points: []Point{{0, 0}, {0.4, 1}, {3.1, 1000}}}}},
		"only zero":  {Linear: true, Series: []Series{{Name: "a", Points: []Point{{0, 0}}}}},
		"no line":    {Linear: true},
		"wide range": {Series: []Series{{Name: "a", Points: []Point{{1, 0.001}, {1e6, 1e6}}}}},
	}
	for name, chart := range charts {
		t.Run(name, func(t *testing.T) {
			svg := chart.SVG()
			decoder := xml.NewDecoder(strings.NewReader(svg))
			circles := 0
			for {
				token, err := decoder.Token()
				if errors.Is(err, io.EOF) {
					break
				}
				if err != nil {
					t.Fatalf("it is no XML: %v\n%s", err, svg)
				}
				if element, ok := token.(xml.StartElement); ok && element.Name.Local == "circle" {
					circles++
				}
			}
			points := 0
			x, y := chart.axes()
			for _, series := range chart.Series {
				points += len(series.Points)
				for _, p := range series.Points {
					if px := x.at(p.X); px < chartLeft || px > chartWidth-chartRight {
						t.Errorf("%v lies at x=%.1f", p, px)
					}
					if py := y.at(p.Y); py < chartTop || py > chartHeight-chartBottom {
						t.Errorf("%v lies at y=%.1f", p, py)
					}
				}
			}
			if circles != points {
				t.Errorf("%d points are drawn, want %d", circles, points)
			}
		})
	}
}

func TestQuantileCountsOnlyWhatCameAfter(t *testing.T) {
	before := parse(t, `# TYPE sync histogram
sync_bucket{le="0.1"} 100
sync_bucket{le="1"} 100
sync_bucket{le="+Inf"} 100
sync_sum 1
sync_count 100
`)
	after := parse(t, `# TYPE sync histogram
sync_bucket{le="0.1"} 190
sync_bucket{le="1"} 199
sync_bucket{le="+Inf"} 200
sync_sum 9
sync_count 200
`)
	for part, want := range map[float64]float64{0.5: 0.1, 0.9: 0.1, 0.95: 1, 0.99: 1} {
		if got := after.Quantile(before, "sync", part); got != want {
			t.Errorf("%v of them are within %v, want %v", part, got, want)
		}
	}
	if got := after.Share(before, "sync", 0.1); got != 0.9 {
		t.Errorf("%v are within 0.1, want 0.9", got)
	}
}

func parse(t *testing.T, text string) Metrics {
	t.Helper()
	metrics, err := parseMetrics([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return metrics
}
