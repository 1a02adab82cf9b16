// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package tracing

import (
	"context"
	"fmt"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/lockstep-k8s/lockstep/controller/spans"
)

// Bounds of what waits to be sent, and of a try to send it.
const (
	maxQueued   = 8192
	maxSent     = 512
	sendAfter   = 2 * time.Second
	sendTimeout = 10 * time.Second
	maxText     = 256
)

// serviceName is the name of the sender.
const serviceName = "lockstep-controller"

// Tracer sends spans. None, which is nil, sends nothing.
type Tracer struct {
	provider *sdktrace.TracerProvider
	tracer   trace.Tracer
}

// New returns a Tracer. url is the address of a collector that accepts OTLP over HTTP, including the path. Headers and
// certificates are read from the environment variables OTEL_EXPORTER_OTLP_*.
func New(ctx context.Context, url string) (*Tracer, error) {
	exporter, err := otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(url), otlptracehttp.WithTimeout(sendTimeout))
	if err != nil {
		return nil, fmt.Errorf("making the exporter of traces: %w", err)
	}
	limits := sdktrace.NewSpanLimits()
	limits.AttributeValueLengthLimit = maxText
	provider := sdktrace.NewTracerProvider(
		sdktrace.WithSampler(sdktrace.AlwaysSample()),
		sdktrace.WithRawSpanLimits(limits),
		sdktrace.WithResource(resource.NewSchemaless(attribute.String("service.name", serviceName))),
		sdktrace.WithIDGenerator(given{}),
		sdktrace.WithBatcher(&complaining{SpanExporter: exporter},
			sdktrace.WithMaxQueueSize(maxQueued), sdktrace.WithMaxExportBatchSize(maxSent),
			sdktrace.WithBatchTimeout(sendAfter), sdktrace.WithExportTimeout(sendTimeout)),
	)
	return &Tracer{provider: provider, tracer: provider.Tracer("lockstep.dev/framework")}, nil
}

// Send queues spans without waiting. If the queue is full, it drops them.
func (t *Tracer) Send(ended []spans.Span) {
	if t == nil {
		return
	}
	for i := range ended {
		t.send(&ended[i])
	}
}

func (t *Tracer) send(s *spans.Span) {
	ctx := context.WithValue(context.Background(), idsKey{}, ids{trace.TraceID(s.Trace), trace.SpanID(s.ID)})
	if s.Parent != (spans.ID{}) {
		ctx = trace.ContextWithSpanContext(ctx, trace.NewSpanContext(trace.SpanContextConfig{
			TraceID: trace.TraceID(s.Trace), SpanID: trace.SpanID(s.Parent), TraceFlags: trace.FlagsSampled,
		}))
	}
	attributes := make([]attribute.KeyValue, 0, len(s.Texts)+len(s.Numbers))
	for key, value := range s.Texts {
		attributes = append(attributes, attribute.String(key, value))
	}
	for key, value := range s.Numbers {
		attributes = append(attributes, attribute.Int64(key, value))
	}
	_, span := t.tracer.Start(ctx, s.Name, trace.WithTimestamp(s.Start), trace.WithAttributes(attributes...))
	if s.Failed {
		span.SetStatus(codes.Error, s.Texts["lockstep.phrase"])
	}
	span.End(trace.WithTimestamp(s.End))
}

// Close sends what waits, until ctx ends.
func (t *Tracer) Close(ctx context.Context) error {
	if t == nil {
		return nil
	}
	if err := t.provider.Shutdown(ctx); err != nil {
		return fmt.Errorf("sending the last spans: %w", err)
	}
	return nil
}
