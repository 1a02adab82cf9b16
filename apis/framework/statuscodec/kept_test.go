// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package statuscodec

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	"github.com/lockstep-k8s/lockstep/internal/testing/statustest"
)

// written is a status with all that Lockstep has added, beside what older CRDs know.
func written() *frameworkv1.FrameworkStatus {
	status := statustest.Running(1)
	status.History = []frameworkv1.AttemptRecord{{ID: 3, StartTime: status.StartTime}}
	status.Waiting = []frameworkv1.WaitingCount{{Reason: "ImagePullBackOff", Tasks: 1, Since: metav1.Now().Rfc3339Copy()}}
	status.AttemptStatus.TaskAttempts.Failures = 2
	end := &frameworkv1.FrameworkAttemptCompletionStatus{}
	end.Code, end.Disruption = -101, frameworkv1.DisruptionPreempted
	status.AttemptStatus.CompletionStatus = end
	return status
}

// TestAStatusIsKnownOfWhichAnOlderCRDHasDroppedFields, each by itself; any other difference shows.
func TestAStatusIsKnownOfWhichAnOlderCRDHasDroppedFields(t *testing.T) {
	drop := map[string]func(*frameworkv1.FrameworkStatus){
		"nothing":           func(*frameworkv1.FrameworkStatus) {},
		"the history":       func(s *frameworkv1.FrameworkStatus) { s.History = nil },
		"the waits":         func(s *frameworkv1.FrameworkStatus) { s.Waiting = nil },
		"the counts":        func(s *frameworkv1.FrameworkStatus) { s.AttemptStatus.TaskAttempts = frameworkv1.TaskAttemptCounts{} },
		"why the Pod ended": func(s *frameworkv1.FrameworkStatus) { s.AttemptStatus.CompletionStatus.Disruption = "" },
		"all of that": func(s *frameworkv1.FrameworkStatus) {
			s.History, s.Waiting, s.AttemptStatus.TaskAttempts = nil, nil, frameworkv1.TaskAttemptCounts{}
			s.AttemptStatus.CompletionStatus.Disruption = ""
		},
	}
	for name, drops := range drop {
		t.Run(name, func(t *testing.T) {
			status := written()
			before := status.DeepCopy()
			stored := status.DeepCopy()
			drops(stored)
			if diff := cmp.Diff(stored, Kept(status, stored)); diff != "" {
				t.Errorf("what was stored is another status (-stored +kept):\n%s", diff)
			}
			if diff := cmp.Diff(before, status); diff != "" {
				t.Errorf("the status was changed:\n%s", diff)
			}
			stored.State = frameworkv1.FrameworkAttemptPreparing
			if cmp.Equal(stored, Kept(status, stored)) {
				t.Error("a status of another state is taken for this one")
			}
		})
	}
	other := written()
	other.History[0].ID = 4
	if cmp.Equal(other, Kept(written(), other)) {
		t.Error("a status with another history is taken for this one")
	}
}
