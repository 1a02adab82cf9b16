// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package statuscodec

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	"github.com/lockstep-k8s/lockstep/internal/testing/statustest"
)

// etcdLimit is what etcd takes of a request by default, in bytes, and restOfObject is
// what a Framework may have beside its status.
const (
	etcdLimit    = 3 << 19
	restOfObject = 128 << 10
)

// TestTheLargestStatusCanBeStored is why there may be no more than MaxTasks: all of
// them run, under the longest names, on thousands of nodes, and all were retried some
// time in a week.
func TestTheLargestStatusCanBeStored(t *testing.T) {
	tests := map[string]int{"in one role": 1, "in as many roles as there may be": 256}
	for name, roles := range tests {
		t.Run(name, func(t *testing.T) {
			status := statustest.Running(frameworkv1.MaxTasks)
			retryAll(status, rand.New(rand.NewPCG(1, 2)))
			split(status, roles)
			data, err := Encode(status, true)
			if err != nil {
				t.Fatal(err)
			}
			if most := etcdLimit - restOfObject; len(data) > most {
				t.Errorf("the status takes %d bytes, want at most %d", len(data), most)
			}
		})
	}
}

// TestTheLargestStatusThatWaitsCanBeStored: all tasks wait in a later attempt, for what Pods
// commonly wait, since they have begun to prepare.
func TestTheLargestStatusThatWaitsCanBeStored(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	status := waiting(random, func(task *frameworkv1.TaskStatus) {
		reasons := []string{"Unschedulable", "NotYetScheduled", "NotYetStarted", "ContainerCreating", "PodInitializing",
			"ImagePullBackOff", "ErrImagePull", "CreateContainerConfigError"}
		task.AttemptStatus.Waiting = &frameworkv1.TaskWaiting{Reason: reasons[random.IntN(len(reasons))], Since: task.TransitionTime}
	})
	mustFit(t, status)
}

// TestTheWorstStatusThatWaitsCanBeStored once it is shortened: each task waits for a reason that
// somebody made up, since a time of its own, and its time to prepare runs.
func TestTheWorstStatusThatWaitsCanBeStored(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	status := waiting(random, func(task *frameworkv1.TaskStatus) {
		at := func() metav1.Time {
			return metav1.NewTime(task.TransitionTime.Add(time.Duration(random.IntN(3600)) * time.Second))
		}
		task.AttemptStatus.Waiting = &frameworkv1.TaskWaiting{Reason: randomText(64, random), Since: at()}
		task.AttemptStatus.PreparingSince = ptr.To(at())
	})
	for range longestHistory {
		status.History = append(status.History, longestRecord(random))
	}
	mustFit(t, Shorten(status))
}

// TestTheLargestStatusWithHistoryCanBeStored: that of tasks that run, after the longest history.
func TestTheLargestStatusWithHistoryCanBeStored(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	status := statustest.Running(frameworkv1.MaxTasks)
	retryAll(status, random)
	for range longestHistory {
		status.History = append(status.History, longestRecord(random))
	}
	mustFit(t, status)
}

// mustFit holds that a status fits into etcd beside the rest of the object, and is read back.
func mustFit(t *testing.T, status *frameworkv1.FrameworkStatus) {
	t.Helper()
	split(status, 256)
	data, err := Encode(status, true)
	if err != nil {
		t.Fatal(err)
	}
	const most = etcdLimit - restOfObject
	if t.Logf("the status takes %d bytes, %d are left", len(data), most-len(data)); len(data) > most {
		t.Errorf("the status takes %d bytes, want at most %d", len(data), most)
	}
	got, err := Decode(data)
	if err != nil {
		t.Fatal(err)
	}
	last := func(s *frameworkv1.FrameworkStatus) *frameworkv1.TaskStatus {
		tasks := s.AttemptStatus.TaskRoleStatuses[3].TaskStatuses
		return tasks[len(tasks)-1]
	}
	if len(got.History) != len(status.History) || (last(got).AttemptStatus.Waiting == nil) != (last(status).AttemptStatus.Waiting == nil) {
		t.Error("the history or the waits are not read back")
	}
}

