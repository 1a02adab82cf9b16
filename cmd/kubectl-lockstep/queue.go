// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/lockstep-k8s/lockstep/internal/reading"
	"github.com/lockstep-k8s/lockstep/internal/terminal"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/answers"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/whatif"
)

func newLine(s *session) *cobra.Command {
	var output string
	var everywhere bool
	cmd := &cobra.Command{
		Use:   "queue",
		Short: "List the gangs that wait for a place, in order",
		Long: `List the gangs that wait for a place, in the order in which the scheduler tries them: by priority, then by age. The rank
includes gangs of other namespaces, as far as you may list them.

Probable start: if work ends by its estimates and limits. Latest start: if all work uses all of its limits. Both are for the
present queue. The reason is why the last scheduling cycle did not place the gang; it also says for which gang ahead nodes are
reserved, and when the gang is tried again if that is more than a minute away.`,
		Example: `  kubectl lockstep queue
  kubectl lockstep queue -A`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return s.line(cmd.Context(), everywhere, output)
		},
	}
	cmd.Flags().BoolVarP(&everywhere, "all-namespaces", "A", false, "all namespaces")
	addOutput(cmd, &output)
	return cmd
}

func (s *session) line(ctx context.Context, everywhere bool, output string) error {
	c, err := s.connectToAsk(output)
	if err != nil {
		return err
	}
	snapshot, err := c.reader.Snapshot(ctx, c.namespace)
	if err == nil {
		err = reading.Refused(snapshot)
	}
	if err != nil {
		return err
	}
	answer := whatif.Order(snapshot, func(key dialect.Key) bool { return everywhere || key.Namespace == c.namespace })
	if done, err := s.print(answer, output); done {
		return err
	}
	rows := [][]terminal.Cell{cells("RANK", "NAMESPACE", "NAME", "PRIORITY", "MEMBERS", "MINIMUM", "AGE", "PROBABLE START", "LATEST START", "REASON")}
	for i := range answer.Gangs {
		g := &answer.Gangs[i]
		rows = append(rows, cells(strconv.Itoa(g.Rank), g.Namespace, g.Name, strconv.Itoa(int(g.Priority)), strconv.Itoa(g.Members),
			strconv.Itoa(g.Minimum), terminal.Age(g.Created, now()), startOf(g.ExpectedStart, false), startOf(g.ExpectedStart, true), cmp.Or(g.Reason, "-")))
	}
	if len(answer.Gangs) == 0 {
		s.note("No gang waits%s.", where(everywhere, c.namespace))
	} else {
		_, err = s.out.Write([]byte(s.style.Table(rows)))
	}
	if answer.Others > 0 {
		line(s.out, "and %d of other namespaces", answer.Others)
	}
	writeUnknown(s.errOut, answer.Unknown)
	return err
}

// startOf is in what time a gang starts, probably or at the latest.
func startOf(start *answers.ExpectedStart, latest bool) string {
	if start == nil {
		return "-"
	}
	at := start.Probable
	if latest {
		at = start.Latest
	}
	if at.IsZero() {
		return "-"
	}
	return "in " + terminal.Age(now(), at)
}

func cells(texts ...string) []terminal.Cell {
	row := make([]terminal.Cell, len(texts))
	for i, text := range texts {
		row[i] = terminal.Cell{Text: text}
	}
	return row
}
