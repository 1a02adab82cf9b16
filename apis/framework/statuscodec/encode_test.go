// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package statuscodec

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	"github.com/lockstep-k8s/lockstep/internal/testing/statustest"
)

// TestEncoderSeesWhatHasChanged encodes statuses that share tasks, as those of a
// Framework do, and compares with what encoding/json makes of each alone.
func TestEncoderSeesWhatHasChanged(t *testing.T) {
	var encoder Encoder
	status := statustest.Running(3000)
	check := func(change string) {
		t.Helper()
		data, err := encoder.Encode(status, true)
		if err != nil {
			t.Fatal(err)
		}
		stored := frameworkv1.FrameworkStatus{}
		if err := json.Unmarshal(data, &stored); err != nil {
			t.Fatal(err)
		}
		if stored.AttemptStatus.TaskRoleStatusesCompressed == nil {
			t.Fatalf("%s: the status is not compressed", change)
		}
		got, err := decompressed(stored.AttemptStatus.TaskRoleStatusesCompressed)
		if err != nil {
			t.Fatal(err)
		}
		want, err := json.Marshal(status.AttemptStatus.TaskRoleStatuses)
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != string(want) {
			t.Errorf("%s: the JSON differs (-want +got):\n%s", change, cmp.Diff(want, got))
		}
	}
	check("at first")

	status = frameworkv1.ShareTasks(status)
	role := status.AttemptStatus.TaskRoleStatuses[0]
	ended := *role.TaskStatuses[7]
	ended.State = frameworkv1.TaskAttemptDeletionPending
	ended.AttemptStatus.CompletionStatus = &frameworkv1.TaskAttemptCompletionStatus{
		CompletionStatus: frameworkv1.CompletionStatus{Code: frameworkv1.CodeSucceeded, Diagnostics: `<"done">`},
	}
	role.TaskStatuses[7] = &ended
	check("a task has changed")

	status = frameworkv1.ShareTasks(status)
	role = status.AttemptStatus.TaskRoleStatuses[0]
	role.TaskStatuses = slices.Delete(role.TaskStatuses, 2900, 3000)
	status.AttemptStatus.TaskRoleStatuses = append(status.AttemptStatus.TaskRoleStatuses,
		&frameworkv1.TaskRoleStatus{Name: "empty", TaskStatuses: []*frameworkv1.TaskStatus{}}, statustest.Running(2).AttemptStatus.TaskRoleStatuses[0])
	check("tasks have come and gone")
}
