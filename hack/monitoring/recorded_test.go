// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"context"
	"flag"
	"log/slog"
	"math"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/promqltest"
	"github.com/prometheus/prometheus/rules"
	"github.com/prometheus/prometheus/util/teststorage"
)

// recording has what both programs served in each second of a test in a cluster, by make record-metrics.
const recording = "testdata/recorded.promql"

// A recorded run: what was served, with what the rules record of it.
type recorded struct {
	storage *teststorage.TestStorage
	engine  *promql.Engine
	end     time.Time
}

func loadRecording(t *testing.T) recorded {
	t.Helper()
	text, err := os.ReadFile(recording)
	if err != nil {
		t.Fatal(err)
	}
	r := recorded{storage: promqltest.LoadedStorage(t, string(text)), engine: promqltest.NewTestEngine(t, false, 5*time.Minute, 10_000_000)}
	t.Cleanup(func() { r.storage.Close() })
	r.end = time.UnixMilli(r.storage.Head().MaxTime()).UTC()
	manager := rules.NewManager(&rules.ManagerOptions{
		QueryFunc: rules.EngineQueryFunc(r.engine, r.storage), Appendable: r.storage, Context: t.Context(),
		NotifyFunc: func(context.Context, string, ...*rules.Alert) {}, Logger: slog.New(slog.DiscardHandler), Parser: queries,
	})
	groups, errs := manager.LoadGroups(time.Second, labels.EmptyLabels(), "", nil, false, ruleFiles(t)...)
	if len(errs) > 0 {
		t.Fatalf("%v", errs)
	}
	for now := time.Unix(0, 0).UTC(); !now.After(r.end); now = now.Add(time.Second) {
		for _, group := range groups {
			group.Eval(t.Context(), now)
			for _, rule := range group.Rules() {
				if err := rule.LastError(); err != nil {
					t.Fatalf("%s: %v", rule.Name(), err)
				}
			}
		}
	}
	return r
}

// query is what Grafana draws of a target, where the metrics are read every second.
func (r recorded) query(t *testing.T, target target) promql.Matrix {
	t.Helper()
	query, err := r.engine.NewRangeQuery(t.Context(), r.storage, nil, strings.ReplaceAll(target.Expr, "$__rate_interval", "10s"), time.Unix(0, 0), r.end, time.Second)
	if err != nil {
		t.Fatalf("%s: %v", target.Expr, err)
	}
	defer query.Close()
	matrix, err := query.Exec(t.Context()).Matrix()
	if err != nil {
		t.Fatalf("%s: %v", target.Expr, err)
	}
	// What is closed has its points taken for the next query.
	matrix = slices.Clone(matrix)
	for i := range matrix {
		matrix[i].Floats = slices.Clone(matrix[i].Floats)
	}
	return matrix
}

// ofLegends finds the labels that a legend names.
var ofLegends = regexp.MustCompile(`\{\{(\w+)\}\}`)

// TestDashboardShowsARecordedRun asks every query of the dashboard for what the programs themselves have served while
// jobs ran, failed and waited. Each has an answer, with the labels that its legend names.
func TestDashboardShowsARecordedRun(t *testing.T) {
	r := loadRecording(t)
	if r.end.Unix() < 20 {
		t.Fatalf("the recording ends after %d seconds", r.end.Unix())
	}
	for _, panel := range panels(t) {
		for _, target := range panel.Targets {
			matrix := r.query(t, target)
			shown := 0
			for _, series := range matrix {
				if slices.ContainsFunc(series.Floats, func(p promql.FPoint) bool { return !math.IsNaN(p.F) }) {
					shown++
				}
				for _, label := range ofLegends.FindAllStringSubmatch(target.LegendFormat, -1) {
					if series.Metric.Get(label[1]) == "" {
						t.Errorf("%s: %s has no label %s for the legend", panel.Title, series.Metric, label[1])
					}
				}
			}
			if shown == 0 {
				t.Errorf("%s: %s shows nothing", panel.Title, target.Expr)
			}
		}
	}
}

var update = flag.Bool("update", false, "draw the picture of the dashboard anew")

// TestThePictureIsOfTheRecording holds the picture in the documents to the dashboard and the recording.
func TestThePictureIsOfTheRecording(t *testing.T) {
	const file = "../../docs/images/monitoring.svg"
	want := picture(t, loadRecording(t))
	if *update {
		if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Errorf("%s is not what the dashboard shows of the recording: draw it anew by `go test -run %s . -update`", file, t.Name())
	}
}
