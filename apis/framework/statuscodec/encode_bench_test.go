// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package statuscodec

import (
	"fmt"
	"testing"

	"github.com/lockstep-k8s/lockstep/internal/testing/statustest"
)

// BenchmarkEncodeStatus measures what a write of a large status costs before it
// is sent, if a tenth of the tasks has changed since the last one.
func BenchmarkEncodeStatus(b *testing.B) {
	for _, tasks := range []int{100, 1000, 10_000} {
		b.Run(fmt.Sprintf("%d tasks", tasks), func(b *testing.B) {
			status := statustest.Running(tasks)
			statuses := status.AttemptStatus.TaskRoleStatuses[0].TaskStatuses
			var encoder Encoder
			b.ReportAllocs()
			for b.Loop() {
				for i := 0; i < tasks; i += 10 {
					changed := *statuses[i]
					statuses[i] = &changed
				}
				data, err := encoder.Encode(status, true)
				if err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(float64(len(data))/float64(tasks), "bytes/task")
			}
		})
	}
}
