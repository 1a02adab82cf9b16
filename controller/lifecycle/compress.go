// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"

	utiljson "k8s.io/apimachinery/pkg/util/json"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
)

// CompressionThreshold is the size of the task role statuses' JSON, in bytes,
// from which they are stored compressed. FrameworkController uses the same.
const CompressionThreshold = 700 * 1024

// maxDecompressed bounds what a compressed status may unfold to, in bytes: 40
// times what 10000 tasks with long diagnostics need.
const maxDecompressed = 1 << 30

// EncodeStatus is the JSON of a status as it is stored. With compress, large
// task role statuses are gzipped.
func EncodeStatus(status *frameworkv1.FrameworkStatus, compress bool) ([]byte, error) {
	data, err := json.Marshal(status)
	if err != nil {
		return nil, fmt.Errorf("encoding the status: %w", err)
	}
	if !compress || len(data) < CompressionThreshold {
		return data, nil
	}
	roles, err := json.Marshal(status.AttemptStatus.TaskRoleStatuses)
	if err != nil {
		return nil, fmt.Errorf("encoding the task role statuses: %w", err)
	}
	if len(roles) < CompressionThreshold {
		return data, nil
	}
	var compressed bytes.Buffer
	writer := gzip.NewWriter(&compressed)
	if _, err := writer.Write(roles); err != nil {
		return nil, fmt.Errorf("compressing the task role statuses: %w", err)
	}
	if err := writer.Close(); err != nil {
		return nil, fmt.Errorf("compressing the task role statuses: %w", err)
	}
	small := *status
	small.AttemptStatus.TaskRoleStatuses = nil
	small.AttemptStatus.TaskRoleStatusesCompressed = compressed.Bytes()
	return json.Marshal(&small)
}

// DecodeStatus reads a stored status, compressed or not. It returns nil for the
// null of a Framework that has none yet.
func DecodeStatus(data []byte) (*frameworkv1.FrameworkStatus, error) {
	var status *frameworkv1.FrameworkStatus
	if err := utiljson.Unmarshal(data, &status); err != nil {
		return nil, fmt.Errorf("decoding the status: %w", err)
	}
	if status == nil || status.State == "" {
		return nil, nil
	}
	attempt := &status.AttemptStatus
	if attempt.TaskRoleStatuses == nil && attempt.TaskRoleStatusesCompressed != nil {
		roles, err := DecompressTaskRoles(attempt.TaskRoleStatusesCompressed)
		if err != nil {
			return nil, err
		}
		attempt.TaskRoleStatuses = roles
	}
	attempt.TaskRoleStatusesCompressed = nil
	return status, checkStatus(status)
}

// DecompressTaskRoles unfolds status.attemptStatus.taskRoleStatusesCompressed.
func DecompressTaskRoles(compressed []byte) ([]*frameworkv1.TaskRoleStatus, error) {
	reader, err := gzip.NewReader(bytes.NewReader(compressed))
	if err != nil {
		return nil, fmt.Errorf("decompressing status.attemptStatus.taskRoleStatusesCompressed: %w", err)
	}
	data, err := io.ReadAll(io.LimitReader(reader, maxDecompressed))
	if err != nil {
		return nil, fmt.Errorf("decompressing status.attemptStatus.taskRoleStatusesCompressed: %w", err)
	}
	var roles []*frameworkv1.TaskRoleStatus
	if err := utiljson.Unmarshal(data, &roles); err != nil {
		return nil, fmt.Errorf("decoding status.attemptStatus.taskRoleStatusesCompressed: %w", err)
	}
	return roles, nil
}

// checkStatus refuses a status that no controller has written, so that decisions
// may rely on its shape.
func checkStatus(status *frameworkv1.FrameworkStatus) error {
	for i, role := range status.AttemptStatus.TaskRoleStatuses {
		if role == nil {
			return fmt.Errorf("status.attemptStatus.taskRoleStatuses[%d] is null", i)
		}
		for j, task := range role.TaskStatuses {
			switch {
			case task == nil:
				return fmt.Errorf("status of task %s[%d] is null", role.Name, j)
			case int(task.Index) != j:
				return fmt.Errorf("status of task %s[%d] has the index %d", role.Name, j, task.Index)
			case task.State == frameworkv1.TaskCompleted &&
				(task.AttemptStatus.CompletionStatus == nil || task.CompletionTime == nil),
				task.State == frameworkv1.TaskAttemptCompleted && task.AttemptStatus.CompletionStatus == nil:
				return fmt.Errorf("status of task %s[%d] is %s without a completionStatus", role.Name, j, task.State)
			}
		}
	}
	switch status.State {
	case frameworkv1.FrameworkAttemptCompleted, frameworkv1.FrameworkCompleted:
		if status.AttemptStatus.CompletionStatus == nil {
			return fmt.Errorf("status.state is %s without a completionStatus", status.State)
		}
	}
	return nil
}

// Bounds of what Shorten leaves, in bytes.
const (
	shortDiagnostics = 256
	shortMessage     = 128
)

// Shorten is a status with all diagnostics cut, for one that is too
// large to be stored even compressed. Nothing is decided on diagnostics.
func Shorten(status *frameworkv1.FrameworkStatus) *frameworkv1.FrameworkStatus {
	short := shareTasks(status)
	if end := status.AttemptStatus.CompletionStatus; end != nil {
		shortEnd := *end
		shortEnd.Diagnostics = cut(end.Diagnostics, shortDiagnostics)
		short.AttemptStatus.CompletionStatus = &shortEnd
	}
	for _, role := range short.AttemptStatus.TaskRoleStatuses {
		for i, task := range role.TaskStatuses {
			completion := task.AttemptStatus.CompletionStatus
			if completion == nil {
				continue
			}
			shortCompletion := *completion
			shortCompletion.Diagnostics = cut(completion.Diagnostics, shortDiagnostics)
			if completion.Pod != nil {
				shortCompletion.Pod = &frameworkv1.PodCompletionStatus{
					Reason: completion.Pod.Reason, Message: cut(completion.Pod.Message, shortMessage),
				}
			}
			shortTask := *task
			shortTask.AttemptStatus.CompletionStatus = &shortCompletion
			role.TaskStatuses[i] = &shortTask
		}
	}
	return short
}

func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return text[:most]
}
