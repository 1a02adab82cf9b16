// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/tools/cache"
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
}

// namespace and subsystem begin the names of metrics.
const namespace, subsystem = "lockstep", "controller"

// newMetrics makes and registers the metrics. queueLength is asked for at each
// scrape.
func newMetrics(registerer prometheus.Registerer, queueLength func() int) (*metrics, error) {
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
		actions: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: namespace, Subsystem: subsystem, Name: "actions_total",
			Help: "Actions on objects of owners, by kind and result.",
		}, []string{"kind", "result"}),
	}
	for _, collector := range []prometheus.Collector{
		m.syncSeconds, m.syncErrors, m.panics, m.statusWrites, m.statusWriteBytes, m.statusWriteSeconds, m.statusConflicts,
		m.statusTooLarge, m.actions,
		gauge("queue_length", "Owners, such as Frameworks, that wait for a sync.", queueLength),
	} {
		if err := registerer.Register(collector); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// gauge is a metric that is asked for at each scrape.
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

// version is the version with which a key was added, empty if it was not.
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
