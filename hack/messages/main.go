// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Command messages lists the texts that users read: messages of events and conditions with their reasons, errors, and
// help, each with its file. With -page it writes docs/reference/messages.md, which has the texts with a reason.
package main

import (
	"cmp"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// folders are where texts for users are.
var folders = []string{"apis", "barrier", "cmd", "controller", "internal", "podgroup", "scheduler-plugin"}

// text is one that a user reads.
type text struct {
	// kind is error, help or message.
	kind string
	// reason is that of the event or condition, empty if none stands beside the text.
	reason, text, file string
	line               int
}

func main() {
	page := flag.Bool("page", false, "write the page of texts with a reason")
	flag.Parse()
	texts, err := find(folders)
	if err != nil {
		fmt.Fprintln(os.Stderr, "messages:", err)
		os.Exit(1)
	}
	if *page {
		fmt.Print(pageOf(texts))
		return
	}
	for _, t := range texts {
		fmt.Printf("%s\t%s\t%s\t%s:%d\n", t.kind, cmp.Or(t.reason, "-"), t.text, t.file, t.line)
	}
}

const head = `# Reference: messages

` + "`make generate`" + ` writes this page from the code: the texts of events and conditions, by reason. ` + "`%s`" + ` and the like stand for names
and numbers. What each reason means is in [events](events.md), what to do in [troubleshooting](../troubleshooting.md).
` + "`go run ./hack/messages`" + ` lists the errors and the help of the programs, too.
`

// says matches a text that has words besides its placeholders.
var says = regexp.MustCompile(`[[:alpha:]]{3,} [[:alpha:]%]|[[:alpha:]%] [[:alpha:]]{3,}`)

// pageOf returns the page of all texts that have a reason.
func pageOf(texts []text) string {
	var out strings.Builder
	out.WriteString(head)
	out.WriteString("\n| reason | message | file |\n|---|---|---|\n")
	texts = slices.DeleteFunc(slices.Clone(texts), func(t text) bool { return t.reason == "" || !says.MatchString(t.text) })
	slices.SortFunc(texts, func(a, b text) int {
		return cmp.Or(cmp.Compare(a.reason, b.reason), cmp.Compare(a.file, b.file), cmp.Compare(a.text, b.text))
	})
	written := map[string]bool{}
	for _, t := range texts {
		row := fmt.Sprintf("| `%s` | %s | `%s` |\n", t.reason, strings.NewReplacer("|", `\|`, "<", "&lt;", "\n", " ").Replace(t.text), t.file)
		if !written[row] {
			out.WriteString(row)
		}
		written[row] = true
	}
	return out.String()
}

// find returns the texts of all source files of folders, by file and line.
func find(folders []string) ([]text, error) {
	files := map[string]*ast.File{}
	positions := token.NewFileSet()
	for _, folder := range folders {
		if err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			if entry.IsDir() && (path == filepath.Join("internal", "testing") || path == filepath.Join("internal", "localenv")) {
				return filepath.SkipDir
			}
			if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || strings.HasPrefix(entry.Name(), "zz_") {
				return nil
			}
			files[path], err = parser.ParseFile(positions, path, nil, parser.SkipObjectResolution)
			return err
		}); err != nil {
			return nil, err
		}
	}
	reasons := map[string]string{}
	for _, file := range files {
		ast.Inspect(file, func(node ast.Node) bool { return addReasons(reasons, node) })
	}
	var texts []text
	for path, file := range files {
		v := &visitor{reasons: reasons}
		ast.Walk(v, file)
		for _, found := range v.found {
			found.file, found.line = path, positions.Position(token.Pos(found.line)).Line
			texts = append(texts, found)
		}
	}
	slices.SortFunc(texts, func(a, b text) int {
		return cmp.Or(cmp.Compare(a.file, b.file), cmp.Compare(a.line, b.line), cmp.Compare(a.text, b.text))
	})
	return texts, nil
}

// addReasons notes the constants of a declaration whose names say that they are reasons, with their values.
func addReasons(reasons map[string]string, node ast.Node) bool {
	spec, is := node.(*ast.ValueSpec)
	if !is {
		return true
	}
	for i, name := range spec.Names {
		if i >= len(spec.Values) || !strings.HasPrefix(strings.ToLower(name.Name), "reason") {
			continue
		}
		if literal, is := spec.Values[i].(*ast.BasicLit); is && literal.Kind == token.STRING {
			if value, err := strconv.Unquote(literal.Value); err == nil {
				reasons[name.Name] = value
			}
		}
	}
	return true
}

