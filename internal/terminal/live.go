// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/lockstep-k8s/lockstep/internal/view"
)

// Redraw returns what to write to a terminal so that text replaces the last `drawn` lines, and how many lines text
// takes. columns and lines are the size of the terminal: longer lines are cut, and of surplus lines only the number is
// shown.
func Redraw(text string, drawn, columns, lines int) (string, int) {
	all := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	// The last line of the terminal is that of the cursor.
	if most := max(1, lines-1); len(all) > most {
		more := len(all) - most + 1
		all = append(all[:most-1:most-1], fmt.Sprintf("… %d more lines", more))
	}
	var out strings.Builder
	if drawn > 0 {
		fmt.Fprintf(&out, "\x1b[%dA", drawn)
	}
	for _, line := range all {
		out.WriteString("\r" + Fit(line, columns) + "\x1b[K\n")
	}
	out.WriteString("\x1b[J")
	return out.String(), len(all)
}

// Change is a line of output about an object, such as a job or some tasks of a role. It is printed only if it differs
// from the line that was last printed about the same object.
type Change struct {
	// Of names the object.
	Of, Text string
}

// JobChange returns the line about a job for output that is not a terminal. It is printed when it changes.
func JobChange(row *view.Row) Change {
	of := row.Namespace + "/" + row.Name + " " + row.Kind
	text := of + " " + row.State
	if row.Attempt >= 0 {
		text += fmt.Sprintf(" attempt %d", row.Attempt)
	}
	count, what := row.Progress()
	text += fmt.Sprintf(" %d/%d %s", count, row.Total, what)
	if row.Ended != "" {
		text += ": " + row.Ended
	}
	// How long a retry waits is another text each second.
	if row.Waiting != "" && row.State != view.StateRetrying {
		text += " waits for " + row.Waiting
	}
	return Change{Clean(of), Clean(text)}
}

// Changes returns the lines about a Framework for output that is not a terminal. Each is printed when it changes.
func Changes(tree *view.Tree) []Change {
	head := fmt.Sprintf("%s %s %d/%d running", tree.Name, tree.State, tree.Running, tree.Total)
	if tree.Attempt != nil {
		head = fmt.Sprintf("%s %s attempt %d %d/%d running", tree.Name, tree.State, tree.Attempt.ID, tree.Running, tree.Total)
	}
	// How long a retry waits is another text each second.
	if tree.Waiting != "" && tree.State != view.StateRetrying {
		head += " waits for " + tree.Waiting
	}
	changes := []Change{{"", Clean(head)}}
	if tree.Attempt == nil {
		return changes
	}
	for _, role := range tree.Attempt.Roles {
		for _, tasks := range role.Tasks {
			of := tree.Name + " " + role.Name + "/" + tasks.Indexes
			parts := []string{of, tasks.State}
			if tasks.Node != "" {
				parts = append(parts, "on "+tasks.Node)
			}
			if tasks.Code != nil {
				parts = append(parts, "code "+strconv.Itoa(int(*tasks.Code)))
			}
			if tasks.Reason != "" {
				parts = append(parts, tasks.Reason)
			}
			changes = append(changes, Change{of, Clean(strings.Join(parts, " "))})
		}
	}
	for _, what := range tree.Unread {
		changes = append(changes, Change{what, Clean("! " + what)})
	}
	return changes
}
