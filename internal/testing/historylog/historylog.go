// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package historylog reads the history from the log of lockstep-controller in tests, in the way in which log collectors
// do.
package historylog

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"testing"

	logsapi "k8s.io/component-base/logs/api/v1"
	"k8s.io/klog/v2"

	"github.com/lockstep-k8s/lockstep/internal/logging"
)

// lineOfHistory matches the lines that log collectors parse, as docs/history.md describes: the header of klog, the
// message, the trigger, and the object up to the end of the line.
var lineOfHistory = regexp.MustCompile(`^I\d{4} [\d:.]+ +\d+ history\.go:\d+\] (.+?): (On\w+): ObjectSnapshot: (\{.+)$`)

// headerOfHistory begins each line of the history, and no other.
var headerOfHistory = regexp.MustCompile(`^I\d{4} \d{2}:\d{2}:\d{2}\.\d{6} +\d+ history\.go:\d+\] `)

// Buffer is what the controller has logged.
type Buffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write takes a part of the log.
func (b *Buffer) Write(data []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(data)
}

// String returns the log so far.
func (b *Buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// Capture logs as lockstep-controller does, but to a buffer.
func Capture(t *testing.T) *Buffer {
	t.Helper()
	buffer := &Buffer{}
	state := klog.CaptureState()
	config := logsapi.NewLoggingConfiguration()
	config.Verbosity = 2
	if err := logging.SetOn(config, nil, buffer, buffer); err != nil {
		t.Fatalf("setting up the log: %v", err)
	}
	klog.StopFlushDaemon() // It reads what other tests set.
	t.Cleanup(func() {
		state.Restore()
		if err := logsapi.ResetForTest(nil); err != nil {
			t.Errorf("resetting the log: %v", err)
		}
		klog.StopFlushDaemon()
	})
	return buffer
}

// Line is a line of the history, taken apart.
type Line struct {
	Message, Trigger string
	Data             []byte
	Object           map[string]any
}

// History takes the log apart as a collector does.
func (b *Buffer) History(t *testing.T) []Line {
	t.Helper()
	var lines []Line
	for line := range strings.Lines(b.String()) {
		line = strings.TrimSuffix(line, "\n")
		if !headerOfHistory.MatchString(line) {
			continue
		}
		match := lineOfHistory.FindStringSubmatch(line)
		if match == nil {
			t.Fatalf("a line that nobody can parse: %.300s", line)
		}
		snapshot := Line{Message: match[1], Trigger: match[2], Data: []byte(match[3])}
		if err := json.Unmarshal(snapshot.Data, &snapshot.Object); err != nil {
			t.Fatalf("the object of %.300s: %v", line, err)
		}
		lines = append(lines, snapshot)
	}
	return lines
}

// Summary returns a line without its object.
func (s Line) Summary() string {
	return fmt.Sprintf("%s: %s: %v %v", s.Message, s.Trigger, s.Object["apiVersion"], s.Object["kind"])
}
