// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-k8s/lockstep/internal/view"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/answers"
)

func TestAJobTellsWhatItWaitsForAsLongAsItIsNotItsGang(t *testing.T) {
	for state, want := range map[string]struct {
		reason  answers.Reason
		message string
	}{
		"Succeeded": {view.StateSucceeded, "it has ended: said so"},
		"Failed":    {view.StateFailed, "it has failed: said so"},
		"Aborted":   {view.StateStopped, "it was aborted: said so"},
		"Aborting":  {ReasonEnding, "it is being aborted"},
		"Suspended": {ReasonSuspended, "it is suspended"},
		"Pending":   {"", ""},
		"Running":   {"", ""},
	} {
		answer, known := OfJob(&view.Row{Name: "train", State: state, Message: "said so"}, nil)
		if known != (want.reason != "") || answer.Reason != want.reason || !strings.Contains(answer.Message, want.message) {
			t.Errorf("%s: %v %+v", state, known, answer)
		}
	}
}

func TestAJobWithoutAGangIsUnseenOrItsPodsAreRefused(t *testing.T) {
	at := func(minutes int) metav1.Time { return metav1.NewTime(now.Add(time.Duration(minutes) * time.Minute)) }
	events := []corev1.Event{
		{Type: "Warning", Reason: "FailedCreate", Message: "exceeded quota: gpus", LastTimestamp: at(1)},
		{Type: "Normal", Reason: "Created", Message: "Pod made", LastTimestamp: at(2)},
		{Type: "Warning", Reason: "FailedCreate", Message: "exceeded quota: pods", LastTimestamp: at(3)},
		{Type: "Warning", Reason: "FailedCreate", Message: "exceeded quota: gpus", LastTimestamp: at(4)},
	}
	refused := OfJobWithoutGang(&view.Row{State: "Pending", Seen: true, Total: 4}, events)
	want := []string{"FailedCreate: exceeded quota: gpus", "FailedCreate: exceeded quota: pods"}
	if diff := cmp.Diff(want, refused.Evidence); refused.Reason != ReasonCreating || diff != "" {
		t.Errorf("%+v (-want +got)\n%s", refused, diff)
	}
	if unseen := OfJobWithoutGang(&view.Row{Kind: "TFJob", State: "Pending"}, nil); unseen.Reason != ReasonUnseen || !strings.Contains(unseen.Next, "jobs of the kind TFJob turned on?") {
		t.Errorf("%+v", unseen)
	}
	if runs := OfJobWithoutGang(&view.Row{State: "Running", Seen: true, Running: 1, Total: 4}, nil); runs.Reason != ReasonRunning || runs.Message != "it runs: 1 of 4 tasks" {
		t.Errorf("%+v", runs)
	}
}
