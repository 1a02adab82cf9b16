// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"time"

	"k8s.io/component-base/metrics"

	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/status"
)

// gangMetrics are the plugin's metrics in the terms of a gang cycle.
type gangMetrics struct {
	*status.Metrics
	overdue *metrics.Counter
}

// newGangMetrics registers the metrics. waiting counts the gangs that wait, by
// reason, when it is asked.
func newGangMetrics(registry status.Registry, waiting func() map[string]int) (*gangMetrics, error) {
	m, err := status.NewMetrics(registry, waiting)
	if err != nil {
		return nil, err
	}
	return &gangMetrics{Metrics: m, overdue: m.Overdue}, nil
}

// observeCycle counts one gang cycle.
func (m *gangMetrics) observeCycle(start time.Time, why *shortfall, err error, members int) {
	result := status.Placed
	switch {
	case err != nil:
		result = status.Failed
	case why != nil:
		result = status.Unschedulable
	}
	m.ObserveCycle(result, time.Since(start), members)
}
