// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package tracing

import (
	"context"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"k8s.io/klog/v2"
)

// complaining logs once that spans can't be sent, and once that they can be again. One goroutine at a
// time uses it.
type complaining struct {
	sdktrace.SpanExporter
	failing bool
}

// ExportSpans sends spans. Those that can't be sent are lost.
func (c *complaining) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	err := c.SpanExporter.ExportSpans(ctx, spans)
	switch {
	case err != nil && !c.failing:
		klog.Background().Error(err, "Traces can't be sent, and are lost until they can be")
	case err == nil && c.failing:
		klog.Background().Info("Traces are sent again")
	}
	c.failing = err != nil
	return nil
}
