// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package statustest makes statuses of Frameworks for tests.
package statustest

import (
	"fmt"
	"time"

	"github.com/google/uuid"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
)

// Running returns the status of a Framework with running tasks only, with UIDs that compress as badly as real ones.
func Running(tasks int) *frameworkv1.FrameworkStatus {
	now := metav1.NewTime(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	role := &frameworkv1.TaskRoleStatus{Name: "worker", InstanceUID: types.UID(uuid.NewString())}
	for i := range tasks {
		ran := metav1.NewTime(now.Add(time.Duration(i/100) * time.Second))
		pod := types.UID(uuid.NewString())
		role.TaskStatuses = append(role.TaskStatuses, &frameworkv1.TaskStatus{
			Index: int32(i), InstanceUID: types.UID(uuid.NewString()),
			StartTime: now, RunTime: &ran, TransitionTime: ran, State: frameworkv1.TaskAttemptRunning,
			AttemptStatus: frameworkv1.TaskAttemptStatus{
				StartTime: now, RunTime: &ran,
				PodName: fmt.Sprintf("large-worker-%d", i), PodUID: &pod, InstanceUID: ptr.To("0_" + pod),
				PodNodeName: ptr.To(fmt.Sprintf("node-%d", i*7919%1000)),
				PodIP:       ptr.To(fmt.Sprintf("100.64.%d.%d", i/250, i%250)),
				PodHostIP:   ptr.To(fmt.Sprintf("100.96.%d.%d", i*7919%1000/250, i*7919%1000%250)),
			},
		})
	}
	status := &frameworkv1.FrameworkStatus{StartTime: now, RunTime: &now, TransitionTime: now, State: frameworkv1.FrameworkAttemptRunning}
	status.AttemptStatus = frameworkv1.FrameworkAttemptStatus{
		StartTime: now, RunTime: &now, ConfigMapName: "large-attempt",
		ConfigMapUID: ptr.To(types.UID("cm")), InstanceUID: ptr.To(types.UID("0_cm")), TaskRoleStatuses: []*frameworkv1.TaskRoleStatus{role},
	}
	status.Tasks = &frameworkv1.TaskCounts{Total: int32(tasks), Running: int32(tasks)}
	return status
}
