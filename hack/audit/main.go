// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Command audit shows that the tests notice faults that users had, or would have. It puts each
// fault of faults.go into the code, in a copy of one source file, and runs the test that has to
// fail. Without the fault the test passes, as "make test" shows. "make audit" runs the command at
// the root of the repository.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

func main() {
	run := flag.String("run", "", "audit only the faults whose sentence, function or test matches this pattern")
	parallel := flag.Int("parallel", 2, "how many faults to audit at a time")
	flag.Parse()
	pattern, err := regexp.Compile(*run)
	if err != nil {
		fmt.Fprintln(os.Stderr, "audit: -run:", err)
		os.Exit(2)
	}
	var audits errgroup.Group
	audits.SetLimit(*parallel)
	var printing sync.Mutex
	audited, failed := 0, 0
	for _, f := range faults {
		if !pattern.MatchString(strings.Join([]string{f.users, f.in, f.function, f.test}, " ")) {
			continue
		}
		audited++
		audits.Go(func() error {
			begun := time.Now()
			err := f.audit()
			printing.Lock()
			defer printing.Unlock()
			if err != nil {
				failed++
				fmt.Printf("FAIL  %s\n      in %s of %s: %v\n", f.users, f.function, f.in, err)
				return nil
			}
			fmt.Printf("%4.0f s  %s: noticed by %s\n", time.Since(begun).Seconds(), f.users, f.test)
			return nil
		})
	}
	_ = audits.Wait() // Failures are counted.
	fmt.Printf("%d of %d faults are noticed\n", audited-failed, audited)
	if failed > 0 || audited == 0 {
		os.Exit(1)
	}
}

// audit returns an error if the test does not notice the fault, or the fault can't be put into
// the code.
func (f fault) audit() error {
	dir, err := os.MkdirTemp("", "audit-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	path, changed, err := f.apply()
	if err != nil {
		return err
	}
	faulty, overlay := filepath.Join(dir, filepath.Base(path)), filepath.Join(dir, "overlay.json")
	replace, err := json.Marshal(map[string]map[string]string{"Replace": {path: faulty}})
	if err != nil {
		return err
	}
	for name, data := range map[string][]byte{faulty: changed, overlay: replace} {
		if err := os.WriteFile(name, data, 0o644); err != nil {
			return err
		}
	}
	in := f.in
	if f.testIn != "" {
		in = f.testIn
	}
	binary := filepath.Join(dir, "faulty.test")
	build := exec.Command("go", "test", "-c", "-vet=off", "-ldflags=-s -w", "-overlay", overlay, "-o", binary, "./"+in)
	if output, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("the code with the fault does not compile; adapt the fault in hack/audit/faults.go: %w\n%s", err, output)
	}
	test := exec.Command(binary, "-test.failfast", "-test.timeout=5m", "-test.run=^"+f.test+"$")
	test.Dir = in
	output, err := test.CombinedOutput()
	switch {
	case bytes.Contains(output, []byte("no tests to run")):
		return fmt.Errorf("%s has no %s; name the test that notices the fault in hack/audit/faults.go", in, f.test)
	case err == nil:
		return fmt.Errorf("%s of %s passes all the same; extend the test, or name another in hack/audit/faults.go", f.test, in)
	}
	return nil
}

// apply returns the file of the function, and its source with the fault.
func (f fault) apply() (path string, source []byte, err error) {
	names, err := filepath.Glob(filepath.Join(f.in, "*.go"))
	if err != nil {
		return "", nil, err
	}
	files := token.NewFileSet()
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(files, name, nil, parser.SkipObjectResolution)
		if err != nil {
			return "", nil, err
		}
		for _, declaration := range file.Decls {
			function, ok := declaration.(*ast.FuncDecl)
			if !ok || nameOf(function) != f.function {
				continue
			}
			if path, err = filepath.Abs(name); err != nil {
				return "", nil, err
			}
			if source, err = os.ReadFile(name); err != nil {
				return "", nil, err
			}
			source, err = f.insert(source, function.Body, func(at token.Pos) int { return files.Position(at).Offset })
			return path, source, err
		}
	}
	return "", nil, errors.New("there is no such function; name the one that does its work now in hack/audit/faults.go")
}

// insert returns the source with the fault in the body of the function. It only adds to the
// source, so that all variables and imports stay in use.
func (f fault) insert(source []byte, body *ast.BlockStmt, offset func(token.Pos) int) ([]byte, error) {
	if f.begins != "" {
		return slices.Insert(source, offset(body.Lbrace)+1, []byte(" "+f.begins+"; ")...), nil
	}
	var skipped []ast.Node
	ast.Inspect(body, func(node ast.Node) bool {
		switch statement := node.(type) {
		case *ast.ExprStmt:
			if call, ok := statement.X.(*ast.CallExpr); ok && lastName(call.Fun) == f.skips {
				skipped = append(skipped, node)
			}
		case *ast.AssignStmt:
			if statement.Tok != token.DEFINE && slices.ContainsFunc(statement.Lhs, func(to ast.Expr) bool { return lastName(to) == f.skips }) {
				skipped = append(skipped, node)
			}
		}
		return true
	})
	if len(skipped) == 0 {
		return nil, fmt.Errorf("it neither calls nor sets %s; adapt the fault in hack/audit/faults.go", f.skips)
	}
	for _, statement := range slices.Backward(skipped) {
		source = slices.Insert(source, offset(statement.End()), []byte(" }")...)
		source = slices.Insert(source, offset(statement.Pos()), []byte("if false { ")...)
	}
	return source, nil
}

// nameOf returns the name of a function as faults give it: that of a method begins with its type.
func nameOf(function *ast.FuncDecl) string {
	if function.Recv == nil {
		return function.Name.Name
	}
	return lastName(function.Recv.List[0].Type) + "." + function.Name.Name
}

// lastName returns the name at the end of an expression: c of a.b.c, *c, c[T] and c[T, U].
func lastName(of ast.Expr) string {
	switch e := of.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return e.Sel.Name
	case *ast.StarExpr:
		return lastName(e.X)
	case *ast.IndexExpr:
		return lastName(e.X)
	case *ast.IndexListExpr:
		return lastName(e.X)
	}
	return ""
}
