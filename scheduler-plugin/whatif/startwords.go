// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package whatif

import (
	"fmt"
	"strings"
	"time"

	"github.com/lockstep-k8s/lockstep/scheduler-plugin/answers"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
)

// tellStart returns when a gang is expected to start, nil if unknown. If the scheduler has written a time into the
// group, and that time has not passed, it is the result, because the scheduler knows more. mayRead reports which other
// gangs the answer may name.
func tellStart(s *Snapshot, g *gang, expected map[dialect.Key]Expected, mayRead func(key dialect.Key) bool) *answers.ExpectedStart {
	found := expected[g.group.Key]
	if told := g.group.ExpectedStart; told != nil && !told.Probable.Time.Before(s.Now) {
		found.Latest, found.Probable = told.Latest.Time, told.Probable.Time
	}
	if found.isUnknown() {
		return nil
	}
	start := &answers.ExpectedStart{Latest: found.Latest, Probable: found.Probable}
	for _, key := range found.Awaited {
		if key.Name == "" || !mayRead(key) || len(start.Awaits) == answers.MaxAwaits {
			start.MoreAwaited++
			continue
		}
		start.Awaits = append(start.Awaits, key.String())
	}
	return start
}

// startInWords returns a sentence on when a gang is expected to start.
func startInWords(start *answers.ExpectedStart, now time.Time) string {
	var parts []string
	if !start.Latest.IsZero() {
		parts = append(parts, "expected to start by "+clock(start.Latest, now)+" at the latest, if running work uses all of its limits")
	}
	if !start.Probable.IsZero() {
		parts = append(parts, "probably by "+clock(start.Probable, now))
	}
	words := strings.Join(parts, "; ")
	if start.Latest.IsZero() {
		words = "expected to start, if estimates hold, " + words
	}
	return words
}

// awaitedInWords returns which work a gang waits for, "" for none.
func awaitedInWords(start *answers.ExpectedStart) string {
	words := strings.Join(start.Awaits, ", ")
	switch {
	case start.MoreAwaited == 0:
		return words
	case words == "" && start.MoreAwaited == 1:
		return "1 gang or Pod"
	case words == "":
		return fmt.Sprintf("%d gangs or Pods", start.MoreAwaited)
	}
	return fmt.Sprintf("%s and %d more", words, start.MoreAwaited)
}

// clock returns a time for people, with its day if that is not today.
func clock(at, now time.Time) string {
	at, now = at.UTC(), now.UTC()
	if at.YearDay() == now.YearDay() && at.Year() == now.Year() {
		return at.Format("15:04 UTC")
	}
	return at.Format("2006-01-02 15:04 UTC")
}
