// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package testbed

import (
	"net/http"
	"strconv"
	"strings"
	"testing"
)

// Metric is the value of one series of the metrics of a program of Lockstep's, such as
// lockstep_controller_panics_total or name{kind="a",result="b"}; 0 if it has none. The token is that of
// a reader, empty where none is asked for.
func Metric(t testing.TB, url, token, series string) int {
	t.Helper()
	status, metrics := MustAsk(t, url+"/metrics", token)
	if status != http.StatusOK {
		t.Fatalf("%s/metrics answers with %d: %.200s", url, status, metrics)
	}
	value, _ := SeriesIn(t, metrics, series)
	return int(value)
}

// SeriesIn is the value of a series in a text of metrics, false if it is not there.
func SeriesIn(t testing.TB, metrics, series string) (value float64, found bool) {
	t.Helper()
	for line := range strings.Lines(metrics) {
		text, found := strings.CutPrefix(strings.TrimSpace(line), series+" ")
		if !found {
			continue
		}
		value, err := strconv.ParseFloat(text, 64)
		if err != nil {
			t.Fatalf("reading the metric %s: %v", series, err)
		}
		return value, true
	}
	return 0, false
}
