// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
)

// exitsPattern finds what the comment of a state says about its exits: "Exits: A; B
// when so.", "Exit: A." or "Final."
var exitsPattern = regexp.MustCompile(`(?:Exits?: ([^.]*)|Final)\.`)

// documentedExits are the exits of the states of a type, as the comments beside the
// constants tell them.
func documentedExits(t *testing.T, typeName string) map[string][]string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "../../apis/framework/v1/state.go", nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	comments := map[string]string{}
	for _, declaration := range file.Decls {
		constants, ok := declaration.(*ast.GenDecl)
		if !ok || constants.Tok != token.CONST {
			continue
		}
		for _, spec := range constants.Specs {
			value := spec.(*ast.ValueSpec)
			if name, ok := value.Type.(*ast.Ident); !ok || name.Name != typeName {
				continue
			}
			state, err := strconv.Unquote(value.Values[0].(*ast.BasicLit).Value)
			if err != nil {
				t.Fatal(err)
			}
			comments[state] = strings.Join(strings.Fields(value.Doc.Text()), " ")
		}
	}
	exits := map[string][]string{}
	for state, comment := range comments {
		found := exitsPattern.FindStringSubmatch(comment)
		if found == nil {
			t.Fatalf("the comment of %s %s tells no exits: %s", typeName, state, comment)
		}
		exits[state] = []string{}
		for exit := range strings.SplitSeq(found[1], ";") {
			name, _, _ := strings.Cut(strings.TrimSpace(exit), " ")
			if _, known := comments[name]; name != "" && !known {
				name = "Attempt" + name // As in "CreationPending".
			}
			if name != "" {
				exits[state] = append(exits[state], name)
			}
		}
	}
	return exits
}

// TestExitsOfStatesAreThoseThatTheirCommentsTell holds the comments beside the
// constants to the tables of transition.go.
func TestExitsOfStatesAreThoseThatTheirCommentsTell(t *testing.T) {
	tests := map[string]func(state string) []string{
		"FrameworkState": func(state string) []string { return words(frameworkExits(frameworkv1.FrameworkState(state))) },
		"TaskState":      func(state string) []string { return words(taskExits(frameworkv1.TaskState(state))) },
	}
	for typeName, exits := range tests {
		t.Run(typeName, func(t *testing.T) {
			documented := documentedExits(t, typeName)
			if len(documented) != 9 {
				t.Errorf("%d states are documented, want 9", len(documented))
			}
			for state, want := range documented {
				got := exits(state)
				slices.Sort(want)
				slices.Sort(got)
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("exits of %s (-comment +table):\n%s", state, diff)
				}
			}
		})
	}
}

func words[S ~string](states []S) []string {
	texts := make([]string, 0, len(states))
	for _, state := range states {
		texts = append(texts, string(state))
	}
	return texts
}
