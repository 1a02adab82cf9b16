// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/promql/promqltest"
	"github.com/prometheus/prometheus/rules"
	"sigs.k8s.io/yaml"
)

const manifests = "../../manifests/monitoring"

// queries reads queries.
var queries = parser.NewParser(parser.Options{})

// ruleFiles writes the rules of all PrometheusRules as the files that Prometheus reads, and returns their paths.
func ruleFiles(t *testing.T) []string {
	t.Helper()
	found, err := filepath.Glob(manifests + "/*-rules.yaml")
	if err != nil || len(found) == 0 {
		t.Fatalf("no rules: %v", err)
	}
	var files []string
	for _, path := range found {
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var object struct {
			Kind string `json:"kind"`
			Spec any    `json:"spec"`
		}
		if err := yaml.Unmarshal(content, &object); err != nil || object.Kind != "PrometheusRule" {
			t.Fatalf("%s: a %q: %v", path, object.Kind, err)
		}
		spec, err := yaml.Marshal(object.Spec)
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(t.TempDir(), filepath.Base(path))
		if err := os.WriteFile(file, spec, 0o600); err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	return files
}

// groups are the groups of rules of all files, as Prometheus reads them: queries and templates that are wrong, and
// unknown fields, fail the test.
func groups(t *testing.T) []rulefmt.RuleGroup {
	t.Helper()
	var all []rulefmt.RuleGroup
	for _, file := range ruleFiles(t) {
		read, errs := rulefmt.ParseFile(file, false, model.UTF8Validation, queries, slog.New(slog.DiscardHandler))
		if len(errs) > 0 {
			t.Fatalf("%v", errs)
		}
		all = append(all, read.Groups...)
	}
	return all
}

// alerts are all alerts, by name.
func alerts(t *testing.T) map[string]rulefmt.Rule {
	t.Helper()
	all := map[string]rulefmt.Rule{}
	for _, group := range groups(t) {
		for _, rule := range group.Rules {
			if rule.Alert == "" {
				continue
			}
			if _, twice := all[rule.Alert]; twice {
				t.Errorf("there are two alerts %s", rule.Alert)
			}
			all[rule.Alert] = rule
		}
	}
	return all
}

// sections finds the headings of alerts, with the first word below.
var sections = regexp.MustCompile(`(?m)^### (Lockstep\w+)\n\n\*(\w+),`)

// TestAlertsSayWhatToDo: docs/monitoring.md has a section for each alert, with its severity, and none for
// alerts that there are not.
func TestAlertsSayWhatToDo(t *testing.T) {
	page, err := os.ReadFile("../../docs/monitoring.md")
	if err != nil {
		t.Fatal(err)
	}
	documented := map[string]string{}
	for _, section := range sections.FindAllStringSubmatch(string(page), -1) {
		documented[section[1]] = strings.ToLower(section[2])
	}
	alerts := alerts(t)
	for name, alert := range alerts {
		if got := documented[name]; got != alert.Labels["severity"] || !slices.Contains([]string{"critical", "warning", "info"}, got) {
			t.Errorf("%s has the severity %q, and docs/monitoring.md says %q", name, alert.Labels["severity"], got)
		}
		if want := "docs/monitoring.md#" + strings.ToLower(name); alert.Annotations["runbook"] != want {
			t.Errorf("%s leads to %q, want %q", name, alert.Annotations["runbook"], want)
		}
		for _, annotation := range []string{"summary", "description"} {
			if !strings.HasSuffix(alert.Annotations[annotation], ".") {
				t.Errorf("%s has the %s %q, which is no sentence", name, annotation, alert.Annotations[annotation])
			}
		}
	}
	for name := range documented {
		if _, exists := alerts[name]; !exists {
			t.Errorf("docs/monitoring.md tells of an alert %s, and there is none", name)
		}
	}
}

// replica are the labels of a replica of a program.
func replica(program, pod string) string {
	return fmt.Sprintf("namespace=%q,job=%q,pod=%q", "lockstep-system", program, pod)
}

// TestAlertsFireWhenTheyShould evaluates all rules each minute for three hours, on series with a value for each
// minute. Of each alert there is at least one case in which it fires, and one in which it does not.
func TestAlertsFireWhenTheyShould(t *testing.T) {
	var (
		a = replica("lockstep-controller", "controller-a")
		b = replica("lockstep-controller", "controller-b")
		s = replica("lockstep-scheduler", "scheduler-a")
	)
	const never = time.Duration(-1)
	covered := map[string]map[bool]bool{}
	for _, test := range []struct {
		alert, name string
		series      []string
		// When it fires first, and what it says then.
		fires   time.Duration
		summary string
	}{
		{
			alert: "LockstepControllerHasNoLeader", name: "two replicas stand by",
			series: []string{`leader_election_master_status{` + a + `,name="c"} 0x180`, `leader_election_master_status{` + b + `,name="c"} 0x180`},
			fires:  2 * time.Minute, summary: "No replica of lockstep-controller leads, or Prometheus can't reach it.",
		},
		{
			alert: "LockstepControllerHasNoLeader", name: "the only replica is gone",
			series: []string{`leader_election_master_status{` + a + `,name="c"} 1x9 stale`, `leader_election_master_status{` + s + `,name="s"} 1x180`},
			fires:  12 * time.Minute, summary: "No replica of lockstep-controller leads, or Prometheus can't reach it.",
		},
		{
			alert: "LockstepControllerHasNoLeader", name: "a leader is replaced in a minute",
			series: []string{`leader_election_master_status{` + a + `,name="c"} 1x9 0x170`, `leader_election_master_status{` + b + `,name="c"} 0x10 1x169`},
			fires:  never,
		},
		{
			alert: "LockstepSchedulerHasNoLeader", name: "only a controller leads",
			series: []string{`leader_election_master_status{` + a + `,name="c"} 1x180`, `leader_election_master_status{` + s + `,name="s"} 0x180`},
			fires:  2 * time.Minute, summary: "No replica of lockstep-scheduler leads, or Prometheus can't reach it.",
		},
		{
			alert: "LockstepSchedulerHasNoLeader", name: "one leads",
			series: []string{`leader_election_master_status{` + s + `,name="s"} 1x180`},
			fires:  never,
		},
		{
			alert: "LockstepControllerListsNoFrameworks", name: "a permission is missing",
			series: []string{`lockstep_controller_listed_frameworks{` + a + `} 0x180`, `lockstep_controller_listed_frameworks{` + b + `} 0x180`},
			fires:  15 * time.Minute, summary: "lockstep-controller can't list Frameworks, or something that they need.",
		},
		{
			alert: "LockstepControllerListsNoFrameworks", name: "the leader has listed them, the standby has not",
			series: []string{`lockstep_controller_listed_frameworks{` + a + `} 0x5 1x174`, `lockstep_controller_listed_frameworks{` + b + `} 0x180`},
			fires:  never,
		},
		{
			alert: "LockstepControllerSyncHangs", name: "a sync does not end",
			series: []string{`lockstep_controller_longest_sync_seconds{` + a + `} 0+60x180`, `lockstep_controller_longest_sync_seconds{` + b + `} 0x180`},
			fires:  12 * time.Minute, summary: "A sync in controller-a has been running for 12m 0s.",
		},
		{
			alert: "LockstepControllerSyncHangs", name: "syncs are slow",
			series: []string{`lockstep_controller_longest_sync_seconds{` + a + `} 600x180`},
			fires:  never,
		},
		{
			alert: "LockstepControllerPanicked", name: "once",
			series: []string{`lockstep_controller_panics_total{` + a + `} 0x9 1x170`},
			fires:  10 * time.Minute, summary: "lockstep-controller has met a fault of its own in the last hour.",
		},
		{
			alert: "LockstepControllerPanicked", name: "long ago, and the counter begins anew when the process does",
			series: []string{`lockstep_controller_panics_total{` + a + `} 7x20 0x159`},
			fires:  never,
		},
		{
			alert: "LockstepStatusTooLarge", name: "a status is refused every ten minutes",
			series: []string{`lockstep_controller_status_too_large_total{` + a + `} 0x9 1x9 2x9 3x9 4x9 5x9 6x9`},
			fires:  40 * time.Minute, summary: "The API server keeps refusing statuses because they are too large.",
		},
		{
			alert: "LockstepStatusTooLarge", name: "one status is refused, and then stored without its diagnostics",
			series: []string{`lockstep_controller_status_too_large_total{` + a + `} 0x9 1x170`},
			fires:  never,
		},
		{
			alert: "LockstepUndecodable", name: "two Jobs, which both replicas see",
			series: []string{`lockstep_controller_undecodable_jobs{` + a + `} 2x180`, `lockstep_controller_undecodable_jobs{` + b + `} 2x180`, `lockstep_controller_undecodable_frameworks{` + a + `} 0x180`},
			fires:  15 * time.Minute, summary: "2 jobs can't be read, and are left alone.",
		},
		{
			alert: "LockstepUndecodable", name: "a Framework is mended soon",
			series: []string{`lockstep_controller_undecodable_frameworks{` + a + `} 1x14 0x165`},
			fires:  never,
		},
		{
			alert: "LockstepNamespaceUnread", name: "rights lack in one namespace",
			series: []string{`lockstep_controller_unread_namespaces_tfjobs{` + a + `} 1x180`, `lockstep_controller_unread_namespaces_frameworks{` + a + `} 0x180`},
			fires:  15 * time.Minute, summary: "In 1 of the served namespaces the controller may not read all that it needs.",
		},
		{
			alert: "LockstepNamespaceUnread", name: "rights are given soon",
			series: []string{`lockstep_controller_unread_namespaces_tfjobs{` + a + `} 1x14 0x165`},
			fires:  never,
		},
		{
			alert: "LockstepRequestsFail", name: "one in six gets the code 503",
			series: []string{`rest_client_requests_total{` + a + `,code="200",method="GET",host="h"} 0+50x180`, `rest_client_requests_total{` + a + `,code="503",method="GET",host="h"} 0+10x180`},
			fires:  16 * time.Minute, summary: "Of the requests of lockstep-controller to the API server, 16.67% fail.",
		},
		{
			alert: "LockstepRequestsFail", name: "the API server is away",
			series: []string{`rest_client_requests_total{` + s + `,code="<error>",method="GET",host="h"} 0+50x180`},
			fires:  16 * time.Minute, summary: "Of the requests of lockstep-scheduler to the API server, 100% fail.",
		},
		{
			alert: "LockstepRequestsFail", name: "one in a hundred, and many conflicts",
			series: []string{`rest_client_requests_total{` + a + `,code="200",method="GET",host="h"} 0+99x180`, `rest_client_requests_total{` + a + `,code="503",method="GET",host="h"} 0+1x180`, `rest_client_requests_total{` + a + `,code="409",method="PUT",host="h"} 0+90x180`},
			fires:  never,
		},
		{
			alert: "LockstepRequestsFail", name: "those of another program",
			series: []string{`rest_client_requests_total{` + replica("kubelet", "") + `,code="500",method="GET",host="h"} 0+9x180`},
			fires:  never,
		},
		{
			alert: "LockstepMayNotRead", name: "its rights were taken away",
			series: []string{`rest_client_requests_total{` + a + `,code="403",method="GET",host="h"} 0+1x180`},
			fires:  16 * time.Minute, summary: "The API server answers what lockstep-controller reads with 403.",
		},
		{
			alert: "LockstepMayNotRead", name: "a quota is exhausted, and the scheduler asks what it may read",
			series: []string{`rest_client_requests_total{` + a + `,code="403",method="POST",host="h"} 0+9x180`, `rest_client_requests_total{` + s + `,code="403",method="GET",host="h"} 0+9x180`},
			fires:  never,
		},
		{
			alert: "LockstepGangsWait", name: "for an hour, while none is placed",
			series: []string{`lockstep_scheduler_waiting_gangs{` + s + `,reason="NotEnoughResources"} 3x180`, `lockstep_scheduler_waiting_gangs{` + s + `,reason="NotEnoughTasks"} 2x180`, `lockstep_scheduler_gang_members_placed_total{` + s + `} 7x180`},
			fires:  time.Hour, summary: "5 gangs wait, and no member of a gang was given a node in the last hour.",
		},
		{
			alert: "LockstepGangsWait", name: "while others are placed every half hour",
			series: []string{`lockstep_scheduler_waiting_gangs{` + s + `,reason="NotEnoughResources"} 3x180`, `lockstep_scheduler_gang_members_placed_total{` + s + `} 0x29 8x29 16x29 24x29 32x29 40x29`},
			fires:  never,
		},
		{
			alert: "LockstepGangsWait", name: "for less than an hour",
			series: []string{`lockstep_scheduler_waiting_gangs{` + s + `,reason="NotEnoughResources"} 3x50 0x129`, `lockstep_scheduler_gang_members_placed_total{` + s + `} 7x180`},
			fires:  never,
		},
		{
			alert: "LockstepSchedulerConflict", name: "a second scheduler of a name",
			series: []string{`lockstep_scheduler_foreign_bindings_total{` + s + `,scheduler_name="volcano"} 0+1x180`},
			fires:  13 * time.Minute, summary: "Another scheduler serves volcano, too.",
		},
		{
			alert: "LockstepSchedulerConflict", name: "one Pod was bound by hand",
			series: []string{`lockstep_scheduler_foreign_bindings_total{` + s + `,scheduler_name="volcano"} 0x10 1x170`},
			fires:  never,
		},
	} {
		if covered[test.alert] == nil {
			covered[test.alert] = map[bool]bool{}
		}
		covered[test.alert][test.fires != never] = true
		t.Run(test.alert+"/"+test.name, func(t *testing.T) {
			at, says := firstFires(t, test.alert, test.series)
			if at != test.fires || says != test.summary {
				t.Errorf("it fires after %v: %q; want %v: %q", at, says, test.fires, test.summary)
			}
		})
	}
	for alert := range alerts(t) {
		if !covered[alert][true] || !covered[alert][false] {
			t.Errorf("%s is not tried both ways: %v", alert, covered[alert])
		}
	}
}

// TestRulesRecordWhatTheirNamesSay evaluates each recording rule on series with a value for each minute, after an hour.
func TestRulesRecordWhatTheirNamesSay(t *testing.T) {
	var (
		a = replica("lockstep-controller", "controller-a")
		b = replica("lockstep-controller", "controller-b")
		s = replica("lockstep-scheduler", "scheduler-a")
	)
	cases := map[string]struct {
		series []string
		want   map[string]float64
	}{
		// 90 of 100 syncs take up to 0.1 s and the others up to 1 s, in one replica and in the other.
		"namespace_job:lockstep_controller_sync_duration_seconds:p99_rate5m": {
			series: []string{
				`lockstep_controller_sync_duration_seconds_bucket{` + a + `,le="0.1"} 0+90x60`, `lockstep_controller_sync_duration_seconds_bucket{` + b + `,le="0.1"} 0+90x60`,
				`lockstep_controller_sync_duration_seconds_bucket{` + a + `,le="1"} 0+100x60`, `lockstep_controller_sync_duration_seconds_bucket{` + b + `,le="1"} 0+100x60`,
				`lockstep_controller_sync_duration_seconds_bucket{` + a + `,le="+Inf"} 0+100x60`, `lockstep_controller_sync_duration_seconds_bucket{` + b + `,le="+Inf"} 0+100x60`,
			},
			want: map[string]float64{`{job="lockstep-controller", namespace="lockstep-system"}`: 0.91},
		},
		"namespace_job:lockstep_scheduler_gang_cycle_duration_seconds:p99_rate5m": {
			series: []string{
				`lockstep_scheduler_gang_cycle_duration_seconds_bucket{` + s + `,le="0.1"} 0+90x60`,
				`lockstep_scheduler_gang_cycle_duration_seconds_bucket{` + s + `,le="1"} 0+100x60`,
				`lockstep_scheduler_gang_cycle_duration_seconds_bucket{` + s + `,le="+Inf"} 0+100x60`,
			},
			want: map[string]float64{`{job="lockstep-scheduler", namespace="lockstep-system"}`: 0.91},
		},
		// Each kind for itself.
		"namespace_job_kind:lockstep_controller_time_to_run_seconds:p95_rate1h": {
			series: []string{
				`lockstep_controller_time_to_run_seconds_bucket{` + a + `,kind="Framework",le="1"} 0+90x60`,
				`lockstep_controller_time_to_run_seconds_bucket{` + a + `,kind="Framework",le="11"} 0+100x60`,
				`lockstep_controller_time_to_run_seconds_bucket{` + a + `,kind="Framework",le="+Inf"} 0+100x60`,
				`lockstep_controller_time_to_run_seconds_bucket{` + a + `,kind="TFJob",le="1"} 0+100x60`,
				`lockstep_controller_time_to_run_seconds_bucket{` + a + `,kind="TFJob",le="11"} 0+100x60`,
				`lockstep_controller_time_to_run_seconds_bucket{` + a + `,kind="TFJob",le="+Inf"} 0+100x60`,
			},
			want: map[string]float64{
				`{job="lockstep-controller", kind="Framework", namespace="lockstep-system"}`: 6,
				`{job="lockstep-controller", kind="TFJob", namespace="lockstep-system"}`:     0.95,
			},
		},
		// Both replicas count all of them.
		"namespace_job_resource:lockstep_controller_undecodable:max": {
			series: []string{
				`lockstep_controller_undecodable_frameworks{` + a + `} 2x60`, `lockstep_controller_undecodable_frameworks{` + b + `} 1x60`,
				`lockstep_controller_undecodable_jobs{` + a + `} 0x60`,
			},
			want: map[string]float64{
				`{job="lockstep-controller", namespace="lockstep-system", resource="frameworks"}`: 2,
				`{job="lockstep-controller", namespace="lockstep-system", resource="jobs"}`:       0,
			},
		},
		// A conflict is no failure, no answer is one, and where nothing fails the share is 0.
		"namespace_job:rest_client_requests_failed:ratio_rate5m": {
			series: []string{
				`rest_client_requests_total{` + a + `,code="200",method="GET",host="h"} 0+50x60`, `rest_client_requests_total{` + a + `,code="409",method="PUT",host="h"} 0+30x60`,
				`rest_client_requests_total{` + b + `,code="503",method="GET",host="h"} 0+15x60`, `rest_client_requests_total{` + a + `,code="<error>",method="GET",host="h"} 0+5x60`,
				`rest_client_requests_total{` + s + `,code="200",method="GET",host="h"} 0+50x60`,
				`rest_client_requests_total{` + replica("kubelet", "") + `,code="500",method="GET",host="h"} 0+9x60`,
			},
			want: map[string]float64{
				`{job="lockstep-controller", namespace="lockstep-system"}`: 0.2,
				`{job="lockstep-scheduler", namespace="lockstep-system"}`:  0,
			},
		},
	}
	engine := promqltest.NewTestEngine(t, false, 5*time.Minute, 100000)
	for _, group := range groups(t) {
		for _, rule := range group.Rules {
			if rule.Record == "" {
				continue
			}
			tc, tried := cases[rule.Record]
			if !tried {
				t.Errorf("%s is not tried", rule.Record)
				continue
			}
			delete(cases, rule.Record)
			storage := promqltest.LoadedStorage(t, "load 1m\n\t"+strings.Join(tc.series, "\n\t")+"\n")
			defer storage.Close()
			query, err := engine.NewInstantQuery(t.Context(), storage, nil, rule.Expr, time.Unix(0, 0).Add(time.Hour))
			if err != nil {
				t.Fatal(err)
			}
			defer query.Close()
			vector, err := query.Exec(t.Context()).Vector()
			if err != nil {
				t.Fatal(err)
			}
			got := map[string]float64{}
			for _, sample := range vector {
				got[sample.Metric.String()] = math.Round(sample.F*1e6) / 1e6
			}
			if !maps.Equal(got, tc.want) {
				t.Errorf("%s is %v, want %v", rule.Record, got, tc.want)
			}
		}
	}
	for record := range cases {
		t.Errorf("there is no rule %s", record)
	}
}

// firstFires says after what time of three hours an alert fires first, and the summaries that it has then; -1 if
// it does not.
func firstFires(t *testing.T, alert string, series []string) (time.Duration, string) {
	t.Helper()
	loader, err := promqltest.NewLazyLoader("load 1m\n\t"+strings.Join(series, "\n\t")+"\n", promqltest.LazyLoaderOpts{EnableAtModifier: true, EnableNegativeOffset: true})
	if err != nil {
		t.Fatal(err)
	}
	defer loader.Close()
	manager := rules.NewManager(&rules.ManagerOptions{
		QueryFunc:  rules.EngineQueryFunc(loader.QueryEngine(), loader.Storage()),
		Appendable: loader.Storage(),
		Context:    t.Context(),
		NotifyFunc: func(context.Context, string, ...*rules.Alert) {},
		Logger:     slog.New(slog.DiscardHandler),
		Parser:     queries,
	})
	loaded, errs := manager.LoadGroups(time.Minute, labels.EmptyLabels(), "", nil, false, ruleFiles(t)...)
	if len(errs) > 0 {
		t.Fatalf("%v", errs)
	}
	for after := time.Duration(0); after <= 3*time.Hour; after += time.Minute {
		now := time.Unix(0, 0).UTC().Add(after)
		var firing []string
		loader.WithSamplesTill(now, func(err error) {
			if err != nil {
				t.Fatal(err)
			}
			for _, group := range loaded {
				for _, rule := range group.Rules() {
					if alerting, is := rule.(*rules.AlertingRule); is {
						alerting.SetRestored(true)
					}
				}
				group.Eval(loader.Context(), now)
				for _, rule := range group.Rules() {
					if err := rule.LastError(); err != nil {
						t.Fatalf("%s: %v", rule.Name(), err)
					}
					alerting, is := rule.(*rules.AlertingRule)
					if !is || alerting.Name() != alert {
						continue
					}
					for _, active := range alerting.ActiveAlerts() {
						if active.State == rules.StateFiring {
							firing = append(firing, active.Annotations.Get("summary"))
						}
					}
				}
			}
		})
		if len(firing) > 0 {
			return after, strings.Join(firing, "\n")
		}
	}
	return -1, ""
}
