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
	// BindFailures counts members that could not be bound.
	BindFailures *metrics.Counter
	// Preemptions counts how often a gang preempted Pods. Victims counts these Pods, and the remaining Pods of gangs
	// that lost members to preemption.
	Preemptions, Victims *metrics.Counter
	// ForeignBindings counts waiting members that another scheduler bound, by scheduler name.
	ForeignBindings *metrics.CounterVec
	// Overdue counts gang cycles that were given up because they took too long.
	Overdue *metrics.Counter
	// Reservations counts the ended reservations for members to come, by result.
	Reservations *metrics.CounterVec

	duration *metrics.HistogramVec
	members  *metrics.Counter
}

// Result is the outcome of a gang cycle.
type Result string

// The outcomes of a gang cycle.
const (
	Placed        Result = "placed"
	Unschedulable Result = "unschedulable"
	Failed        Result = "error"
)

// Registry registers metrics.
type Registry interface {
	Register(metrics.Registerable) error
	CustomRegister(metrics.StableCollector) error
}

// ServedRegistry returns the registry that the scheduler serves.
func ServedRegistry() Registry {
	return servedRegistry{}
}

type servedRegistry struct{}

func (servedRegistry) Register(r metrics.Registerable) error { return legacyregistry.Register(r) }

func (servedRegistry) CustomRegister(c metrics.StableCollector) error {
	return legacyregistry.CustomRegister(c)
}

// Asked has functions that are called at each scrape.
type Asked struct {
	// Waiting counts the gangs that wait, by reason.
	Waiting func() map[string]int
	// Foreign counts, by API group, the groups with a status that this scheduler leaves to other programs.
	Foreign func() map[string]int
	// Reserved returns how much of the nodes is kept free for gangs, by reason and resource.
	Reserved func() map[Kind]float64
	// PodGroupAPIs returns the PodGroup APIs of other projects, and whether they are served.
	PodGroupAPIs func() []PodGroupAPI
}

// Kind is the reason for a reservation, and the name of a resource that is reserved.
type Kind struct{ Reason, Resource string }

// PodGroupAPI reports whether the PodGroups of another project are served, and why.
type PodGroupAPI struct {
	// Group is the API group of the kind. Mode is the configured mode.
	Group, Mode string
	// On reports that the PodGroup API is on: a Pod that names such a group is a member. Served reports that the groups
	// can be read.
	On, Served bool
	Reason     string
}

// String returns the text for logs.
func (d PodGroupAPI) String() string {
	state := "off"
	if d.On {
		state = "on"
	}
	return fmt.Sprintf("%s %s (%s): %s", d.Group, state, d.Mode, d.Reason)
}

