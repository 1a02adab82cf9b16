// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/promql/promqltest"
)

// A panel of the dashboard, with what the tests look at.
type panel struct {
	ID      int
	Type    string
	Title   string
	GridPos struct{ X, Y, W, H int }
	Targets []target
	// FieldConfig has what is drawn otherwise than the rest of a panel: here that it has an axis of its own.
	FieldConfig struct {
		Overrides []struct {
			Matcher    struct{ ID, Options string }
			Properties []struct {
				ID    string
				Value any
			}
		}
	}
}

type target struct {
	RefID        string
	Expr         string
	LegendFormat string
}

// right says whether the axis of a target is that on the right.
func (p panel) right(t target) bool {
	for _, override := range p.FieldConfig.Overrides {
		for _, property := range override.Properties {
			if override.Matcher.ID == "byFrameRefID" && override.Matcher.Options == t.RefID && property.ID == "custom.axisPlacement" && property.Value == "right" {
				return true
			}
		}
	}
	return false
}

// query is what Grafana asks Prometheus for.
func (t target) query() string { return strings.ReplaceAll(t.Expr, "$__rate_interval", "5m") }

func panels(t *testing.T) []panel {
	t.Helper()
	content, err := os.ReadFile(manifests + "/dashboard.json")
	if err != nil {
		t.Fatal(err)
	}
	var dashboard struct{ Panels []panel }
	if err := json.Unmarshal(content, &dashboard); err != nil {
		t.Fatal(err)
	}
	if len(dashboard.Panels) == 0 {
		t.Fatal("the dashboard is empty")
	}
	return dashboard.Panels
}

// TestDashboardShowsSomething asks every query of the dashboard, where each metric that there is has a series.
func TestDashboardShowsSomething(t *testing.T) {
	var series strings.Builder
	series.WriteString("load 1m\n")
	for _, metric := range slices.SortedFunc(maps.Values(known(t)), func(a, b metric) int { return strings.Compare(a.name, b.name) }) {
		pairs := []string{`namespace="lockstep-system"`, `pod="lockstep-0"`}
		// Both programs have the metrics of libraries.
		job := "lockstep-controller"
		if strings.Contains(metric.name, "scheduler") {
			job = "lockstep-scheduler"
		}
		pairs = append(pairs, fmt.Sprintf("job=%q", job))
		for _, label := range metric.labels {
			value := "some"
			switch label {
			case "namespace", "job", "pod":
				continue
			case "le":
				value = "+Inf"
			case "level":
				value = "task"
			}
			pairs = append(pairs, fmt.Sprintf("%s=%q", label, value))
		}
		fmt.Fprintf(&series, "\t{__name__=%q,%s} 0+1x180\n", metric.name, strings.Join(pairs, ","))
	}
	engine := promqltest.NewTestEngine(t, false, 5*time.Minute, 100000)
	storage := promqltest.LoadedStorage(t, series.String())
	defer storage.Close()
	ids := map[int]bool{}
	for _, panel := range panels(t) {
		if ids[panel.ID] {
			t.Errorf("%s has the ID %d of another panel", panel.Title, panel.ID)
		}
		ids[panel.ID] = true
		if panel.Type != "row" && len(panel.Targets) == 0 {
			t.Errorf("%s asks for nothing", panel.Title)
		}
		for _, target := range panel.Targets {
			query, err := engine.NewInstantQuery(t.Context(), storage, nil, target.query(), time.Unix(0, 0).Add(2*time.Hour))
			if err != nil {
				t.Errorf("%s: %v", panel.Title, err)
				continue
			}
			result := query.Exec(t.Context())
			if vector, err := result.Vector(); err != nil || len(vector) == 0 {
				t.Errorf("%s: %s shows nothing: %v", panel.Title, target.query(), err)
			}
			query.Close()
		}
	}
}

// TestPanelsDoNotOverlap, and none is wider than the dashboard.
func TestPanelsDoNotOverlap(t *testing.T) {
	taken := map[[2]int]string{}
	for _, panel := range panels(t) {
		at := panel.GridPos
		if at.W < 1 || at.H < 1 || at.X+at.W > 24 {
			t.Errorf("%s is at %+v", panel.Title, at)
		}
		for x := at.X; x < at.X+at.W; x++ {
			for y := at.Y; y < at.Y+at.H; y++ {
				if other := taken[[2]int{x, y}]; other != "" {
					t.Fatalf("%s is over %s", panel.Title, other)
				}
				taken[[2]int{x, y}] = panel.Title
			}
		}
	}
}

// unit is what a query counts in, by the name of its metric.
func unit(query string) string {
	switch {
	case strings.Contains(query, "_cpu_seconds_total"):
		return "cores"
	case strings.Contains(query, "_bytes"):
		return "bytes"
	case strings.Contains(query, "_seconds"):
		return "seconds"
	default:
		return "number"
	}
}

// TestUnitsShareNoAxis: megabytes would leave cores a line at the bottom.
func TestUnitsShareNoAxis(t *testing.T) {
	for _, panel := range panels(t) {
		units := map[bool]string{}
		for _, target := range panel.Targets {
			right, unit := panel.right(target), unit(target.Expr)
			if other := units[right]; other != "" && other != unit {
				t.Errorf("%s has %s and %s on one axis", panel.Title, other, unit)
			}
			units[right] = unit
		}
	}
}