// waiting is a status whose tasks all wait in a later attempt, for what waits says.
func waiting(random *rand.Rand, waits func(*frameworkv1.TaskStatus)) *frameworkv1.FrameworkStatus {
	status := statustest.Running(frameworkv1.MaxTasks)
	retryAll(status, random)
	for _, task := range status.AttemptStatus.TaskRoleStatuses[0].TaskStatuses {
		task.State, task.AttemptStatus.RunTime = frameworkv1.TaskAttemptPreparing, nil
		waits(task)
	}
	for range 9 {
		status.Waiting = append(status.Waiting,
			frameworkv1.WaitingCount{Reason: randomText(64, random), Tasks: frameworkv1.MaxTasks, Since: status.StartTime})
	}
	return status
}

// longestHistory is the most that frameworkHistoryLimit may be.
const longestHistory = 20

// longestRecord is a record of 1.5 KiB, which is the most that there is.
func longestRecord(random *rand.Rand) frameworkv1.AttemptRecord {
	at := metav1.NewTime(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	record := frameworkv1.AttemptRecord{StartTime: at, RunTime: &at, CompletionTime: &at}
	record.CompletionStatus.Diagnostics = randomText(1150, random)
	return record
}

// randomText is a text that does not compress.
func randomText(bytes int, random *rand.Rand) string {
	made := make([]byte, bytes)
	for i := range made {
		made[i] = byte('a' + random.IntN(26))
	}
	return string(made)
}

// retryAll makes every task one that runs in a later attempt.
func retryAll(status *frameworkv1.FrameworkStatus, r *rand.Rand) {
	begin := status.StartTime.Time
	at := func(most int) metav1.Time {
		return metav1.NewTime(begin.Add(time.Duration(r.IntN(most)) * time.Second))
	}
	for _, role := range status.AttemptStatus.TaskRoleStatuses {
		for _, task := range role.TaskStatuses {
			const week, nodes = 7 * 24 * 3600, 5000
			ran := at(week)
			task.RunTime = ptr.To(at(3600))
			task.TransitionTime = ran
			retries := 1 + r.Int32N(20)
			task.RetryPolicyStatus = frameworkv1.RetryPolicyStatus{
				TotalRetriedCount: retries, AccountableRetriedCount: r.Int32N(retries + 1), BackoffSec: r.Int64N(300),
			}
			attempt := &task.AttemptStatus
			attempt.ID = retries
			attempt.StartTime, attempt.RunTime = metav1.NewTime(ran.Add(-time.Duration(r.IntN(60))*time.Second)), &ran
			attempt.InstanceUID = ptr.To(types.UID(fmt.Sprintf("%d_%s", retries, *attempt.PodUID)))
			node := r.IntN(nodes)
			attempt.PodNodeName = ptr.To(fmt.Sprintf("ip-10-17-%d-%d.eu-central-1.compute.internal", node/256, node%256))
			attempt.PodHostIP = ptr.To(fmt.Sprintf("10.17.%d.%d", node/256, node%256))
			attempt.PodIP = ptr.To(fmt.Sprintf("10.%d.%d.%d", 128+r.IntN(64), r.IntN(256), r.IntN(256)))
		}
	}
}

// split spreads the tasks of the only role over a number of roles, with the longest names.
func split(status *frameworkv1.FrameworkStatus, roles int) {
	const longest = 63
	tasks := status.AttemptStatus.TaskRoleStatuses[0].TaskStatuses
	status.AttemptStatus.TaskRoleStatuses = nil
	framework := strings.Repeat("f", longest)
	for part := range slices.Chunk(tasks, (len(tasks)+roles-1)/roles) {
		i := len(status.AttemptStatus.TaskRoleStatuses)
		role := &frameworkv1.TaskRoleStatus{
			Name: fmt.Sprintf("%s%03d", strings.Repeat("r", longest-3), i), InstanceUID: types.UID(fmt.Sprint("role-", i)), TaskStatuses: part,
		}
		for j, task := range part {
			task.Index = int32(j)
			task.AttemptStatus.PodName = frameworkv1.PodName(framework, role.Name, task.Index)
		}
		status.AttemptStatus.TaskRoleStatuses = append(status.AttemptStatus.TaskRoleStatuses, role)
	}
}
