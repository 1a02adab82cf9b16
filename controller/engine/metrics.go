// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/tools/cache"

	"github.com/lockstep-k8s/lockstep/controller/engine/plan"
)

// metrics are what the controller counts about itself.
type metrics struct {
	syncSeconds        prometheus.Histogram
	syncErrors         prometheus.Counter
	panics             prometheus.Counter
	statusWrites       prometheus.Counter
	statusWriteBytes   prometheus.Counter
	statusWriteSeconds prometheus.Histogram
	statusConflicts    prometheus.Counter
	statusTooLarge     prometheus.Counter
	actions            *prometheus.CounterVec
	statusBytes        prometheus.Histogram
	owners             *prometheus.GaugeVec
	started            *prometheus.CounterVec
	attempts           *prometheus.CounterVec
	retries            *prometheus.CounterVec
	completed          *prometheus.CounterVec
	toRun              *prometheus.HistogramVec
	waits              *prometheus.HistogramVec
}

// namespace and subsystem begin the names of metrics.
const namespace, subsystem = "lockstep", "controller"

// newMetrics makes and registers the metrics. At each scrape it calls queueLength, and `longest`, which returns how
// long the oldest running sync has been running.
func newMetrics(registerer prometheus.Registerer, queueLength func() int, longest func() time.Duration) (*metrics, error) {
	counters := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: namespace, Subsystem: subsystem, Name: name, Help: help}, labels)
	}
	histograms := func(name, help string, labels ...string) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: namespace, Subsystem: subsystem, Name: name, Help: help,
			Buckets: []float64{1, 2, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 4 * 3600, 12 * 3600, 24 * 3600, 72 * 3600},
		}, labels)
	}
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Namespace: namespace, Subsystem: subsystem, Name: name, Help: help})
	}
	histogram := func(name, help string) prometheus.Histogram {
		return prometheus.NewHistogram(prometheus.HistogramOpts{
			Namespace: namespace, Subsystem: subsystem, Name: name, Help: help,
			Buckets: append([]float64{0.001, 0.0025}, prometheus.DefBuckets...),
		})
	}
	m := &metrics{
		syncSeconds:        histogram("sync_duration_seconds", "Time that syncs of an owner, such as a Framework, take of a worker. One that waits for the API server for long gives its worker back."),
		syncErrors:         counter("sync_errors_total", "Syncs with requests that failed, or that failed as a whole. They are tried again."),
		panics:             counter("panics_total", "Faults of the controller, each of which costs one owner a while."),
		statusWrites:       counter("status_writes_total", "Writes of an owner's status."),
		statusWriteBytes:   counter("status_write_bytes_total", "Bytes sent in writes of an owner's status."),
		statusWriteSeconds: histogram("status_write_duration_seconds", "Time that writes of an owner's status take."),
		statusConflicts:    counter("status_write_conflicts_total", "Writes of an owner's status that found it changed by others."),
		statusTooLarge:     counter("status_too_large_total", "Writes of an owner's status that were refused for their size."),
		actions:            counters("actions_total", "Actions on objects of owners, by kind and result.", "kind", "result"),
		statusBytes: prometheus.NewHistogram(prometheus.HistogramOpts{
			Namespace: namespace, Subsystem: subsystem, Name: "status_size_bytes", Help: "Sizes of the statuses that are written. The API server takes some 1.5 MB.",
			Buckets: prometheus.ExponentialBuckets(1<<10, 2, 12),
		}),
		owners: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Namespace: namespace, Subsystem: subsystem, Name: "owners", Help: "Frameworks, and jobs of other kinds, by kind and state. Only the leader counts them.",
		}, []string{"kind", "state"}),
		started:   counters("attempts_started_total", "Attempts that have begun, of the whole Framework or of a task.", "kind", "level"),
		attempts:  counters("attempts_completed_total", "Attempts that have ended, by completion code and type. A code that is none of those from -999 to 999 is Other.", "kind", "level", "code", "type"),
		retries:   counters("retries_total", "Retries and restarts, by what the attempt before ended with.", "kind", "level", "reason"),
		completed: counters("owners_completed_total", "Frameworks, and jobs of other kinds, that have ended, by type.", "kind", "type"),
		toRun:     histograms("time_to_run_seconds", "Time from the creation of a Framework, or a job of another kind, until it first runs.", "kind"),
		waits:     histograms("wait_duration_seconds", "How long Frameworks have waited for what keeps their tasks from running, by the last reason.", "kind", "reason"),
	}
	for _, collector := range []prometheus.Collector{
		m.syncSeconds, m.syncErrors, m.panics, m.statusWrites, m.statusWriteBytes, m.statusWriteSeconds, m.statusConflicts,
		m.statusTooLarge, m.actions, m.statusBytes, m.owners, m.started, m.attempts, m.retries, m.completed, m.toRun, m.waits,
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Namespace: namespace, Subsystem: subsystem, Name: "longest_sync_seconds",
			Help: "For how long the sync has been running that runs for the longest time. After 20 minutes /healthz fails.",
		}, func() float64 { return longest().Seconds() }),
		gauge("queue_length", "Owners, such as Frameworks, that wait for a sync.", queueLength),
	} {
		if err := registerer.Register(collector); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// gauge returns a metric that is asked for at each scrape.
func gauge(name, help string, value func() int) prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Namespace: namespace, Subsystem: subsystem, Name: name, Help: help},
		func() float64 { return float64(value()) })
}

