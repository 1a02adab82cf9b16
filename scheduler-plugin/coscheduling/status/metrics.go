// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"fmt"
	"time"

	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
)

// Metrics are the plugin's metrics, served beside kube-scheduler's own.
type Metrics struct {
	// Cycles counts gang cycles by Result.
	Cycles *metrics.CounterVec
	// BindFailures counts members whose binding failed for good.
	BindFailures *metrics.Counter
	// Preemptions counts how often a gang preempted Pods, and Victims those Pods and the
	// rest of gangs that lost members to preemption.
	Preemptions, Victims *metrics.Counter
	// Overdue counts gang cycles that were given up because they took too long.
	Overdue *metrics.Counter
	// Provisions counts what has become of room that was kept for members to come, by result.
	Provisions *metrics.CounterVec

	duration *metrics.HistogramVec
	members  *metrics.Counter
}

// Result is how a gang cycle ended.
type Result string

// Results of a gang cycle.
const (
	Placed        Result = "placed"
	Unschedulable Result = "unschedulable"
	Failed        Result = "error"
)

// Registry is where metrics are registered.
type Registry interface {
	Register(metrics.Registerable) error
	CustomRegister(metrics.StableCollector) error
}

// ServedRegistry is the one that the scheduler serves.
func ServedRegistry() Registry {
	return servedRegistry{}
}

type servedRegistry struct{}

func (servedRegistry) Register(r metrics.Registerable) error { return legacyregistry.Register(r) }

func (servedRegistry) CustomRegister(c metrics.StableCollector) error {
	return legacyregistry.CustomRegister(c)
}

// NewMetrics registers the metrics. When they are asked, waiting counts the gangs that wait, by
// reason, foreign the groups whose status is left to other programs, by their API group, rivals are the
// scheduler names of which another scheduler is known, and held is how much room is kept for members to
// come, by resource.
func NewMetrics(registry Registry, waiting, foreign func() map[string]int, rivals func() []string, held func() map[string]float64) (*Metrics, error) {
	const subsystem = "lockstep_scheduler"
	m := &Metrics{
		Cycles: metrics.NewCounterVec(&metrics.CounterOpts{
			Subsystem: subsystem, Name: "gang_cycles_total", StabilityLevel: metrics.ALPHA,
			Help: "Gang cycles by result: placed, unschedulable or error.",
		}, []string{"result"}),
		duration: metrics.NewHistogramVec(&metrics.HistogramOpts{
			Subsystem: subsystem, Name: "gang_cycle_duration_seconds", StabilityLevel: metrics.ALPHA,
			Help:    "Time that a gang cycle holds the scheduling goroutine, by result.",
			Buckets: metrics.ExponentialBuckets(0.001, 2, 15),
		}, []string{"result"}),
		members: metrics.NewCounter(&metrics.CounterOpts{
			Subsystem: subsystem, Name: "gang_members_placed_total", StabilityLevel: metrics.ALPHA,
			Help: "Members of gangs that were given a node.",
		}),
		BindFailures: metrics.NewCounter(&metrics.CounterOpts{
			Subsystem: subsystem, Name: "gang_member_bind_failures_total", StabilityLevel: metrics.ALPHA,
			Help: "Members of gangs whose binding failed for good and that were planned anew.",
		}),
	}
	m.Preemptions = metrics.NewCounter(&metrics.CounterOpts{
		Subsystem: subsystem, Name: "gang_preemptions_total", StabilityLevel: metrics.ALPHA,
		Help: "How often Pods of lower priority were evicted for a gang.",
	})
	m.Victims = metrics.NewCounter(&metrics.CounterOpts{
		Subsystem: subsystem, Name: "gang_preemption_victims_total", StabilityLevel: metrics.ALPHA,
		Help: "Pods evicted for gangs, and the rest of gangs that lost members to preemption.",
	})
	m.Overdue = metrics.NewCounter(&metrics.CounterOpts{
		Subsystem: subsystem, Name: "gang_cycles_given_up_total", StabilityLevel: metrics.ALPHA,
		Help: "Gang cycles that were given up because they took longer than turnTimeout.",
	})
	m.Provisions = metrics.NewCounterVec(&metrics.CounterOpts{
		Subsystem: subsystem, Name: "reservations_total", StabilityLevel: metrics.ALPHA,
		Help: "Rooms that were kept for members to come and are not any more, by result: filled, expired, lost or gone.",
	}, []string{"result"})
	for _, r := range []metrics.Registerable{m.Cycles, m.duration, m.members, m.BindFailures, m.Preemptions, m.Victims, m.Overdue, m.Provisions} {
		if err := registry.Register(r); err != nil {
			return nil, fmt.Errorf("registering metrics: %w", err)
		}
	}
	gauges := []*askedCollector{
		{ask: func() map[string]float64 { return floats(waiting()) }, desc: metrics.NewDesc(subsystem+"_waiting_gangs", "Gangs with members that wait, by reason.",
			[]string{"reason"}, nil, metrics.ALPHA, "")},
		{ask: func() map[string]float64 { return floats(foreign()) }, desc: metrics.NewDesc(subsystem+"_foreign_writers", "PodGroups whose status is left to another program that writes it, by the API group of their kind.",
			[]string{"group"}, nil, metrics.ALPHA, "")},
		{ask: func() map[string]float64 { return ones(rivals()) }, desc: metrics.NewDesc(subsystem+"_rivals",
			"1 for each scheduler name that another scheduler serves, too, as far as is known.",
			[]string{"scheduler_name"}, nil, metrics.ALPHA, "")},
		{ask: held, desc: metrics.NewDesc(subsystem+"_reserved_resources",
			"Room that is kept for members to come, by resource: cores of CPU, bytes, or the number.",
			[]string{"resource"}, nil, metrics.ALPHA, "")},
	}
	for _, gauge := range gauges {
		if err := registry.CustomRegister(gauge); err != nil {
			return nil, fmt.Errorf("registering metrics: %w", err)
		}
	}
	return m, nil
}

// ObserveCycle counts a gang cycle that took so long, and the members that it placed.
func (m *Metrics) ObserveCycle(result Result, took time.Duration, members int) {
	if result == Placed {
		m.members.Add(float64(members))
	}
	m.Cycles.WithLabelValues(string(result)).Inc()
	m.duration.WithLabelValues(string(result)).Observe(took.Seconds())
}

// floats are counts as metrics have them.
func floats(counts map[string]int) map[string]float64 {
	values := make(map[string]float64, len(counts))
	for name, n := range counts {
		values[name] = float64(n)
	}
	return values
}

// ones are 1 for each of the names.
func ones(names []string) map[string]float64 {
	counts := make(map[string]float64, len(names))
	for _, name := range names {
		counts[name] = 1
	}
	return counts
}

// askedCollector asks for numbers by a label when it is scraped, so that nothing has to be kept up
// to date in between.
type askedCollector struct {
	metrics.BaseStableCollector
	ask  func() map[string]float64
	desc *metrics.Desc
}

func (c *askedCollector) DescribeWithStability(ch chan<- *metrics.Desc) {
	ch <- c.desc
}

func (c *askedCollector) CollectWithStability(ch chan<- metrics.Metric) {
	for label, n := range c.ask() {
		ch <- metrics.NewLazyConstMetric(c.desc, metrics.GaugeValue, n, label)
	}
}
