// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package statuscodec

import (
	"bytes"
	"encoding/json"
	"fmt"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
)

// Encode is the JSON of a status as it is stored. With compress, large
// task role statuses are gzipped.
func Encode(status *frameworkv1.FrameworkStatus, compress bool) ([]byte, error) {
	var e Encoder
	return e.Encode(status, compress)
}

// Encoder encodes the statuses that a Framework has one after the other. Of a large
// one most tasks are those of the status before, and a task is never changed once it
// is part of a status: their JSON is kept. The zero Encoder is ready for use.
type Encoder struct {
	// tasks holds the JSON of the tasks of the last large status.
	tasks map[*frameworkv1.TaskStatus][]byte
}

// Encode is the function Encode, but reuses the JSON of tasks unchanged since the last
// call.
func (e *Encoder) Encode(status *frameworkv1.FrameworkStatus, compress bool) ([]byte, error) {
	roles := status.AttemptStatus.TaskRoleStatuses
	if !compress || countAll(roles)*leastTaskBytes < CompressionThreshold {
		data, err := json.Marshal(status)
		if err != nil {
			return nil, fmt.Errorf("encoding the status: %w", err)
		}
		if !compress || len(data) < CompressionThreshold {
			return data, nil
		}
	}
	data, err := e.encodeRoles(roles)
	if err != nil {
		return nil, fmt.Errorf("encoding the task role statuses: %w", err)
	}
	if status.State == frameworkv1.FrameworkCompleted {
		e.tasks = nil // It is kept for long, but hardly ever written again.
	}
	small := *status
	if len(data) >= CompressionThreshold {
		small.AttemptStatus.TaskRoleStatuses = nil
		if small.AttemptStatus.TaskRoleStatusesCompressed, err = compressed(data); err != nil {
			return nil, fmt.Errorf("compressing the task role statuses: %w", err)
		}
	}
	if data, err = json.Marshal(&small); err != nil {
		return nil, fmt.Errorf("encoding the status: %w", err)
	}
	return data, nil
}

// encodeRoles is json.Marshal, but for tasks that it knows.
func (e *Encoder) encodeRoles(roles []*frameworkv1.TaskRoleStatus) ([]byte, error) {
	const likelyTaskBytes = 1024
	var buffer bytes.Buffer
	buffer.Grow(likelyTaskBytes * countAll(roles))
	tasks := make(map[*frameworkv1.TaskStatus][]byte, countAll(roles))
	buffer.WriteByte('[')
	for i, role := range roles {
		if i > 0 {
			buffer.WriteByte(',')
		}
		head := *role
		head.TaskStatuses = []*frameworkv1.TaskStatus{}
		data, err := json.Marshal(&head)
		if err != nil {
			return nil, err
		}
		buffer.Write(bytes.TrimSuffix(data, []byte("]}"))) // taskStatuses come last.
		for j, task := range role.TaskStatuses {
			if j > 0 {
				buffer.WriteByte(',')
			}
			data, known := e.tasks[task]
			if !known {
				if data, err = json.Marshal(task); err != nil {
					return nil, err
				}
			}
			tasks[task] = data
			buffer.Write(data)
		}
		buffer.WriteString("]}")
	}
	buffer.WriteByte(']')
	e.tasks = tasks
	return buffer.Bytes(), nil
}

func countAll(roles []*frameworkv1.TaskRoleStatus) int {
	count := 0
	for _, role := range roles {
		count += len(role.TaskStatuses)
	}
	return count
}
