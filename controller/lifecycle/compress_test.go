// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
)

func TestLargeStatusIsStoredCompressed(t *testing.T) {
	tests := map[string]struct {
		tasks          int32
		compress       bool
		wantCompressed bool
	}{
		"small":                   {tasks: 10, compress: true},
		"large":                   {tasks: 3000, compress: true, wantCompressed: true},
		"large, but not asked to": {tasks: 3000},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			f := framework(role("w", tc.tasks))
			w := newWorld(t, f)
			status := Decide(Snapshot{Framework: f, Options: w.options}, w.now, w).Status
			data, err := EncodeStatus(status, tc.compress)
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
			got, err := DecodeStatus(data)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(status, got); diff != "" {
				t.Errorf("the status read back differs (-want +got):\n%s", diff)
			}
		})
	}
}

func TestFirstStatusHasExplicitNulls(t *testing.T) {
	f := framework(role("w", 1))
	w := newWorld(t, f)
	data, err := EncodeStatus(Decide(Snapshot{Framework: f, Options: w.options}, w.now, w).Status, true)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`"runTime":null`, `"completionTime":null`, `"retryDelaySec":null`, `"configMapUID":null`, `"instanceUID":null`,
		`"completionStatus":null`, `"podUID":null`, `"podIP":null`, `"deletionPending":false`, `"totalRetriedCount":0`,
	} {
		if !strings.Contains(string(data), want) {
			t.Errorf("the first status has no %s", want)
		}
	}
}

func TestStatusThatMakesNoSenseIsRefused(t *testing.T) {
	tests := map[string]string{
		"no JSON":                        `{"state":`,
		"a null role":                    `{"state":"AttemptRunning","attemptStatus":{"taskRoleStatuses":[null]}}`,
		"a null task":                    `{"state":"AttemptRunning","attemptStatus":{"taskRoleStatuses":[{"taskStatuses":[null]}]}}`,
		"a wrong index":                  `{"state":"AttemptRunning","attemptStatus":{"taskRoleStatuses":[{"taskStatuses":[{"index":4}]}]}}`,
		"no gzip":                        `{"state":"AttemptRunning","attemptStatus":{"taskRoleStatusesCompressed":"AAAA"}}`,
		"completed, nobody knows how":    `{"state":"Completed"}`,
		"a completed task without a why": `{"state":"AttemptRunning","attemptStatus":{"taskRoleStatuses":[{"taskStatuses":[{"index":0,"state":"Completed"}]}]}}`,
	}
	for name, data := range tests {
		t.Run(name, func(t *testing.T) {
			if _, err := DecodeStatus([]byte(data)); err == nil {
				t.Error("it was accepted")
			}
		})
	}
}
