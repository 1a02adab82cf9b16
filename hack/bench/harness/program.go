// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"math"
	"net/http"
	"slices"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// Metrics are what a program said of itself at one moment, by metric name.
type Metrics map[string]*dto.MetricFamily

// Metrics reads the metrics of a program that serves them without
// authentication.
func (c *Cluster) Metrics(ctx context.Context, component string) (Metrics, error) {
	program, err := c.Program(component)
	if err != nil {
		return nil, err
	}
	return MetricsAt(ctx, program.Address)
}

// MetricsAt reads the metrics that are served at an address, host:port.
func MetricsAt(ctx context.Context, address string) (Metrics, error) {
	return scrape(ctx, "http://"+address+"/metrics")
}

func scrape(ctx context.Context, url string) (Metrics, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, fmt.Errorf("reading metrics: %w", err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", url, err)
	}
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("reading %s: %s", url, response.Status)
	}
	metrics, err := parseMetrics(body)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", url, err)
	}
	return metrics, nil
}

func parseMetrics(text []byte) (Metrics, error) {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	return parser.TextToMetricFamilies(bytes.NewReader(text))
}

// Sum adds up all values of a counter or gauge, 0 if there is none.
func (m Metrics) Sum(name string) float64 {
	var sum float64
	for _, metric := range m[name].GetMetric() {
		sum += metric.GetCounter().GetValue() + metric.GetGauge().GetValue()
	}
	return sum
}

// CPU is the processor time that the program has used.
func (m Metrics) CPU() time.Duration {
	return time.Duration(m.Sum("process_cpu_seconds_total") * float64(time.Second))
}

// MiB is how much memory the program holds.
func (m Metrics) MiB() float64 {
	return m.Sum("process_resident_memory_bytes") / (1 << 20)
}

// Quantile is the least bound of a histogram's buckets that so large a part, 0
// to 1, of what was observed between before and m keeps to. It is +Inf if the
// last bucket does not hold enough, and 0 if nothing was observed.
func (m Metrics) Quantile(before Metrics, name string, part float64) float64 {
	is, was := m.buckets(name), before.buckets(name)
	total := m.Observed(name) - before.Observed(name)
	if total == 0 {
		return 0
	}
	for _, bound := range slices.Sorted(maps.Keys(is)) {
		if is[bound]-was[bound] >= part*total {
			return bound
		}
	}
	return math.Inf(1)
}

// Share is which part, 0 to 1, of what a histogram observed between before and m
// was at most a bound that its buckets have.
func (m Metrics) Share(before Metrics, name string, bound float64) float64 {
	total := m.Observed(name) - before.Observed(name)
	if total == 0 {
		return 1
	}
	return (m.buckets(name)[bound] - before.buckets(name)[bound]) / total
}

// buckets are the cumulative counts of a histogram by bound.
func (m Metrics) buckets(name string) map[float64]float64 {
	counts := map[float64]float64{}
	for _, metric := range m[name].GetMetric() {
		for _, bucket := range metric.GetHistogram().GetBucket() {
			counts[bucket.GetUpperBound()] += float64(bucket.GetCumulativeCount())
		}
	}
	return counts
}

// Observed is how often a histogram has observed.
func (m Metrics) Observed(name string) float64 {
	var count float64
	for _, metric := range m[name].GetMetric() {
		count += float64(metric.GetHistogram().GetSampleCount())
	}
	return count
}

// WatchMemory looks at a program's memory every second until stop is called,
// which returns the most that was seen, in MiB.
func (c *Cluster) WatchMemory(ctx context.Context, component string) (stop func() (float64, error)) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	var most float64
	var last error
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			metrics, err := c.Metrics(ctx, component)
			if err == nil {
				most = max(most, metrics.MiB())
			} else if ctx.Err() == nil {
				last = err
			}
			select {
			case <-ctx.Done():
			case <-time.After(time.Second):
			}
		}
	}()
	return func() (float64, error) {
		cancel()
		<-done
		return most, last
	}
}
