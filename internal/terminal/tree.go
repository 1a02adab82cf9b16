// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/lockstep-k8s/lockstep/internal/text"
	"github.com/lockstep-k8s/lockstep/internal/view"
)

// Age returns how long before now a time was, formatted as kubectl does; "-" if the time is zero. A time in the future,
// from a clock that is ahead, counts as now.
func Age(t, now time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return duration.HumanDuration(max(0, now.Sub(t)))
}

// StateColour returns the colour of a state.
func StateColour(state string) Colour {
	switch view.ToneOf(state) {
	case view.ToneRuns, view.ToneGood:
		return Green
	case view.ToneBad:
		return Red
	case view.ToneQuiet:
		return Dim
	default:
		return Yellow
	}
}

// Jobs returns the table of jobs. Wide adds columns, namespaces that of the namespace.
func (s Style) Jobs(jobs []view.Row, now time.Time, namespaces, wide bool) string {
	header := []string{"NAME", "KIND", "STATE", "ATTEMPT", "TASKS", "REASON", "AGE"}
	if namespaces {
		header = append([]string{"NAMESPACE"}, header...)
	}
	if wide {
		header = append(header, "CODE")
	}
	var head []Cell
	for _, title := range header {
		head = append(head, Cell{title, Bold})
	}
	most := 60
	if wide {
		most = maxMessage
	}
	rows := [][]Cell{head}
	for _, job := range jobs {
		var row []Cell
		if namespaces {
			row = append(row, Cell{Text: job.Namespace})
		}
		attempt := "-"
		if job.Attempt >= 0 {
			attempt = strconv.Itoa(int(job.Attempt))
		}
		count, what := job.Progress()
		tasks := fmt.Sprintf("%d/%d %s", count, job.Total, what)
		row = append(row, Cell{Text: job.Name}, Cell{Text: job.Kind}, Cell{job.State, StateColour(job.State)}, Cell{Text: attempt},
			Cell{Text: tasks}, Cell{Text: text.Shorten(cmp.Or(job.Why(), "-"), most)}, Cell{Text: Age(job.Created, now)})
		if wide {
			code := "-"
			if job.Code != nil {
				code = strconv.Itoa(int(*job.Code))
			}
			row = append(row, Cell{Text: code})
		}
		rows = append(rows, row)
	}
	return s.Table(rows)
}

// maxMessage is how many bytes of a message a tree shows.
const maxMessage = 300

// Tree draws a Framework: the attempt, the roles, and the tasks.
func (s Style) Tree(tree *view.Tree, now time.Time) string {
	var out strings.Builder
	head := []string{s.Paint(Bold, tree.Name), s.Paint(StateColour(tree.State), tree.State)}
	if tree.Attempt != nil && tree.Attempt.ID >= 0 {
		head = append(head, fmt.Sprintf("attempt %d", tree.Attempt.ID))
	}
	head = append(head, fmt.Sprintf("%d/%d running", tree.Running, tree.Total), "age "+Age(tree.Created, now))
	if tree.Waiting != "" {
		head = append(head, s.Paint(Yellow, "waits for "+tree.Waiting))
	}
	out.WriteString(strings.Join(head, "  ") + "\n")
	if tree.Attempt != nil {
		s.attempt(&out, tree.Attempt, now)
	}
	for _, what := range tree.Unread {
		out.WriteString(s.Paint(Yellow, "! "+what) + "\n")
	}
	return out.String()
}

func (s Style) attempt(out *strings.Builder, attempt *view.Attempt, now time.Time) {
	if end := attempt.End; end != nil {
		out.WriteString("├─ ended with " + s.end(end) + "\n")
	}
	if gang := attempt.Gang; gang != nil {
		line := fmt.Sprintf("gang %s: %s", gang.Name, cmp.Or(gang.Phase, "Pending"))
		if attempt.End == nil {
			line += fmt.Sprintf(", %d placed, at least %d together", gang.Placed, gang.Minimum)
		}
		if gang.Reason != "" {
			line += fmt.Sprintf(", %s for %s: %s", gang.Reason, Age(gang.Since, now), text.Shorten(gang.Message, maxMessage))
		}
		out.WriteString("├─ " + s.Paint(Plain, line) + "\n")
	}
	var rows [][]Cell
	for i, role := range attempt.Roles {
		branch, trunk := "├─ ", "│  "
		if i == len(attempt.Roles)-1 {
			branch, trunk = "└─ ", "   "
		}
		// The line of a role has one cell: the row does not widen the columns of tasks.
		rows = append(rows, []Cell{{branch + role.Name + fmt.Sprintf("  %d/%d running", role.Running, role.Total), Plain}})
		for j, tasks := range role.Tasks {
			twig := "├─ "
			if j == len(role.Tasks)-1 {
				twig = "└─ "
			}
			rows = append(rows, s.tasks(trunk+twig, tasks, now))
		}
	}
	out.WriteString(s.Table(rows))
}

func (s Style) end(end *view.End) string {
	return s.Paint(Plain, text.Shorten(fmt.Sprintf("code %d: %s", end.Code, end.Says()), maxMessage))
}

func (s Style) tasks(branch string, tasks view.Tasks, now time.Time) []Cell {
	name := tasks.Indexes
	if tasks.Count > 1 {
		name += fmt.Sprintf(" (%d tasks)", tasks.Count)
	}
	state := tasks.State
	if state == "" {
		state = "others"
	}
	node := tasks.Node
	if tasks.Nodes > 1 {
		node = fmt.Sprintf("%d nodes", tasks.Nodes)
	}
	code := ""
	if tasks.Code != nil {
		code = "code " + strconv.Itoa(int(*tasks.Code))
	}
	retries := ""
	if tasks.Retries > 0 {
		retries = fmt.Sprintf("%d retries", tasks.Retries)
		if tasks.Retries == 1 {
			retries = "1 retry"
		}
	}
	if node == "" {
		node = "-"
	}
	return []Cell{{branch + name, Plain}, {state, StateColour(tasks.State)}, {Text: node}, {Text: Age(tasks.Since, now)}, {Text: code}, {Text: tasks.Reason}, {Text: retries}}
}
