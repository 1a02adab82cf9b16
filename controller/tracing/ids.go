// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package tracing

import (
	"context"

	"go.opentelemetry.io/otel/trace"
)

type idsKey struct{}

type ids struct {
	trace trace.TraceID
	span  trace.SpanID
}

// given is an IDGenerator that takes the IDs of a span from the context with which the span is started.
type given struct{}

// NewIDs returns the ids of a span without a parent.
func (given) NewIDs(ctx context.Context) (trace.TraceID, trace.SpanID) {
	is, _ := ctx.Value(idsKey{}).(ids)
	return is.trace, is.span
}

// NewSpanID returns the id of a span with one.
func (given) NewSpanID(ctx context.Context, _ trace.TraceID) trace.SpanID {
	is, _ := ctx.Value(idsKey{}).(ids)
	return is.span
}
