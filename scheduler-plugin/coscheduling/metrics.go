// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"fmt"
	"time"

	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
)

// gangMetrics are the plugin's metrics, served beside kube-scheduler's own.
type gangMetrics struct {
	cycles       *metrics.CounterVec
	duration     *metrics.HistogramVec
	members      *metrics.Counter
	bindFailures *metrics.Counter
	preemptions  *metrics.Counter
	victims      *metrics.Counter
	overdue      *metrics.Counter
}

// Results of a gang cycle.
const (
	resultPlaced        = "placed"
	resultUnschedulable = "unschedulable"
	resultError         = "error"
)

// registry is where metrics are registered.
type registry interface {
	Register(metrics.Registerable) error
	CustomRegister(metrics.StableCollector) error
}

// servedRegistry is the one that the scheduler serves.
type servedRegistry struct{}

func (servedRegistry) Register(r metrics.Registerable) error { return legacyregistry.Register(r) }

func (servedRegistry) CustomRegister(c metrics.StableCollector) error {
	return legacyregistry.CustomRegister(c)
}

// newGangMetrics registers the metrics. waiting counts the gangs that wait, by
// reason, when it is asked.
func newGangMetrics(registry registry, waiting func() map[string]int) (*gangMetrics, error) {
	const subsystem = "lockstep_scheduler"
	m := &gangMetrics{
		cycles: metrics.NewCounterVec(&metrics.CounterOpts{
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
		bindFailures: metrics.NewCounter(&metrics.CounterOpts{
			Subsystem: subsystem, Name: "gang_member_bind_failures_total", StabilityLevel: metrics.ALPHA,
			Help: "Members of gangs whose binding failed for good and that were planned anew.",
		}),
	}
	m.preemptions = metrics.NewCounter(&metrics.CounterOpts{
		Subsystem: subsystem, Name: "gang_preemptions_total", StabilityLevel: metrics.ALPHA,
		Help: "How often Pods of lower priority were evicted for a gang.",
	})
	m.victims = metrics.NewCounter(&metrics.CounterOpts{
		Subsystem: subsystem, Name: "gang_preemption_victims_total", StabilityLevel: metrics.ALPHA,
		Help: "Pods evicted for gangs, and the rest of gangs that lost members to preemption.",
	})
	m.overdue = metrics.NewCounter(&metrics.CounterOpts{
		Subsystem: subsystem, Name: "gang_cycles_given_up_total", StabilityLevel: metrics.ALPHA,
		Help: "Gang cycles that were given up because they took longer than turnTimeout.",
	})
	for _, r := range []metrics.Registerable{m.cycles, m.duration, m.members, m.bindFailures, m.preemptions, m.victims, m.overdue} {
		if err := registry.Register(r); err != nil {
			return nil, fmt.Errorf("registering metrics: %w", err)
		}
	}
	if err := registry.CustomRegister(&waitingCollector{waiting: waiting, desc: metrics.NewDesc(
		subsystem+"_waiting_gangs", "Gangs with members that wait, by reason.",
		[]string{"reason"}, nil, metrics.ALPHA, "")}); err != nil {
		return nil, fmt.Errorf("registering metrics: %w", err)
	}
	return m, nil
}

// observeCycle counts one gang cycle.
func (m *gangMetrics) observeCycle(start time.Time, why *shortfall, err error, members int) {
	result := resultPlaced
	switch {
	case err != nil:
		result = resultError
	case why != nil:
		result = resultUnschedulable
	default:
		m.members.Add(float64(members))
	}
	m.cycles.WithLabelValues(result).Inc()
	m.duration.WithLabelValues(result).Observe(time.Since(start).Seconds())
}

// waitingCollector counts when it is scraped, so that nothing has to be kept up
// to date in between.
type waitingCollector struct {
	metrics.BaseStableCollector
	waiting func() map[string]int
	desc    *metrics.Desc
}

func (c *waitingCollector) DescribeWithStability(ch chan<- *metrics.Desc) {
	ch <- c.desc
}

func (c *waitingCollector) CollectWithStability(ch chan<- metrics.Metric) {
	for reason, n := range c.waiting() {
		ch <- metrics.NewLazyConstMetric(c.desc, metrics.GaugeValue, float64(n), reason)
	}
}
