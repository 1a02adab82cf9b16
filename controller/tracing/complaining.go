// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package tracing

import (
	"context"
	"errors"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"k8s.io/klog/v2"

	"github.com/lockstep-k8s/lockstep/internal/text"
)

const (
	// maxComplaint limits how many bytes of an error are logged. The error may quote megabytes of the collector's
	// answer.
	maxComplaint = 512
	// wellAfter is for how long spans are sent before that is believed to last.
	wellAfter = time.Minute
)

// complaining logs once when spans can't be sent, and once when they can be sent again. One goroutine at a time uses
// it.
type complaining struct {
	sdktrace.SpanExporter
	failing bool
	// since is since when spans are sent again, zero if they are not.
	since time.Time
}

// ExportSpans sends spans. Spans that can't be sent are lost.
func (c *complaining) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	err := c.SpanExporter.ExportSpans(ctx, spans)
	switch {
	case err != nil:
		if !c.failing {
			klog.Background().Error(errors.New(text.Shorten(err.Error(), maxComplaint)), "Traces can't be sent, and are lost until they can be")
		}
		c.failing, c.since = true, time.Time{}
	case !c.failing:
	case c.since.IsZero():
		c.since = time.Now()
	case time.Since(c.since) >= wellAfter:
		klog.Background().Info("Traces are sent again")
		c.failing = false
	}
	return nil
}