// NewMetrics registers the metrics.
func NewMetrics(registry Registry, asked *Asked) (*Metrics, error) {
	const subsystem = "lockstep_scheduler"
	var all []metrics.Registerable
	counter := func(name, help string) *metrics.Counter {
		c := metrics.NewCounter(&metrics.CounterOpts{Subsystem: subsystem, Name: name, StabilityLevel: metrics.ALPHA, Help: help})
		all = append(all, c)
		return c
	}
	counterBy := func(label, name, help string) *metrics.CounterVec {
		c := metrics.NewCounterVec(&metrics.CounterOpts{Subsystem: subsystem, Name: name, StabilityLevel: metrics.ALPHA, Help: help}, []string{label})
		all = append(all, c)
		return c
	}
	m := &Metrics{
		Cycles:       counterBy("result", "gang_cycles_total", "Gang cycles by result: placed, unschedulable or error."),
		members:      counter("gang_members_placed_total", "Members of gangs that were given a node."),
		BindFailures: counter("gang_member_bind_failures_total", "Members of gangs whose binding failed for good and that were planned anew."),
		Preemptions:  counter("gang_preemptions_total", "How often Pods of lower priority were evicted for a gang."),
		Victims:      counter("gang_preemption_victims_total", "Pods evicted for gangs, and the rest of gangs that lost members to preemption."),
		ForeignBindings: counterBy("scheduler_name", "foreign_bindings_total",
			"Members of gangs that waited here and were bound by another scheduler, by the scheduler name of their Pods."),
		Overdue: counter("gang_cycles_given_up_total", "Gang cycles that were given up because they took longer than cycleTimeout."),
		Reservations: counterBy("result", "reservations_total",
			"Rooms that were kept for members to come and are not any more, by result: filled, expired, lost or gone."),
		duration: metrics.NewHistogramVec(&metrics.HistogramOpts{
			Subsystem: subsystem, Name: "gang_cycle_duration_seconds", StabilityLevel: metrics.ALPHA,
			Help:    "Time that a gang cycle holds the scheduling goroutine, by result.",
			Buckets: metrics.ExponentialBuckets(0.001, 2, 15),
		}, []string{"result"}),
	}
	for _, r := range append(all, m.duration) {
		if err := registry.Register(r); err != nil {
			return nil, fmt.Errorf("registering metrics: %w", err)
		}
	}
	gauge := func(name, help string, labels ...string) *metrics.Desc {
		return metrics.NewDesc(subsystem+"_"+name, help, labels, nil, metrics.ALPHA, "")
	}
	gauges := []*askedCollector{
		{ask: func() []sample { return counts(asked.Waiting()) }, desc: gauge("waiting_gangs", "Gangs with members that wait, by reason.", "reason")},
		{ask: func() []sample { return counts(asked.Foreign()) }, desc: gauge("foreign_writers",
			"PodGroups whose status is left to another program that writes it, by the API group of their kind.", "group")},
		{ask: func() []sample { return amounts(asked.Reserved()) }, desc: gauge("reserved_resources",
			"Room that is kept free for gangs, as of the last cycle of each, by the reason for the reservation and by resource: cores of CPU, bytes, or the number.", "reason", "resource")},
		{ask: func() []sample { return states(asked.PodGroupAPIs()) }, desc: gauge("podgroup_apis",
			"1 for each PodGroup API of another project that is served, 0 for one that is not, by its API group, the mode in the configuration and why.", "group", "mode", "reason")},
	}
	for _, gauge := range gauges {
		if err := registry.CustomRegister(gauge); err != nil {
			return nil, fmt.Errorf("registering metrics: %w", err)
		}
	}
	return m, nil
}

// ObserveCycle counts a gang cycle, its duration, and the members that it placed.
func (m *Metrics) ObserveCycle(result Result, took time.Duration, members int) {
	if result == Placed {
		m.members.Add(float64(members))
	}
	m.Cycles.WithLabelValues(string(result)).Inc()
	m.duration.WithLabelValues(string(result)).Observe(took.Seconds())
}

// sample is a value with the values of its labels.
type sample struct {
	labels []string
	value  float64
}

// amounts returns a sample for each kind.
func amounts(of map[Kind]float64) []sample {
	samples := make([]sample, 0, len(of))
	for kind, amount := range of {
		samples = append(samples, sample{[]string{kind.Reason, kind.Resource}, amount})
	}
	return samples
}

// counts returns a sample for each value of one label.
func counts(numbers map[string]int) []sample {
	samples := make([]sample, 0, len(numbers))
	for label, n := range numbers {
		samples = append(samples, sample{[]string{label}, float64(n)})
	}
	return samples
}

// states returns one sample for each API. Its value is 1 if the API's groups can be read, else 0.
func states(apis []PodGroupAPI) []sample {
	samples := make([]sample, 0, len(apis))
	for _, d := range apis {
		value := 0.0
		if d.Served {
			value = 1
		}
		samples = append(samples, sample{[]string{d.Group, d.Mode, d.Reason}, value})
	}
	return samples
}

// askedCollector computes its samples when it is scraped.
type askedCollector struct {
	metrics.BaseStableCollector
	ask  func() []sample
	desc *metrics.Desc
}

func (c *askedCollector) DescribeWithStability(ch chan<- *metrics.Desc) {
	ch <- c.desc
}

func (c *askedCollector) CollectWithStability(ch chan<- metrics.Metric) {
	for _, s := range c.ask() {
		ch <- metrics.NewLazyConstMetric(c.desc, metrics.GaugeValue, s.value, s.labels...)
	}
}