func (m *metrics) action(does string, err error) {
	result := "ok"
	if err != nil {
		result = "error"
	}
	m.actions.WithLabelValues(does, result).Inc()
}

// count counts what has happened to an owner of a kind.
func (m *metrics) count(kind string, turns []plan.Turn) {
	for _, turn := range turns {
		level := "owner"
		if turn.Task {
			level = "task"
		}
		switch turn.Kind {
		case plan.AttemptStarted:
			m.started.WithLabelValues(kind, level).Inc()
		case plan.AttemptCompleted:
			m.attempts.WithLabelValues(kind, level, turn.Code, turn.Type).Inc()
		case plan.Retried:
			m.retries.WithLabelValues(kind, level, turn.Reason).Inc()
		case plan.Ran:
			m.toRun.WithLabelValues(kind).Observe(turn.Took.Seconds())
		case plan.Waited:
			m.waits.WithLabelValues(kind, turn.Reason).Observe(turn.Took.Seconds())
		case plan.Completed:
			m.completed.WithLabelValues(kind, turn.Type).Inc()
		}
	}
}

// states are the states of the owners of a kind.
type states struct {
	mu    sync.Mutex
	of    map[cache.ObjectName]string
	gauge *prometheus.GaugeVec // by state
}

func (m *metrics) statesOf(kind string) *states {
	return &states{of: map[cache.ObjectName]string{}, gauge: m.owners.MustCurryWith(prometheus.Labels{"kind": kind})}
}

// set notes the state of an owner. The empty one is not counted.
func (s *states) set(key cache.ObjectName, state string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.of[key]
	if before == state {
		return
	}
	if before != "" {
		s.gauge.WithLabelValues(before).Dec()
	}
	if state == "" {
		delete(s.of, key)
		return
	}
	s.of[key] = state
	s.gauge.WithLabelValues(state).Inc()
}

func (s *states) remove(key cache.ObjectName) { s.set(key, "") }

// keySet is a set of owners that is counted from another goroutine.
type keySet struct {
	mu   sync.Mutex
	keys map[cache.ObjectName]string
}

func (s *keySet) add(key cache.ObjectName, version string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keys[key] = version
}

func (s *keySet) remove(key cache.ObjectName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.keys, key)
}

// version returns the version with which a key was added; "" if the key was not added.
func (s *keySet) version(key cache.ObjectName) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.keys[key]
}

func (s *keySet) len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.keys)
}
