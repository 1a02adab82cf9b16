// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package statuscodec

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	"github.com/lockstep-k8s/lockstep/internal/testing/statustest"
)

func TestLargeStatusIsStoredCompressed(t *testing.T) {
	tests := map[string]struct {
		tasks          int
		compress       bool
		wantCompressed bool
	}{
		"small":                   {tasks: 10, compress: true},
		"large":                   {tasks: 3000, compress: true, wantCompressed: true},
		"large, but not asked to": {tasks: 3000},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			status := statustest.Running(tc.tasks)
			data, err := Encode(status, tc.compress)
			if err != nil {
				t.Fatal(err)
			}
			var stored frameworkv1.FrameworkStatus
			if err := json.Unmarshal(data, &stored); err != nil {
				t.Fatal(err)
			}
			if got := stored.AttemptStatus.TaskRoleStatusesCompressed != nil; got != tc.wantCompressed {
				t.Errorf("compressed is %v, want %v", got, tc.wantCompressed)
			}
			if got := stored.AttemptStatus.TaskRoleStatuses == nil; got != tc.wantCompressed {
				t.Errorf("taskRoleStatuses null is %v, want %v", got, tc.wantCompressed)
			}
			got, err := Decode(data)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(status, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("the status read back differs (-want +got):\n%s", diff)
			}
		})
	}
}

func TestStatusThatMakesNoSenseIsRefused(t *testing.T) {
	tests := map[string]struct {
		status string
		want   string
	}{
		"no JSON":     {`{"state":`, "decoding the status"},
		"a null role": {`{"state":"AttemptCreationPending","attemptStatus":{"taskRoleStatuses":[null]}}`, "taskRoleStatuses[0] is null"},
		"a role twice": {
			`{"state":"AttemptCreationPending","attemptStatus":{"taskRoleStatuses":[{"name":"w"},{"name":"w"}]}}`,
			`taskRoleStatuses[1] is the second of the name "w"`,
		},
		"no gzip": {
			`{"state":"AttemptCreationPending","attemptStatus":{"taskRoleStatusesCompressed":"AAAA"}}`,
			"decompressing status.attemptStatus.taskRoleStatusesCompressed",
		},
		"a state that nobody knows":      {`{"state":"Paused"}`, `state "Paused" is unknown`},
		"running without a ConfigMap":    {`{"state":"AttemptRunning"}`, "AttemptRunning without a configMapUID"},
		"completed, nobody knows how":    {`{"state":"Completed"}`, "Completed without a completionStatus"},
		"a null task":                    {oneTask(`null`), `task "w"[0] is null`},
		"a wrong index":                  {oneTask(`{"index":4}`), `task "w"[0] has the index 4`},
		"a task in an unknown state":     {oneTask(`{"state":"Paused"}`), `task "w"[0] is in the unknown state "Paused"`},
		"a running task without a Pod":   {oneTask(`{"state":"AttemptRunning"}`), `task "w"[0] is AttemptRunning without a podUID`},
		"a task that ended without why":  {oneTask(`{"state":"AttemptCompleted"}`), `AttemptCompleted without a completionStatus`},
		"a completed task without when":  {oneTask(`{"state":"Completed"}`), `Completed without a completionTime`},
		"a deleted task without its Pod": {oneTask(`{"state":"AttemptDeletionPending","attemptStatus":{"completionStatus":{}}}`), `without a podUID`},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := Decode([]byte(tc.status))
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want an error with %q", err, tc.want)
			}
		})
	}
}

// oneTask is a status with one task.
func oneTask(task string) string {
	return `{"state":"AttemptCreationPending","attemptStatus":{"taskRoleStatuses":[{"name":"w","taskStatuses":[` + task + `]}]}}`
}

// TestDecompressionBombs unfolds what is a kilobyte for each megabyte that it would
// become, in bytes and in objects.
func TestDecompressionBombs(t *testing.T) {
	spaces := strings.Repeat(" ", 1<<20)
	tests := map[string]struct {
		begin, unit, end string
		times            int
		want             string
	}{
		"spaces":        {begin: "[", unit: spaces, end: "]", times: maxDecompressed >> 20, want: "must unfold to at most"},
		"empty roles":   {begin: "[{}", unit: ",{}", end: "]", times: maxDecompressedObjects, want: "JSON objects"},
		"within bounds": {begin: "[{}", unit: spaces, end: "]", times: 1, want: "<nil>"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var compressed bytes.Buffer
			writer := gzip.NewWriter(&compressed)
			for i := range tc.times {
				text := tc.unit
				if i == 0 {
					text = tc.begin + text
				}
				if i == tc.times-1 {
					text += tc.end
				}
				if _, err := io.WriteString(writer, text); err != nil {
					t.Fatal(err)
				}
			}
			if err := writer.Close(); err != nil {
				t.Fatal(err)
			}
			_, err := DecompressRoles(compressed.Bytes())
			if got := fmt.Sprint(err); !strings.Contains(got, tc.want) {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}
