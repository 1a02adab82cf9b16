// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package tracing_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/lockstep-k8s/lockstep/controller/spans"
	"github.com/lockstep-k8s/lockstep/controller/tracing"
)

func span(name string, id, parent byte) spans.Span {
	return spans.Span{
		Trace: spans.TraceID{1}, ID: spans.ID{id}, Parent: spans.ID{parent}, Name: name,
		Start: time.Unix(100, 0), End: time.Unix(200, 0), Failed: true,
		Texts: map[string]string{"lockstep.phrase": "Broken"}, Numbers: map[string]int64{"lockstep.code": 7},
	}
}

// TestACollectorGetsSpansWithTheirIdsAndTimes: it can put the tree together.
func TestACollectorGetsSpansWithTheirIdsAndTimes(t *testing.T) {
	received := make(chan *collector.ExportTraceServiceRequest, 10)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		data, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		request := &collector.ExportTraceServiceRequest{}
		if err := proto.Unmarshal(data, request); err != nil {
			t.Error(err)
		}
		received <- request
	}))
	defer server.Close()
	tracer, err := tracing.New(t.Context(), server.URL+"/v1/traces")
	if err != nil {
		t.Fatal(err)
	}
	tracer.Send([]spans.Span{span("Attempt 0", 2, 1), span("Framework", 1, 0)})
	if err := tracer.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	got := (<-received).ResourceSpans[0].ScopeSpans[0].Spans
	if len(got) != 2 || got[0].Name != "Attempt 0" || got[1].Name != "Framework" {
		t.Fatalf("the collector got %v", got)
	}
	if string(got[0].ParentSpanId) != string(got[1].SpanId) || len(got[1].ParentSpanId) != 0 || string(got[0].TraceId) != string(got[1].TraceId) {
		t.Errorf("the spans are no tree: %v", got)
	}
	if got[1].SpanId[0] != 1 || got[1].TraceId[0] != 1 {
		t.Errorf("the span has other ids than it was given: %v", got[1])
	}
	if got[0].StartTimeUnixNano != 100e9 || got[0].EndTimeUnixNano != 200e9 || got[0].Status.GetMessage() != "Broken" {
		t.Errorf("the span has other times, or another end: %v", got[0])
	}
}

// TestACollectorThatHangsHoldsNobodyUp: what it does not take is dropped.
func TestACollectorThatHangsHoldsNobodyUp(t *testing.T) {
	asked, release := make(chan struct{}, 1), make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		select {
		case asked <- struct{}{}:
		default:
		}
		<-release
	}))
	defer server.Close()
	defer close(release)
	tracer, err := tracing.New(t.Context(), server.URL+"/v1/traces")
	if err != nil {
		t.Fatal(err)
	}
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		for range 50_000 {
			tracer.Send([]spans.Span{span("Framework", 1, 0)})
		}
	}()
	select {
	case <-sent:
	case <-time.After(30 * time.Second): // The collector would hold it for ever.
		t.Fatal("who sends is held up")
	}
	<-asked // It may be asked after all was sent.
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := tracer.Close(ctx); err == nil {
		t.Error("it ends as if all spans were sent")
	}
}

func TestWithoutATracerNothingIsSent(t *testing.T) {
	var none *tracing.Tracer
	none.Send([]spans.Span{span("Framework", 1, 0)})
	if err := none.Close(t.Context()); err != nil {
		t.Error(err)
	}
}
