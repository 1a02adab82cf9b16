// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Command metricsref writes the reference of all metrics of Lockstep, docs/metrics.md, from the
// code that registers them. `make generate` runs it.
package main

import (
	"cmp"
	_ "embed"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/blang/semver/v4"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"k8s.io/client-go/rest"
	"k8s.io/component-base/metrics"

	configv1alpha1 "github.com/lockstep-k8s/lockstep/apis/config/v1alpha1"
	"github.com/lockstep-k8s/lockstep/controller"
	"github.com/lockstep-k8s/lockstep/controller/kueue"
	"github.com/lockstep-k8s/lockstep/internal/buildinfo"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/status"
)

//go:embed head.md
var head string

func main() {
	if err := write(os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "metricsref:", err)
		os.Exit(1)
	}
}

// write writes the reference.
func write(to io.Writer) error {
	controllers, err := ofController()
	if err != nil {
		return err
	}
	schedulers, err := ofScheduler()
	if err != nil {
		return err
	}
	fmt.Fprint(to, head)
	for _, part := range []struct {
		title string
		of    []metric
	}{
		{"Of lockstep-controller", controllers},
		{"Of lockstep-scheduler", schedulers},
	} {
		fmt.Fprintf(to, "\n## %s\n\n| metric | type | labels | meaning |\n|---|---|---|---|\n", part.title)
		for _, m := range part.of {
			fmt.Fprintf(to, "| `%s` | %s | %s | %s |\n", m.name, strings.ToLower(m.kind.String()), labels(m.labels), m.help)
		}
	}
	return nil
}

func labels(names []string) string {
	if len(names) == 0 {
		return ""
	}
	return "`" + strings.Join(names, "`, `") + "`"
}

// metric is what the code says of a metric.
type metric struct {
	name, help string
	labels     []string
	kind       dto.MetricType
}

// ofController are those of the controller with everything switched on.
func ofController() ([]metric, error) {
	clients, err := controller.NewClients(&rest.Config{Host: "https://none.invalid"})
	if err != nil {
		return nil, err
	}
	config := &configv1alpha1.ControllerConfiguration{}
	configv1alpha1.SetDefaults(config)
	*config.VolcanoJobs.Enabled, *config.KubeflowJobs.Enabled = true, true
	r := &recorder{}
	if _, err := controller.New(clients, config, r); err != nil {
		return nil, err
	}
	if _, err := kueue.New(clients.Dynamic, config.Namespaces, r); err != nil {
		return nil, err
	}
	if err := r.Register(buildinfo.Collector("lockstep-controller")); err != nil {
		return nil, err
	}
	return r.sorted(), nil
}

// ofScheduler are those of the plugin. Those of kube-scheduler are its own.
func ofScheduler() ([]metric, error) {
	r := &recorder{}
	if _, err := status.NewMetrics(schedulerRegistry{r}, &status.Asked{}); err != nil {
		return nil, err
	}
	if err := r.Register(buildinfo.Collector("lockstep-scheduler")); err != nil {
		return nil, err
	}
	return r.sorted(), nil
}

// recorder is a registry that writes down what is registered.
type recorder struct{ metrics []metric }

func (r *recorder) sorted() []metric {
	slices.SortFunc(r.metrics, func(a, b metric) int { return cmp.Compare(a.name, b.name) })
	return r.metrics
}

// described are the parts of a description that there is no other way to.
var described = regexp.MustCompile(`^Desc\{fqName: "([^"]+)", help: "(.*?)"(?:, unit: "[^"]*")?, constLabels: \{(.*)\}, variableLabels: \{(.*)\}\}$`)

// constant is the name of a constant label.
var constant = regexp.MustCompile(`(\w+)="`)

// Register implements prometheus.Registerer.
func (r *recorder) Register(c prometheus.Collector) error {
	descriptions := make(chan *prometheus.Desc, 1)
	c.Describe(descriptions)
	return r.note(<-descriptions, c)
}

func (r *recorder) note(description *prometheus.Desc, c any) error {
	parts := described.FindStringSubmatch(description.String())
	if parts == nil {
		return fmt.Errorf("what describes a metric has another form: %s", description)
	}
	m := metric{name: parts[1], help: strings.TrimPrefix(strings.ReplaceAll(parts[2], `\"`, `"`), "[ALPHA] "), kind: dto.MetricType_GAUGE}
	for _, label := range constant.FindAllStringSubmatch(parts[3], -1) {
		m.labels = append(m.labels, label[1])
	}
	if parts[4] != "" {
		m.labels = append(m.labels, strings.Split(parts[4], ",")...)
	}
	switch kind := strings.ToLower(fmt.Sprintf("%T", c)); {
	case strings.Contains(kind, "histogram"):
		m.kind = dto.MetricType_HISTOGRAM
	case strings.HasSuffix(m.name, "_total"):
		m.kind = dto.MetricType_COUNTER
	}
	r.metrics = append(r.metrics, m)
	return nil
}

// MustRegister implements prometheus.Registerer.
func (r *recorder) MustRegister(collectors ...prometheus.Collector) {
	for _, c := range collectors {
		if err := r.Register(c); err != nil {
			panic(err)
		}
	}
}

// Unregister implements prometheus.Registerer.
func (r *recorder) Unregister(prometheus.Collector) bool { return false }

// schedulerRegistry records what is registered in the terms of Kubernetes.
type schedulerRegistry struct{ *recorder }

func (r schedulerRegistry) Register(m metrics.Registerable) error {
	m.Create(&semver.Version{Major: 1, Minor: 37})
	return r.recorder.Register(m)
}

func (r schedulerRegistry) CustomRegister(c metrics.StableCollector) error {
	c.Create(&semver.Version{Major: 1, Minor: 37}, c)
	return r.recorder.Register(c)
}
