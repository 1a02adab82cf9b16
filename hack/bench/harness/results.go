// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// Result is what came of one case.
type Result struct {
	Title    string    `json:"title"`
	Measured time.Time `json:"measured"`
	Machine  Machine   `json:"machine"`
	Figures  []Figure  `json:"figures"`
}

// results are the last result of each case of a folder, by name.
type results map[string]Result

const resultsFile, reportFile = "results.json", "report.md"

// load reads the results of a folder; one that has none yet is empty.
func load(dir string) (results, error) {
	path := filepath.Join(dir, resultsFile)
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return results{}, nil
	}
	if err != nil {
		return nil, err
	}
	r := results{}
	if err := json.Unmarshal(data, &r); err != nil {
		return nil, fmt.Errorf("reading %s: %w", path, err)
	}
	return r, nil
}

func (r results) put(c Case, result Result) { r[c.Name] = result }

// save writes the results and the report of them.
func (r results) save(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fmt.Errorf("encoding the results: %w", err)
	}
	if err := os.WriteFile(filepath.Join(dir, resultsFile), append(data, '\n'), 0o644); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, reportFile), []byte(r.markdown()), 0o644)
}

// markdown is a table for each suite.
func (r results) markdown() string {
	var b strings.Builder
	suite := ""
	for _, name := range slices.Sorted(maps.Keys(r)) {
		result := r[name]
		if s, _, _ := strings.Cut(name, "/"); s != suite {
			suite = s
			fmt.Fprintf(&b, "\n## %s\n\n| case | figure | bar | | from |\n|---|---|---|---|---|\n", suite)
		}
		for _, f := range result.Figures {
			fmt.Fprintf(&b, "| %s: %s | **%s** | %s | %s | %s |\n", result.Title, f.What, f.quantity(f.Value), f.bar(), f.Verdict(), f.Note)
		}
	}
	machines := map[string]bool{}
	for _, result := range r {
		machines[result.Machine.String()] = true
	}
	for _, machine := range slices.Sorted(maps.Keys(machines)) {
		fmt.Fprintf(&b, "\nMeasured on %s.\n", machine)
	}
	return strings.TrimPrefix(b.String(), "\n")
}

// print prints the results of some cases for people.
func (r results) print(w io.Writer, cases []Case) error {
	table := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	fmt.Fprintln(table, "CASE\tWHAT\tFIGURE\tBAR\t\tFROM")
	for _, c := range cases {
		for _, f := range r[c.Name].Figures {
			fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\n", c.Name, f.What, f.quantity(f.Value), f.bar(), f.Verdict(), f.Note)
		}
	}
	return table.Flush()
}
