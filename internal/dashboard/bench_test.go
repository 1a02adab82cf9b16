// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"net/http"
	"testing"
)

// BenchmarkPageOfTenThousandTasks is how long the page of a Framework takes that has as many tasks as the API allows, and
// what memory: with reading the Framework and its Pods from an API server.
func BenchmarkPageOfTenThousandTasks(b *testing.B) {
	s := newSite(b)
	s.holdsTenThousandTasks()
	b.ReportAllocs()
	for b.Loop() {
		w := s.get("/frameworks/a/large")
		if w.Code != http.StatusOK {
			b.Fatal(w.Code, w.Body)
		}
		b.ReportMetric(float64(w.Body.Len()), "page-B")
	}
}