// visitor finds the texts of a file. It keeps the nodes from the file to the present one.
type visitor struct {
	reasons map[string]string
	path    []ast.Node
	found   []text
}

// words says whether a string is a sentence, or a part of one.
var words = regexp.MustCompile(`[[:alpha:]%][ ,:;][[:alpha:]%(]|[[:alpha:]][,:;]? [[:alpha:]%(]`)

func (v *visitor) Visit(node ast.Node) ast.Visitor {
	if node == nil {
		v.path = v.path[:len(v.path)-1]
		return v
	}
	literal, is := node.(*ast.BasicLit)
	if is && literal.Kind == token.STRING {
		if value, err := strconv.Unquote(literal.Value); err == nil && strings.Contains(value, " ") && words.MatchString(value) {
			if kind := v.kind(); kind != "" {
				// The position is replaced by its line.
				v.found = append(v.found, text{kind: kind, reason: v.reason(), text: strings.Join(strings.Fields(value), " "), line: int(literal.Pos())})
			}
		}
	}
	v.path = append(v.path, node)
	return v
}

// notForUsers are calls whose texts users do not read: logs, and what programmers have done wrong.
var notForUsers = regexp.MustCompile(`^(Info|InfoS|Error|ErrorS|Warning|Fatal|FatalS|panic|MustCompile|HandleError.*|Debug|Replace|Contains|HasPrefix|HasSuffix|Cut|TrimPrefix|TrimSuffix)$`)

// kind returns what the present string is: an error, help, a message, or empty if no user reads it.
func (v *visitor) kind() string {
	kind := "message"
	for _, node := range v.path {
		switch node := node.(type) {
		case *ast.ImportSpec, *ast.Field:
			return ""
		case *ast.CallExpr:
			switch name := called(node); {
			case notForUsers.MatchString(name):
				return ""
			case name == "Errorf" || name == "New" || name == "Invalid" || name == "Forbidden" || name == "Required":
				kind = "error"
			case strings.HasSuffix(name, "Var") || strings.HasSuffix(name, "VarP") || slices.Contains([]string{"String", "Bool", "Int", "Duration"}, name):
				kind = "help"
			}
		case *ast.KeyValueExpr:
			if key, is := node.Key.(*ast.Ident); is && slices.Contains([]string{"Short", "Long", "Use", "Example"}, key.Name) {
				kind = "help"
			}
		}
	}
	return kind
}

// called is the name of the function of a call, without its package.
func called(call *ast.CallExpr) string {
	switch function := call.Fun.(type) {
	case *ast.Ident:
		return function.Name
	case *ast.SelectorExpr:
		return function.Sel.Name
	default:
		return ""
	}
}

// reason is that which stands beside the present string: in the innermost call, composite literal, assignment or
// return that has one.
func (v *visitor) reason() string {
	for _, node := range slices.Backward(v.path) {
		switch node := node.(type) {
		case *ast.CallExpr:
			if found := v.first(node.Args); found != "" {
				return found
			}
		case *ast.CompositeLit:
			if found := v.first(node.Elts); found != "" {
				return found
			}
		case *ast.ReturnStmt:
			if found := v.first(node.Results); found != "" {
				return found
			}
		case *ast.AssignStmt:
			if found := v.first(node.Rhs); found != "" {
				return found
			}
		case *ast.BlockStmt:
			return ""
		}
	}
	return ""
}

// first returns the first reason among expressions.
func (v *visitor) first(expressions []ast.Expr) string {
	for _, expression := range expressions {
		if pair, is := expression.(*ast.KeyValueExpr); is {
			expression = pair.Value
		}
		name := ""
		switch expression := expression.(type) {
		case *ast.Ident:
			name = expression.Name
		case *ast.SelectorExpr:
			name = expression.Sel.Name
		case *ast.CallExpr: // string(ReasonX)
			if len(expression.Args) == 1 {
				return v.first(expression.Args)
			}
		}
		if value := v.reasons[name]; value != "" {
			return value
		}
	}
	return ""
}
