// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Writes counts the requests that asked the API server for a change, by verb, resource and subresource:
// "PATCH frameworks/status".
type Writes map[string]int

// APIServerMetrics reads the metrics of the API server.
func (c *Cluster) APIServerMetrics(ctx context.Context) (Metrics, error) {
	text, err := c.Kube.CoreV1().RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
	if err != nil {
		return nil, fmt.Errorf("reading the metrics of the API server: %w", err)
	}
	return parseMetrics(text)
}

// Writes returns the requests for a change that the API server answered before it showed these metrics.
func (m Metrics) Writes() Writes {
	writes := Writes{}
	for _, metric := range m["apiserver_request_total"].GetMetric() {
		labels := map[string]string{}
		for _, label := range metric.GetLabel() {
			labels[label.GetName()] = label.GetValue()
		}
		switch labels["verb"] {
		case "POST", "PUT", "PATCH", "APPLY", "DELETE":
			what := labels["verb"] + " " + labels["resource"]
			if labels["subresource"] != "" {
				what += "/" + labels["subresource"]
			}
			writes[what] += int(metric.GetCounter().GetValue())
		}
	}
	return writes
}

// Since returns the writes that are in w and were not in earlier.
func (w Writes) Since(earlier Writes) Writes {
	since := Writes{}
	for what, n := range w {
		if n > earlier[what] {
			since[what] = n - earlier[what]
		}
	}
	return since
}

// String lists the writes, the most frequent first.
func (w Writes) String() string {
	total := 0
	for _, n := range w {
		total += n
	}
	lines := []string{fmt.Sprintf("%d writes", total)}
	for _, what := range slices.SortedStableFunc(maps.Keys(w), func(a, b string) int {
		if w[a] != w[b] {
			return w[b] - w[a]
		}
		return strings.Compare(a, b)
	}) {
		lines = append(lines, fmt.Sprintf("%d %s", w[what], what))
	}
	return strings.Join(lines, ", ")
}
