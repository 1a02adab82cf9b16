// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"cmp"
	"fmt"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-k8s/lockstep/internal/text"
	"github.com/lockstep-k8s/lockstep/internal/view"
)

// heading returns the first row of a table.
func heading(titles ...string) []Cell {
	var cells []Cell
	for _, title := range titles {
		cells = append(cells, Cell{title, Bold})
	}
	return cells
}

// section returns a table under a title; "" if the table has no row but its heading.
func (s Style) section(title string, rows [][]Cell) string {
	if len(rows) < 2 {
		return ""
	}
	return "\n" + s.Paint(Bold, title) + "\n" + s.Table(rows)
}

// Policies returns what the spec asks for, a line each.
func (s Style) Policies(policies []string) string {
	out := "\n" + s.Paint(Bold, "Policies") + "\n"
	for _, policy := range policies {
		out += s.Paint(Plain, policy) + "\n"
	}
	return out
}

// Conditions are those of a Framework.
func (s Style) Conditions(conditions []metav1.Condition, now time.Time) string {
	rows := [][]Cell{heading("CONDITION", "STATUS", "REASON", "SINCE", "MESSAGE")}
	for _, c := range conditions {
		rows = append(rows, []Cell{{Text: c.Type}, {Text: string(c.Status)}, {Text: c.Reason}, {Text: Age(c.LastTransitionTime.Time, now)}, {Text: text.Shorten(c.Message, maxMessage)}})
	}
	return s.section("Conditions", rows)
}

// Events returns the last ones.
func (s Style) Events(events []view.Event, now time.Time) string {
	rows := [][]Cell{heading("LAST", "TIMES", "ABOUT", "REASON", "MESSAGE")}
	for _, e := range events {
		colour := Plain
		if e.Warning {
			colour = Yellow
		}
		rows = append(rows, []Cell{{Text: Age(e.Last, now)}, {Text: strconv.Itoa(int(e.Count))}, {Text: e.About}, {e.Reason, colour}, {Text: text.Shorten(e.Message, maxMessage)}})
	}
	return s.section("Events", rows)
}

// Past returns the attempts that are over.
func (s Style) Past(attempts []view.PastAttempt, now time.Time) string {
	rows := [][]Cell{heading("ATTEMPT", "ENDED", "TOOK", "RESULT", "CODE", "WHY", "TASK ATTEMPTS", "THEN")}
	for i := range attempts {
		a := &attempts[i]
		took := "-"
		if !a.Ended.IsZero() {
			took = Age(a.Started, a.Ended)
		}
		rows = append(rows, []Cell{
			{Text: fmt.Sprint(a.ID)}, {Text: Age(a.Ended, now)}, {Text: took}, {a.State, StateColour(a.State)}, {Text: fmt.Sprint(a.End.Code)},
			{Text: text.Shorten(a.End.Says(), maxMessage)}, {Text: cmp.Or(view.CountsInWords(a.Counts), "-")}, {Text: a.Next},
		})
	}
	return s.section("History", rows)
}
