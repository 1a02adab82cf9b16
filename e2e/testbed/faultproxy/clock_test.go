// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package faultproxy

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

func TestTimesAreFoundByTheirForm(t *testing.T) {
	for name, tc := range map[string]struct{ text, want string }{
		"seconds":                     {`{"a":"2026-11-26T23:30:00Z"}`, `{"a":"2026-11-27T00:30:00Z"}`},
		"microseconds stay as many":   {`["2026-01-01T00:00:00.100000Z"]`, `["2026-01-01T01:00:00.100000Z"]`},
		"several":                     {`"2026-01-01T00:00:00Z" "2026-01-01T00:00:01Z"`, `"2026-01-01T01:00:00Z" "2026-01-01T01:00:01Z"`},
		"one within a text stays":     {`"since 2026-01-01T00:00:00Z"`, `"since 2026-01-01T00:00:00Z"`},
		"what is no time stays":       {`"2026-99-01T00:00:00Z"`, `"2026-99-01T00:00:00Z"`},
		"what has no time stays":      {`{"a":1}`, `{"a":1}`},
		"a time that is null has not": {`{"creationTimestamp":null}`, `{"creationTimestamp":null}`},
	} {
		t.Run(name, func(t *testing.T) {
			if got := string(shiftTimes([]byte(tc.text), time.Hour)); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

// TestAComponentReadsItsOwnTimesAsItHasWrittenThem, and those of others are off, whether it
// asks for JSON or protobuf, once or in a watch.
func TestAComponentReadsItsOwnTimesAsItHasWrittenThem(t *testing.T) {
	now := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	var stored coordinationv1.Lease
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			body, err := io.ReadAll(r.Body)
			if err == nil {
				err = json.Unmarshal(body, &stored)
			}
			if err != nil {
				http.Error(w, err.Error(), http.StatusBadRequest)
				return
			}
			stored.CreationTimestamp = metav1.NewTime(now)
		}
		answer, err := json.Marshal(stored)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", runtime.ContentTypeJSON)
		if isWatch(r) {
			fmt.Fprintf(w, `{"type":"ADDED","object":%s}`+"\n", bytes.TrimSpace(answer))
			return
		}
		_, _ = w.Write(answer)
	}))
	t.Cleanup(api.Close)
	for name, contentType := range map[string]string{"JSON": runtime.ContentTypeJSON, "protobuf": runtime.ContentTypeProtobuf} {
		t.Run(name, func(t *testing.T) {
			proxy, err := start(&rest.Config{Host: api.URL})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = proxy.Close() })
			proxy.SetAhead(time.Hour)
			client, err := kubernetes.NewForConfig(&rest.Config{Host: "http://" + proxy.address, ContentConfig: rest.ContentConfig{
				ContentType: contentType, AcceptContentTypes: contentType + "," + runtime.ContentTypeJSON,
			}})
			if err != nil {
				t.Fatal(err)
			}
			leases := client.CoordinationV1().Leases("a")
			renewed := metav1.NewMicroTime(now)
			seen, err := leases.Create(t.Context(), &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "b"}, Spec: coordinationv1.LeaseSpec{RenewTime: &renewed}}, metav1.CreateOptions{})
			if err != nil {
				t.Fatal(err)
			}
			watch, err := leases.Watch(t.Context(), metav1.ListOptions{})
			if err != nil {
				t.Fatal(err)
			}
			defer watch.Stop()
			watched, ok := (<-watch.ResultChan()).Object.(*coordinationv1.Lease)
			if !ok {
				t.Fatal("the watch has told nothing")
			}
			if got, want := stored.Spec.RenewTime.Time, now.Add(time.Hour); !got.Equal(want) {
				t.Errorf("stored is %v, want %v", got, want)
			}
			for how, lease := range map[string]*coordinationv1.Lease{"the answer": seen, "the watch": watched} {
				if got := lease.Spec.RenewTime.Time; !got.Equal(now) {
					t.Errorf("%s tells of the component's own time %v, want %v", how, got, now)
				}
				if got, want := lease.CreationTimestamp.Time, now.Add(-time.Hour); !got.Equal(want) {
					t.Errorf("%s tells of the API server's time %v, want %v", how, got, want)
				}
			}
		})
	}
}
