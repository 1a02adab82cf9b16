// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	dto "github.com/prometheus/client_model/go"
)

func all(t *testing.T) []metric {
	t.Helper()
	controllers, err := ofController()
	if err != nil {
		t.Fatal(err)
	}
	schedulers, err := ofScheduler()
	if err != nil {
		t.Fatal(err)
	}
	return slices.Concat(controllers, schedulers)
}

// TestMetricsFollowTheConventionsOfPrometheus: units, suffixes, help, and names in one form.
func TestMetricsFollowTheConventionsOfPrometheus(t *testing.T) {
	var families []*dto.MetricFamily
	for _, m := range all(t) {
		families = append(families, &dto.MetricFamily{Name: &m.name, Help: &m.help, Type: &m.kind})
	}
	if len(families) < 30 {
		t.Fatalf("there are %d metrics, want those of both programs", len(families))
	}
	problems, err := promlint.NewWithMetricFamilies(families).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, problem := range problems {
		t.Errorf("%s: %s", problem.Metric, problem.Text)
	}
}

// TestNoLabelNamesWhatATenantNames: the number of series does not grow with what users create.
func TestNoLabelNamesWhatATenantNames(t *testing.T) {
	// Each has few values: constants of the code, or what it counts as Other.
	bounded := []string{"kind", "state", "level", "code", "type", "reason", "result", "program", "version", "go_version"}
	// These are as many as the operator has configured, or as there are kinds of resources.
	configured := []string{"group", "mode", "scheduler_name", "resource"}
	for _, m := range all(t) {
		for _, label := range m.labels {
			if !slices.Contains(bounded, label) && !slices.Contains(configured, label) {
				t.Errorf("%s has the label %s, of which nobody has shown that its values are few", m.name, label)
			}
		}
	}
}

func TestTheReferenceIsThatOfTheCode(t *testing.T) {
	var want strings.Builder
	if err := write(&want); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile("../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want.String(), string(got)); diff != "" {
		t.Errorf("docs/metrics.md is not what `make generate` writes (-want,+got):\n%s", diff)
	}
}
