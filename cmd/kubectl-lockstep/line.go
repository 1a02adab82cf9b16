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
		Use:   "line",
		Short: "List the gangs that wait for a place, the one that is next first",
		Long: `List the gangs that wait for a place, the one that is next first: by priority, then by age. The rank counts
those of other namespaces, too, as far as you may list them. The reason is what the gang was told last. How long it is in
its back-off, and whether room is held for it, only the scheduler knows: --scheduler asks it.`,
		Example: `  kubectl -n lockstep-system port-forward LEADER 10260 &
  kubectl lockstep line --scheduler https://127.0.0.1:10260`,
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
	if err := checkOutput(output); err != nil {
		return err
	}
	at, err := parseScheduler(scheduler)
	if err != nil {
		return err
	}
	c, err := s.connect()
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
	rows := [][]terminal.Cell{cells("RANK", "NAMESPACE", "NAME", "PRIORITY", "MEMBERS", "MINIMUM", "AGE", "BACK-OFF", "HOLDS", "REASON")}
	for i := range answer.Gangs {
		g := &answer.Gangs[i]
		rows = append(rows, cells(strconv.Itoa(g.Rank), g.Namespace, g.Name, strconv.Itoa(int(g.Priority)), strconv.Itoa(g.Members),
			strconv.Itoa(g.Minimum), terminal.Age(g.Created, now()), backOff(g, at != nil), holds(g, at != nil), cmp.Or(g.Reason, "-")))
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

// backOff is how long a gang's back-off lasts: "-" if that is not known.
func backOff(g *answers.Waiting, known bool) string {
	switch {
	case g.BackOffUntil != nil:
		return terminal.Age(now(), *g.BackOffUntil)
	case known:
		return "none"
	default:
		return "-"
	}
}

// holds says whether room is held for a gang: "-" if that is not known.
func holds(g *answers.Waiting, known bool) string {
	switch {
	case g.Holds:
		return "yes"
	case known:
		return "no"
	default:
		return "-"
	}
}

func cells(texts ...string) []terminal.Cell {
	row := make([]terminal.Cell, len(texts))
	for i, text := range texts {
		row[i] = terminal.Cell{Text: text}
	}
	return row
}
