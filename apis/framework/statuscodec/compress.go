// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package statuscodec

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"fmt"
	"io"
	"slices"

	utiljson "k8s.io/apimachinery/pkg/util/json"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	"github.com/lockstep-k8s/lockstep/internal/text"
)

// CompressionThreshold is the size of the task role statuses' JSON, in bytes,
// from which they are stored compressed. FrameworkController uses the same.
const CompressionThreshold = 700 * 1024

// Bounds of what a compressed status may unfold to, so that nobody who may write
// one can exhaust the controller's memory. 10000 tasks with long diagnostics need
// a tenth: 25 MiB, in which a task is four JSON objects and a few more in its
// diagnostics. Objects are bounded too because the smallest in JSON, two bytes,
// is a TaskStatus of four hundred.
const (
	maxDecompressed        = 256 << 20
	maxDecompressedObjects = 1 << 20
)

// leastTaskBytes is less than the JSON of any task status takes, in bytes: its
// keys alone are longer.
const leastTaskBytes = 300

// efforts are what compression tries, one after the other, until its result is small
// enough. In base64 it takes a third more, and etcd takes 1.5 MiB. A hurry takes a third
// of the time of the default and a fifth more room; the last takes twice the time of the
// default, and leaves the most room to the spec.
var efforts = []struct{ level, enough int }{
	{level: gzip.BestSpeed, enough: 900 * 1024},
	{level: gzip.DefaultCompression, enough: 1000 * 1024},
	{level: gzip.BestCompression},
}

// compressed is the data gzipped, with no more effort than it takes.
func compressed(data []byte) ([]byte, error) {
	var best []byte
	for _, effort := range efforts {
		var buffer bytes.Buffer
		writer, err := gzip.NewWriterLevel(&buffer, effort.level)
		if err != nil {
			return nil, err
		}
		if _, err := writer.Write(data); err != nil {
			return nil, err
		}
		if err := writer.Close(); err != nil {
			return nil, err
		}
		if best = buffer.Bytes(); len(best) <= effort.enough {
			break
		}
	}
	return best, nil
}

// Decode reads a stored status, compressed or not. It returns nil for the
// null of a Framework that has none yet.
func Decode(data []byte) (*frameworkv1.FrameworkStatus, error) {
	var status *frameworkv1.FrameworkStatus
	if err := utiljson.Unmarshal(data, &status); err != nil {
		return nil, fmt.Errorf("decoding the status: %w", err)
	}
	if status == nil || status.State == "" {
		return nil, nil
	}
	attempt := &status.AttemptStatus
	if attempt.TaskRoleStatuses == nil && attempt.TaskRoleStatusesCompressed != nil {
		roles, err := DecompressRoles(attempt.TaskRoleStatusesCompressed)
		if err != nil {
			return nil, err
		}
		attempt.TaskRoleStatuses = roles
	}
	attempt.TaskRoleStatusesCompressed = nil
	return status, check(status)
}

// DecompressRoles unfolds status.attemptStatus.taskRoleStatusesCompressed. An
// error says what is wrong with it, and so does one for what would unfold to more
// than the controller can hold.
func DecompressRoles(compressed []byte) ([]*frameworkv1.TaskRoleStatus, error) {
	data, err := decompressed(compressed)
	if err != nil {
		return nil, fmt.Errorf("decompressing status.attemptStatus.taskRoleStatusesCompressed: %w", err)
	}
	if len(data) > maxDecompressed {
		return nil, fmt.Errorf("status.attemptStatus.taskRoleStatusesCompressed must unfold to at most %d bytes", maxDecompressed)
	}
	if objects := text.CountSigns(data, "{"); objects > maxDecompressedObjects {
		return nil, fmt.Errorf("status.attemptStatus.taskRoleStatusesCompressed must hold at most %d JSON objects, has %d",
			maxDecompressedObjects, objects)
	}
	var roles []*frameworkv1.TaskRoleStatus
	if err := utiljson.Unmarshal(data, &roles); err != nil {
		return nil, fmt.Errorf("decoding status.attemptStatus.taskRoleStatusesCompressed: %w", err)
	}
	return roles, nil
}

// decompressed is gzipped data, up to one byte more than it may be.
func decompressed(data []byte) ([]byte, error) {
	reader, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	var unfolded bytes.Buffer
	unfolded.Grow(likelySize(data))
	_, err = unfolded.ReadFrom(io.LimitReader(reader, maxDecompressed+1))
	return unfolded.Bytes(), err
}

// likelySize is what gzipped data says that it unfolds to, as far as that is likely of a status: a buffer of that size need
// not be made anew as it grows, which would take four times the room. Nothing rests on it.
func likelySize(data []byte) int {
	const trailer, likely = 4, 16
	if len(data) < trailer {
		return 0
	}
	says := int64(binary.LittleEndian.Uint32(data[len(data)-trailer:]))
	return int(min(says+bytes.MinRead, int64(likely*len(data))))
}

// Bounds of what Shorten leaves of a text, in bytes.
const (
	shortDiagnostics = 256
	shortMessage     = 128
)

// Shorten is a status with all diagnostics cut, without those of the history, and without the
// waits of single tasks, for one that is too large to be stored even compressed. Nothing is decided on diagnostics and waits.
// Without preparingSince a controller that begins counts preparingTimeoutSeconds anew.
func Shorten(status *frameworkv1.FrameworkStatus) *frameworkv1.FrameworkStatus {
	short := frameworkv1.ShareTasks(status)
	if end := status.AttemptStatus.CompletionStatus; end != nil {
		shortEnd := *end
		shortEnd.Diagnostics = text.Shorten(end.Diagnostics, shortDiagnostics)
		short.AttemptStatus.CompletionStatus = &shortEnd
	}
	short.History = slices.Clone(status.History)
	for i := range short.History {
		short.History[i].CompletionStatus.Diagnostics = ""
	}
	for _, role := range short.AttemptStatus.TaskRoleStatuses {
		for i, task := range role.TaskStatuses {
			if task.AttemptStatus.Waiting != nil || task.AttemptStatus.PreparingSince != nil {
				silent := *task
				silent.AttemptStatus.Waiting, silent.AttemptStatus.PreparingSince = nil, nil
				role.TaskStatuses[i], task = &silent, &silent
			}
			completion := task.AttemptStatus.CompletionStatus
			if completion == nil {
				continue
			}
			shortCompletion := *completion
			shortCompletion.Diagnostics = text.Shorten(completion.Diagnostics, shortDiagnostics)
			if completion.Pod != nil {
				shortCompletion.Pod = &frameworkv1.PodCompletionStatus{
					Reason: completion.Pod.Reason, Message: text.Shorten(completion.Pod.Message, shortMessage),
				}
			}
			shortTask := *task
			shortTask.AttemptStatus.CompletionStatus = &shortCompletion
			role.TaskStatuses[i] = &shortTask
		}
	}
	return short
}
