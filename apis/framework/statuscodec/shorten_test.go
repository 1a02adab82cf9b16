// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package statuscodec

import (
	"strings"
	"testing"

	apiequality "k8s.io/apimachinery/pkg/api/equality"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	"github.com/lockstep-k8s/lockstep/internal/testing/statustest"
)

// TestAShortenedStatusIsStoredAsItIs holds that a status is read back as it was written.
// If it were not, it would be written again and again.
func TestAShortenedStatusIsStoredAsItIs(t *testing.T) {
	for name, diagnostics := range map[string]string{
		"one byte a character":    strings.Repeat("x", 1000),
		"two bytes a character":   "x" + strings.Repeat("ä", 1000),
		"three bytes a character": strings.Repeat("€", 1000),
		"four bytes a character":  "x" + strings.Repeat("😀", 1000),
	} {
		t.Run(name, func(t *testing.T) {
			status := statustest.Running(3)
			failAll(status, diagnostics)
			short := Shorten(status)
			data, err := Encode(short, true)
			if err != nil {
				t.Fatal(err)
			}
			stored, err := Decode(data)
			if err != nil {
				t.Fatal(err)
			}
			if !apiequality.Semantic.DeepEqual(short, stored) {
				t.Errorf("what was stored differs: %q became %q",
					short.AttemptStatus.CompletionStatus.Diagnostics, stored.AttemptStatus.CompletionStatus.Diagnostics)
			}
			for _, got := range []string{
				stored.AttemptStatus.CompletionStatus.Diagnostics,
				stored.AttemptStatus.TaskRoleStatuses[0].TaskStatuses[1].AttemptStatus.CompletionStatus.Diagnostics,
			} {
				if len(got) > 256+len("…") || len(got) < 250 || !strings.HasPrefix(diagnostics, strings.TrimSuffix(got, "…")) {
					t.Errorf("%.20q has become %d bytes, %q", diagnostics, len(got), got)
				}
			}
		})
	}
}

// TestTextsDontCountAsObjects holds that the controller reads what it has written,
// whatever stands in the diagnostics.
func TestTextsDontCountAsObjects(t *testing.T) {
	status := statustest.Running(frameworkv1.MaxTasks)
	failAll(status, strings.Repeat("{", 500))
	data, err := Encode(status, true)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Decode(data); err != nil {
		t.Error(err)
	}
}

// failAll gives all tasks and the attempt such diagnostics.
func failAll(status *frameworkv1.FrameworkStatus, diagnostics string) {
	end := frameworkv1.CompletionStatus{
		Code: 1, Type: frameworkv1.CompletionType{Name: "Failed", Attributes: []frameworkv1.CompletionTypeAttribute{}}, Diagnostics: diagnostics,
	}
	status.AttemptStatus.CompletionStatus = &frameworkv1.FrameworkAttemptCompletionStatus{CompletionStatus: end}
	for _, role := range status.AttemptStatus.TaskRoleStatuses {
		for _, task := range role.TaskStatuses {
			task.AttemptStatus.CompletionStatus = &frameworkv1.TaskAttemptCompletionStatus{
				CompletionStatus: end,
				Pod:              &frameworkv1.PodCompletionStatus{Reason: "Error", Message: diagnostics},
			}
		}
	}
}
