// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
)

// screen tells what happens, a line for each change.
type screen struct {
	mu       sync.Mutex
	out      io.Writer
	began    time.Time
	last     map[string]string    // the last line of each job
	followed map[string]bool      // UIDs of Pods whose logs are shown
	losses   map[string][]float64 // as each job printed them
}

func newScreen(out io.Writer) *screen {
	return &screen{out: out, began: time.Now(), last: map[string]string{}, followed: map[string]bool{}, losses: map[string][]float64{}}
}

// say prints a sentence of the account.
func (s *screen) say(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fmt.Fprintf(s.out, "\n▶ %s\n\n", fmt.Sprintf(format, args...))
}

// show prints where a job is, if that has changed.
func (s *screen) show(name string, v view) {
	if v.framework == nil {
		return
	}
	line := describe(v)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last[name] == line {
		return
	}
	s.last[name] = line
	s.print(name, line)
}

func (s *screen) print(name, line string) {
	fmt.Fprintf(s.out, "%6.1fs  %-10s  %s\n", time.Since(s.began).Seconds(), name, line)
}

// describe says in a line where a job is.
func describe(v view) string {
	status := v.framework.Status
	if status == nil {
		return "submitted"
	}
	line := fmt.Sprintf("attempt %d  %-25s", status.AttemptStatus.ID, status.State)
	line += fmt.Sprintf("  %-26s", tasksOf(status.Tasks))
	if group := v.group; group != nil {
		line += fmt.Sprintf("  PodGroup %s, %d of %d placed", cmp.Or(group.Status.Phase, "new"), group.Status.Scheduled, max(group.Spec.MinMember, group.Status.Members))
		if why := v.unschedulable(); why != nil {
			line += fmt.Sprintf("\n%22s%s: %s", "", why.Reason, why.Message)
		}
	}
	if done := status.AttemptStatus.CompletionStatus; done != nil {
		line += fmt.Sprintf("  code %d %s", done.Code, done.Phrase)
	}
	return strings.TrimRight(line, " ")
}

// tasksOf says how many tasks are in which state, leaving out what is none.
func tasksOf(tasks *frameworkv1.TaskCounts) string {
	if tasks == nil {
		return ""
	}
	var parts []string
	for _, part := range []struct {
		count int32
		name  string
	}{{tasks.Pending, "pending"}, {tasks.Running, "running"}, {tasks.Succeeded, "succeeded"}, {tasks.Failed, "failed"}} {
		if part.count > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", part.count, part.name))
		}
	}
	return strings.Join(parts, ", ")
}

// follow says whether the log of a Pod is to be shown now: once each.
func (s *screen) follow(uid string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.followed[uid] {
		return false
	}
	s.followed[uid] = true
	return true
}

func (s *screen) unfollow(uid string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.followed, uid)
}

// lossPattern finds the loss in a line of the training job's log.
var lossPattern = regexp.MustCompile(`loss ([0-9.]+)`)

// copyLog prints the log of a job until it ends, and remembers the losses.
func (s *screen) copyLog(name string, log io.Reader) {
	lines := bufio.NewScanner(log)
	for lines.Scan() {
		line := strings.TrimSpace(lines.Text())
		s.mu.Lock()
		s.print(name, "│ "+line)
		if found := lossPattern.FindStringSubmatch(line); found != nil {
			if loss, err := strconv.ParseFloat(found[1], 64); err == nil {
				s.losses[name] = append(s.losses[name], loss)
			}
		}
		s.mu.Unlock()
	}
}

// lossFell says whether each job printed losses, the last below the first.
func (s *screen) lossFell(names ...string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range names {
		losses := s.losses[name]
		if len(losses) < 2 || losses[len(losses)-1] >= losses[0] {
			return false
		}
	}
	return true
}
