// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package tracing

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"
)

// exporter sends spans, unless err says why not.
type exporter struct {
	sdktrace.SpanExporter
	err error
}

func (e *exporter) ExportSpans(context.Context, []sdktrace.ReadOnlySpan) error { return e.err }

// TestACollectorFillsNoLog: neither by what it answers, nor by how often it can't be reached.
func TestACollectorFillsNoLog(t *testing.T) {
	logger := ktesting.NewLogger(t, ktesting.NewConfig(ktesting.BufferLogs(true)))
	klog.SetLogger(logger)
	defer klog.ClearLogger()
	synctest.Test(t, func(t *testing.T) {
		inner := &exporter{}
		c := &complaining{SpanExporter: inner}
		send := func(err error) {
			inner.err = err
			if err := c.ExportSpans(t.Context(), nil); err != nil {
				t.Error(err)
			}
			time.Sleep(5 * time.Second)
		}
		for range 100 {
			send(errors.New(strings.Repeat("no ", 1<<20)))
			send(nil)
		}
		for range 20 {
			send(nil)
		}
		send(errors.New("gone"))
	})
	log := logger.GetSink().(ktesting.Underlier).GetBuffer().String()
	if failed, again := strings.Count(log, "can't be sent"), strings.Count(log, "sent again"); failed != 2 || again != 1 {
		t.Errorf("%d lines say that traces can't be sent, want 2, and %d that they can be, want 1", failed, again)
	}
	if len(log) > 4096 {
		t.Errorf("the log has %d bytes", len(log))
	}
}
