// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package figures

import (
	"fmt"
	"io"
	"math"
	"slices"
	"text/tabwriter"

	"github.com/lockstep-k8s/lockstep/internal/terminal"
)

// WriteTable writes the figures of policies beside each other, for a terminal.
func WriteTable(w io.Writer, all []Figures) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "POLICY\tGAR\tSOR\tGFR\tHELD\tSLOWDOWN\tPREEMPTED\tIN PART\tUNFINISHED\tCPU/1000")
	for _, f := range all {
		cpu, held := "-", "-"
		if f.Held != nil {
			held = fmt.Sprintf("%.3f", f.HeldInAll())
		}
		if f.CPU > 0 {
			cpu = fmt.Sprintf("%.2fs", f.CPU)
		}
		fmt.Fprintf(table, "%s\t%.3f\t%.3f\t%.3f\t%s\t%.1f\t%d\t%.0fs\t%d\t%s\n", f.Policy, f.GAR, f.SOR, f.GFR, held, f.Slowdown, f.Preempted, f.InPart, f.Unfinished, cpu)
	}
	fmt.Fprintln(table)
	fmt.Fprintln(table, "POLICY\tSIZE\tJOBS\tWAIT P50\tP90\tP99\tMAX")
	for _, f := range all {
		for _, c := range f.Classes {
			fmt.Fprintf(table, "%s\t%s\t%d\t%s\t%s\t%s\t%s\n", f.Policy, c.Name, c.Jobs, Span(c.P50), Span(c.P90), Span(c.P99), Span(c.Max))
		}
	}
	if slices.ContainsFunc(all, func(f Figures) bool { return f.Starts != nil }) {
		fmt.Fprintln(table)
		fmt.Fprintln(table, "POLICY\tWAITED\tTOLD\tUNDISTURBED\tLATEST KEPT\tSLACK\tERROR\tHALFWAY")
	}
	for _, f := range all {
		if s := f.Starts; s != nil {
			fmt.Fprintf(table, "%s\t%d\t%.1f%%\t%d\t%.1f%%\t%s\t%.0f%%\t%.0f%%\n", f.Policy, s.Waited, 100*s.Told, s.Undisturbed, 100*s.Kept, Span(Wait(s.Slack)), 100*s.Error, 100*s.ErrorLater)
		}
	}
	if slices.ContainsFunc(all, func(f Figures) bool { return f.Liars != nil }) {
		fmt.Fprintln(table)
		fmt.Fprintln(table, "POLICY\tOVERSTATES\tUNDERSTATES\tOTHERS' JOBS\tP99\tWITHOUT LIES\tRATIO")
	}
	for _, f := range all {
		if l := f.Liars; l != nil {
			fmt.Fprintf(table, "%s\t%s\t%s\t%d\t%s\t%s\t%.2f\n", f.Policy, terminal.Clean(l.Overstates), terminal.Clean(l.Understates), l.Jobs, Span(l.P99), Span(l.Without), l.Ratio)
		}
	}
	return table.Flush()
}

// Span formats seconds for people: "42s" below a minute, then whole minutes ("2h5m"), and "never" for infinity.
func Span(wait Wait) string {
	seconds := float64(wait)
	switch {
	case math.IsInf(seconds, 1):
		return "never"
	case seconds < 60:
		return fmt.Sprintf("%.0fs", seconds)
	case seconds < 3600:
		return fmt.Sprintf("%dm", int(seconds)/60)
	default:
		return fmt.Sprintf("%dh%dm", int(seconds)/3600, int(seconds)/60%60)
	}
}
