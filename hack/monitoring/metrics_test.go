// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/promql/parser"
)

// A metric is what Prometheus may be asked for, with its labels but for those of targets.
type metric struct {
	name   string
	labels []string
}

// ofTargets are labels that each series has by the target that it was read from.
var ofTargets = []string{"namespace", "job", "pod"}

// ofLibraries are metrics of Kubernetes' and Go's libraries that rules and dashboard use.
var ofLibraries = slices.Concat(
	[]metric{
		{"leader_election_master_status", []string{"name"}},
		{"process_cpu_seconds_total", nil},
		{"process_resident_memory_bytes", nil},
		{"rest_client_requests_total", []string{"code", "method", "host"}},
		{"scheduler_pending_pods", []string{"queue"}},
	},
	histogram("workqueue_queue_duration_seconds", "name"),
)

func histogram(name string, labels ...string) []metric {
	return []metric{{name + "_sum", labels}, {name + "_count", labels}, {name + "_bucket", append(slices.Clone(labels), "le")}}
}

// row finds the metrics of docs/metrics.md: name, type, labels.
var row = regexp.MustCompile("(?m)^\\| `(lockstep_\\w+)` \\| (\\w+) \\| ([^|]*) \\|")

// known are all metrics that there are, by name: those of docs/metrics.md, of libraries, and what rules record.
func known(t *testing.T) map[string]metric {
	t.Helper()
	page, err := os.ReadFile("../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	all := slices.Clone(ofLibraries)
	for _, found := range row.FindAllStringSubmatch(string(page), -1) {
		labels := strings.Fields(strings.NewReplacer("`", "", ",", "").Replace(found[3]))
		if found[2] == "histogram" {
			all = append(all, histogram(found[1], labels...)...)
		} else {
			all = append(all, metric{found[1], labels})
		}
	}
	if len(all) < 50 {
		t.Fatalf("docs/metrics.md has %d metrics only", len(all)-len(ofLibraries))
	}
	for _, group := range groups(t) {
		for _, rule := range group.Rules {
			if rule.Record == "" {
				continue
			}
			// The labels of the aggregation are the first part of its name.
			level, _, _ := strings.Cut(rule.Record, ":")
			all = append(all, metric{rule.Record, strings.Split(level, "_")})
		}
	}
	byName := map[string]metric{}
	for _, m := range all {
		byName[m.name] = m
	}
	return byName
}

// unknowns are faults of a query: metrics and labels that there are not.
func unknowns(query string, known map[string]metric) []string {
	expr, err := queries.ParseExpr(query)
	if err != nil {
		return []string{err.Error()}
	}
	var faults []string
	// The labels that a part of the query may have.
	labelsOf := func(part parser.Node) []string {
		all := slices.Clone(ofTargets)
		parser.Inspect(part, func(node parser.Node, _ []parser.Node) error {
			switch node := node.(type) {
			case *parser.VectorSelector:
				all = append(all, known[node.Name].labels...)
			case *parser.Call:
				if node.Func.Name == "label_replace" {
					all = append(all, node.Args[1].(*parser.StringLiteral).Val)
				}
			}
			return nil
		})
		return all
	}
	parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
		switch node := node.(type) {
		case *parser.VectorSelector:
			for _, matcher := range node.LabelMatchers {
				if matcher.Name != model.MetricNameLabel {
					if !slices.Contains(labelsOf(node), matcher.Name) {
						faults = append(faults, fmt.Sprintf("%s has no label %s", node.Name, matcher.Name))
					}
				} else if !slices.ContainsFunc(slices.Collect(maps.Keys(known)), matcher.Matches) {
					faults = append(faults, fmt.Sprintf("there is no metric %s", matcher.Value))
				}
			}
		case *parser.AggregateExpr:
			for _, label := range node.Grouping {
				if !slices.Contains(labelsOf(node.Expr), label) {
					faults = append(faults, fmt.Sprintf("%s has no label %s", node.Expr, label))
				}
			}
		}
		return nil
	})
	return faults
}

func TestQueriesAskForMetricsThatExist(t *testing.T) {
	known := known(t)
	for _, group := range groups(t) {
		for _, rule := range group.Rules {
			for _, fault := range unknowns(rule.Expr, known) {
				t.Errorf("%s%s: %s", rule.Record, rule.Alert, fault)
			}
		}
	}
	for _, panel := range panels(t) {
		for _, target := range panel.Targets {
			for _, fault := range unknowns(target.query(), known) {
				t.Errorf("dashboard, %s: %s", panel.Title, fault)
			}
		}
	}
}

// TestWrongQueriesAreNoticed: the check above is worth something.
func TestWrongQueriesAreNoticed(t *testing.T) {
	known := known(t)
	for query, fault := range map[string]string{
		`lockstep_controller_panic_total`:                                 "there is no metric lockstep_controller_panic_total",
		`{__name__=~"lockstep_undecodable_.+"}`:                           "there is no metric lockstep_undecodable_.+",
		`lockstep_controller_owners{phase="Failed"}`:                      "lockstep_controller_owners has no label phase",
		`sum by (status) (rate(rest_client_requests_total[5m]))`:          "rate(rest_client_requests_total[5m]) has no label status",
		`sum by (le) (rate(lockstep_controller_sync_duration_seconds[5m]`: "unclosed left parenthesis",
		`rate(lockstep_controller_sync_duration_seconds[5m])`:             "there is no metric lockstep_controller_sync_duration_seconds",
	} {
		if got := strings.Join(unknowns(query, known), "; "); !strings.Contains(got, fault) {
			t.Errorf("%s: %q, want %q", query, got, fault)
		}
	}
}
