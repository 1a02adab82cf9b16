// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package figures

import (
	"fmt"
	"io"
	"math"
	"text/tabwriter"
	"time"
)

// WriteTable writes the figures of policies beside each other, for a terminal.
func WriteTable(w io.Writer, all []Figures) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "POLICY\tGAR\tSOR\tGFR\tSLOWDOWN\tPREEMPTED\tIN PART\tUNFINISHED\tCPU/1000")
	for _, f := range all {
		cpu := "-"
		if f.CPU > 0 {
			cpu = fmt.Sprintf("%.2fs", f.CPU)
		}
		fmt.Fprintf(table, "%s\t%.3f\t%.3f\t%.3f\t%.1f\t%d\t%.0fs\t%d\t%s\n", f.Policy, f.GAR, f.SOR, f.GFR, f.Slowdown, f.Preempted, f.InPart, f.Unfinished, cpu)
	}
	fmt.Fprintln(table)
	fmt.Fprintln(table, "POLICY\tSIZE\tJOBS\tWAIT P50\tP90\tP99\tMAX")
	for _, f := range all {
		for _, c := range f.Classes {
			fmt.Fprintf(table, "%s\t%s\t%d\t%s\t%s\t%s\t%s\n", f.Policy, c.Name, c.Jobs, span(c.P50), span(c.P90), span(c.P99), span(c.Max))
		}
	}
	return table.Flush()
}

// span is a time of so many seconds, for people.
func span(seconds float64) string {
	switch {
	case math.IsInf(seconds, 1):
		return "never"
	case seconds < 60:
		return fmt.Sprintf("%.0fs", seconds)
	default:
		return (time.Duration(seconds) * time.Second).Truncate(time.Minute).String()[:len((time.Duration(seconds)*time.Second).Truncate(time.Minute).String())-2]
	}
}
