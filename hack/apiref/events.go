// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strconv"
	"strings"
)

// events are where the constants with reasons of events are.
var events = []struct {
	title, of string
	files     []string
}{
	{"Of Frameworks", "Events of a Framework", []string{"controller/lifecycle/plan.go"}},
	{"Of Volcano Jobs", "Events of a Volcano Job", []string{"controller/volcano/plan.go"}},
	{"Of every owner", "Events of a Framework, a Volcano Job or a job of Kubeflow", []string{"controller/engine/status.go", "podgroup/runtime.go"}},
	{"Of gangs", "Events of a PodGroup, or of a Pod of a gang without one; the reasons are also those of the condition `Scheduled`", []string{
		"apis/scheduling/v1alpha1/types.go", "apis/scheduling/v1alpha1/reason.go", "scheduler-plugin/coscheduling/dialect/group.go", "scheduler-plugin/coscheduling/reservations.go",
		"scheduler-plugin/coscheduling/dialect/schedulerplugins.go", "scheduler-plugin/coscheduling/dialect/runtime.go", "podgroup/runtime.go", "scheduler-plugin/coscheduling/maintenance/maintenance.go", "scheduler-plugin/coscheduling/dialect/subgroups.go",
		"scheduler-plugin/coscheduling/news/warnings.go",
	}},
	{"Of Pods", "Events of a Pod; those of the condition `PodScheduled` come in events with the reason `FailedScheduling`", []string{"scheduler-plugin/coscheduling/news/marks.go"}},
}

const headOfEvents = `# Reference: events

` + "`make generate`" + ` writes this page from the constants of the code, ` + "`hack/apiref/events.go`" + ` says which. ` + "`kubectl describe`" + ` and
` + "`kubectl events`" + ` show them. Events of jobs of Kubeflow have the reasons that its operators use, the kind of the
object among them, such as ` + "`SuccessfulCreatePod`" + `: see [the guide](../kubeflow.md). Alerts are better built on
[metrics](../metrics.md): the API server forgets events after an hour.
`

// writeEvents is the page of events, from the source in a folder.
func writeEvents(source string) (string, error) {
	var out strings.Builder
	out.WriteString(headOfEvents)
	for _, part := range events {
		fmt.Fprintf(&out, "\n## %s\n\n%s.\n\n| reason | meaning |\n|---|---|\n", part.title, part.of)
		for _, file := range part.files {
			reasons, err := reasonsIn(filepath.Join(source, file))
			if err != nil {
				return "", err
			}
			for _, r := range reasons {
				fmt.Fprintf(&out, "| `%s` | %s |\n", r.value, cell(r.meaning))
			}
		}
	}
	return out.String(), nil
}

// reasonsIn returns the exported constants of a file whose names begin with Reason. A constant without a
// comment is an error, and so is a file without such constants.
func reasonsIn(name string) ([]choice, error) {
	file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
	if err != nil {
		return nil, err
	}
	var reasons []choice
	for _, declaration := range file.Decls {
		general, ok := declaration.(*ast.GenDecl)
		if !ok || general.Tok != token.CONST {
			continue
		}
		for _, spec := range general.Specs {
			value := spec.(*ast.ValueSpec)
			if !strings.HasPrefix(value.Names[0].Name, "Reason") || len(value.Values) != 1 {
				continue
			}
			literal, ok := value.Values[0].(*ast.BasicLit)
			if !ok {
				continue
			}
			comment := value.Doc
			if comment == nil && !general.Lparen.IsValid() {
				comment = general.Doc
			}
			// "ReasonX: …" and "ReasonX is …" begin with a name that users do not see.
			meaning := strings.TrimPrefix(docOf(comment).text, value.Names[0].Name)
			meaning = strings.TrimSpace(strings.TrimPrefix(meaning, ":"))
			if meaning == "" {
				return nil, fmt.Errorf("%s: %s has no comment that says what it means", name, value.Names[0].Name)
			}
			text, err := strconv.Unquote(literal.Value)
			if err != nil {
				return nil, err
			}
			reasons = append(reasons, choice{text, meaning})
		}
	}
	if len(reasons) == 0 {
		return nil, fmt.Errorf("%s has no reasons", name)
	}
	return reasons, nil
}
