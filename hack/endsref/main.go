// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Command endsref writes into the documents of each kind of job what becomes of a Pod by the way
// in which it ended, from the table that the tests of all kinds are held against. `make generate`
// runs it.
package main

import (
	"cmp"
	"fmt"
	"os"
	"strings"

	"github.com/lockstep-k8s/lockstep/internal/testing/podways"
)

// tables are the documents, the heads of their tables and what they say of a way.
var tables = []struct {
	file, head string
	row        func(podways.Way) string
}{
	{"docs/completion-and-retry.md", "| the Pod | code | code without a pattern for it | retried by `fancyRetryPolicy` | `disruption` |\n|---|---|---|---|---|", ofFramework},
	{"docs/volcano-job.md", "| the Pod | event |\n|---|---|", func(w podways.Way) string { return cmp.Or(string(w.Volcano), "none: it has succeeded") }},
	{"docs/kubeflow.md", "| the Pod | Never | OnFailure, Always | ExitCode | counts against `backoffLimit` |\n|---|---|---|---|---|", ofKubeflow},
}

func main() {
	for _, table := range tables {
		if err := write(table.file, table.head, table.row); err != nil {
			fmt.Fprintln(os.Stderr, "endsref:", err)
			os.Exit(1)
		}
	}
}

const begin, end = "<!-- ends of Pods: written by hack/endsref -->\n", "<!-- end of ends -->"

// write replaces the table of a document.
func write(file, head string, row func(podways.Way) string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	before, rest, found := strings.Cut(string(text), begin)
	_, after, closed := strings.Cut(rest, end)
	if !found || !closed {
		return fmt.Errorf("%s has no place for the table", file)
	}
	return os.WriteFile(file, []byte(before+begin+head+"\n"+rows(row)+end+after), 0o644)
}

// refusal begins the names of ways that differ by the kubelet's reason.
const refusal = "is refused by its kubelet: "

// rows are those of all ways. Refusals of which the same becomes are one row.
func rows(row func(podways.Way) string) string {
	reasons := map[string][]string{}
	for _, way := range podways.Ways() {
		if reason, ok := strings.CutPrefix(way.Name, refusal); ok {
			reasons[row(way)] = append(reasons[row(way)], "`"+reason+"`")
		}
	}
	var b strings.Builder
	for _, way := range podways.Ways() {
		says := row(way)
		if strings.HasPrefix(way.Name, refusal) {
			if reasons[says] != nil {
				fmt.Fprintf(&b, "| %s%s | %s |\n", refusal, strings.Join(reasons[says], ", "), says)
				delete(reasons, says)
			}
			continue
		}
		fmt.Fprintf(&b, "| %s | %s |\n", way.Name, says)
	}
	return b.String()
}

func ofFramework(w podways.Way) string {
	f := w.Framework
	retried := map[string]string{"Transient": "always", "Permanent": "never"}[f.Type]
	if retried == "" {
		retried = "up to `maxRetryCount`"
	}
	if f.Code == 0 {
		retried = "no"
	}
	return fmt.Sprintf("%d | %d | %s | %s", f.Code, f.Unlisted, retried, f.Disruption)
}

func ofKubeflow(w podways.Way) string {
	counts := ""
	if w.Kubeflow.Counts {
		counts = "yes"
	}
	return fmt.Sprintf("%s | %s | %s | %s", w.Kubeflow.Never, w.Kubeflow.OnFailure, w.Kubeflow.ExitCode, counts)
}
