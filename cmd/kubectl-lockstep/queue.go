// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"net/url"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/lockstep-k8s/lockstep/internal/reading"
	"github.com/lockstep-k8s/lockstep/internal/terminal"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/answers"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/whatif"
)

func newLine(s *session) *cobra.Command {
	var output, scheduler string
	var everywhere bool
	cmd := &cobra.Command{
		Use:     "queue",
		Aliases: []string{"line"},
		Short:   "List the gangs that wait for a place, the one that is next first",
		Long: `List the gangs that wait for a place, the one that is next first: by priority, then by age. The rank counts
those of other namespaces, too, as far as you may list them. The reason is that of the last scheduling cycle. Only the
scheduler knows the back-off of a gang and whether nodes are reserved for it: with --scheduler there are columns for both.`,
		Example: `  kubectl -n lockstep-system port-forward LEADER 10260 &
  kubectl lockstep queue --scheduler https://127.0.0.1:10260`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return s.line(cmd.Context(), everywhere, output, scheduler)
		},
	}
	cmd.Flags().BoolVarP(&everywhere, "all-namespaces", "A", false, "all namespaces")
	addOutput(cmd, &output)
	addScheduler(cmd, &scheduler)
	return cmd
}

func (s *session) line(ctx context.Context, everywhere bool, output, scheduler string) error {
	c, at, err := s.connectToAsk(output, scheduler)
	if err != nil {
		return err
	}
	answer, err := c.line(ctx, everywhere, at)
	if err != nil {
		return err
	}
	if done, err := s.print(answer, output); done {
		return err
	}
	rows := [][]terminal.Cell{cells(queueRow("REASON", at != nil, []string{"BACK-OFF", "RESERVED"}, "RANK", "NAMESPACE", "NAME", "PRIORITY", "MEMBERS", "MINIMUM", "AGE")...)}
	for i := range answer.Gangs {
		g := &answer.Gangs[i]
		rows = append(rows, cells(queueRow(cmp.Or(g.Reason, "-"), at != nil, ofScheduler(g), strconv.Itoa(g.Rank), g.Namespace, g.Name,
			strconv.Itoa(int(g.Priority)), strconv.Itoa(g.Members), strconv.Itoa(g.Minimum), terminal.Age(g.Created, now()))...))
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

// line is the line as the scheduler knows it, if it is to be asked, and else as it looks.
func (c *cluster) line(ctx context.Context, everywhere bool, scheduler *url.URL) (answers.Line, error) {
	if scheduler == nil {
		snapshot, err := c.reader.Snapshot(ctx, c.namespace)
		if err == nil {
			err = reading.Refused(snapshot)
		}
		if err != nil {
			return answers.Line{}, err
		}
		return whatif.Order(snapshot, func(key dialect.Key) bool { return everywhere || key.Namespace == c.namespace }), nil
	}
	query := url.Values{}
	if !everywhere {
		query.Set("namespace", c.namespace)
	}
	var answer answers.Line
	err := c.askScheduler(ctx, scheduler, "line", query.Encode(), &answer)
	return answer, err
}

// queueRow is a row of the table; what only the scheduler knows is in it if the scheduler was asked.
func queueRow(reason string, asked bool, ofScheduler []string, first ...string) []string {
	if asked {
		first = append(first, ofScheduler...)
	}
	return append(first, reason)
}

// ofScheduler is what only the scheduler knows of a gang: how long its back-off lasts, and whether nodes are reserved for it.
func ofScheduler(g *answers.Waiting) []string {
	backOff, reserved := "none", "no"
	if g.BackOffUntil != nil {
		backOff = terminal.Age(now(), *g.BackOffUntil)
	}
	if g.Reserved {
		reserved = "yes"
	}
	return []string{backOff, reserved}
}

func cells(texts ...string) []terminal.Cell {
	row := make([]terminal.Cell, len(texts))
	for i, text := range texts {
		row[i] = terminal.Cell{Text: text}
	}
	return row
}
