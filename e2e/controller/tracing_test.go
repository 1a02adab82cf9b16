//go:build e2e

// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/protobuf/proto"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	"github.com/lockstep-k8s/lockstep/e2e/testbed"
	"github.com/lockstep-k8s/lockstep/internal/localenv"
	"github.com/lockstep-k8s/lockstep/internal/localenv/jobs"
)

// TestTheLifeOfAFrameworkIsATrace: with both attempts and their tasks, under the UID of the Framework,
// and without the value of a secret variable.
func TestTheLifeOfAFrameworkIsATrace(t *testing.T) {
	var mu sync.Mutex
	spans, raw := map[string]int{}, []byte{}
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		data, err := io.ReadAll(r.Body)
		request := &collector.ExportTraceServiceRequest{}
		if err != nil || proto.Unmarshal(data, request) != nil {
			t.Errorf("the collector can't read what it got: %v", err)
		}
		mu.Lock()
		defer mu.Unlock()
		raw = append(raw, data...)
		for _, resource := range request.ResourceSpans {
			for _, scope := range resource.ScopeSpans {
				for _, span := range scope.Spans {
					spans[span.Name]++
				}
			}
		}
	}))
	t.Cleanup(server.Close)
	cluster.StartController(t, localenv.ControllerOptions{Config: "tracing:\n  endpoint: " + server.URL + "/v1/traces\n"})
	namespace := cluster.Namespace(t)
	fw := jobs.MakeFramework("traced").Retry(false, 1).
		Role("worker", 2, jobs.RunForever().Env("API_TOKEN", "hunter2")).Obj()
	cluster.CreateFramework(t, namespace, fw)
	for attempt := range int32(2) {
		cluster.WaitFramework(t, namespace, fw.Name, "run both tasks", func(fw *frameworkv1.Framework) bool {
			return fw.Status != nil && fw.Status.AttemptStatus.ID == attempt && fw.Status.Tasks != nil && fw.Status.Tasks.Running == 2
		})
		cluster.EndPod(t, namespace, frameworkv1.PodName(fw.Name, "worker", 0), 7)
	}
	done := cluster.WaitFrameworkState(t, namespace, fw.Name, frameworkv1.FrameworkCompleted)

	want := map[string]int{"Framework": 1, "Attempt 0": 1, "Attempt 1": 1, "Waiting": 2, "Running": 2, "Task worker[0]": 2, "Task worker[1]": 2}
	testbed.Eventually(t, "the whole trace", func(context.Context) (bool, string, error) {
		mu.Lock()
		defer mu.Unlock()
		diff := cmp.Diff(want, spans)
		return diff == "", diff, nil
	})
	mu.Lock()
	defer mu.Unlock()
	if bytes.Contains(raw, []byte("hunter2")) {
		t.Error("the trace has the value of a secret variable")
	}
	id := make([]byte, 0, 16)
	for digits := strings.ReplaceAll(string(done.UID), "-", ""); len(digits) >= 2; digits = digits[2:] {
		id = append(id, fromHex(digits[0])<<4|fromHex(digits[1]))
	}
	if !bytes.Contains(raw, id) {
		t.Errorf("no trace has the UID %s as its id", done.UID)
	}
}

func fromHex(digit byte) byte { return byte(strings.IndexByte("0123456789abcdef", digit)) }
