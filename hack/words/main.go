// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Command words shows how often comments and documents use words that make sentences hard to read, per 1000 words and
// tree, beside the goals.
package main

import (
	"bufio"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"text/tabwriter"
)

// hard are the kinds of words that are counted, each with its goal per 1000 words. Pronouns are hard if the reader has
// to look for their noun.
var hard = []struct {
	name    string
	pattern *regexp.Regexp
	goal    float64
}{
	{"it/they", regexp.MustCompile(`(?i)\b(it|its|they|them|their)\b`), 22},
	{"who", regexp.MustCompile(`(?i)\b(who|whom|whoever|nobody|somebody|everybody)\b`), 0.7},
	{"told", regexp.MustCompile(`(?i)\b(told|tell|tells)\b`), 0.7},
	{"one that", regexp.MustCompile(`(?i)\b(one that|ones that|those that|none of)\b`), 0.7},
	{"of which", regexp.MustCompile(`(?i)\b(of which|of whom|whose)\b`), 0.7},
}

// trees are what is counted. Decision records are dated and not rewritten, so they are left out.
var trees = []struct {
	name  string
	paths []string
}{
	{"scheduler-plugin", []string{"scheduler-plugin"}},
	{"controller", []string{"controller", "podgroup"}},
	{"internal, cmd", []string{"internal", "cmd"}},
	{"docs", []string{"docs", "README.md", "CHANGELOG.md", "CONTRIBUTING.md"}},
}

// decisions is the folder of decision records.
var decisions = filepath.Join("docs", "adr")

// goComment finds the prose of a line that is a comment: no directive.
var goComment = regexp.MustCompile(`^\s*//(?:\s(.*))?$`)

// count is how many words a text has, and how many of each kind of hard ones.
type count struct {
	words int
	hard  [5]int
}

func (c *count) add(text string) {
	c.words += len(strings.Fields(text))
	for i, kind := range hard {
		c.hard[i] += len(kind.pattern.FindAllString(text, -1))
	}
}

// addFile counts the comments of a Go file, or the text of a document outside of its code blocks.
func (c *count) addFile(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	isGo, isCode := strings.HasSuffix(path, ".go"), false
	var text strings.Builder // in one piece, as the words of a pair may be on two lines
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		line := lines.Text()
		switch {
		case isGo:
			if found := goComment.FindStringSubmatch(line); found != nil && !strings.HasPrefix(found[1], "Copyright ") && !strings.HasPrefix(found[1], "SPDX") {
				text.WriteString(found[1] + " ")
			}
		case strings.HasPrefix(strings.TrimSpace(line), "```"):
			isCode = !isCode
		case !isCode:
			text.WriteString(line + " ")
		}
	}
	c.add(text.String())
	return lines.Err()
}

// addTree counts the Go files and documents of a folder, except tests and generated files; or one file.
func (c *count) addTree(path string) error {
	return filepath.WalkDir(path, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := entry.Name()
		if entry.IsDir() {
			if path == decisions {
				return filepath.SkipDir
			}
			return nil
		}
		isSource := strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go") && !strings.HasPrefix(name, "zz_")
		if isSource || strings.HasSuffix(name, ".md") {
			return c.addFile(path)
		}
		return nil
	})
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "words:", err)
		os.Exit(1)
	}
}

func run() error {
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	row := func(name string, words any, cells func(i int) string) {
		fmt.Fprintf(table, "%s\t%v\t", name, words)
		for i := range hard {
			fmt.Fprintf(table, "%s\t", cells(i))
		}
		fmt.Fprintln(table)
	}
	row("per 1000 words", "words", func(i int) string { return hard[i].name })
	for _, tree := range trees {
		var c count
		for _, path := range tree.paths {
			if err := c.addTree(path); err != nil {
				return err
			}
		}
		row(tree.name, c.words, func(i int) string {
			rate := 1000 * float64(c.hard[i]) / float64(max(c.words, 1))
			if rate > hard[i].goal {
				return fmt.Sprintf("%.1f!", rate)
			}
			return fmt.Sprintf("%.1f ", rate)
		})
	}
	row("goal", "", func(i int) string { return fmt.Sprintf("%.1f ", hard[i].goal) })
	// Measured by the same rules in November 2026.
	similar := []float64{17, 0, 0.1, 0.2, 0.2}
	row("kube-scheduler, raft", "", func(i int) string { return fmt.Sprintf("%.1f ", similar[i]) })
	return table.Flush()
}
