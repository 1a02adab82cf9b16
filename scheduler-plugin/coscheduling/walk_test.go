// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The bounds of types: so many methods, those of embedded types of this module among them, in so many files.
const (
	mostMethods = 40
	mostFiles   = 3
)

// source is what the files of a folder declare.
type source struct {
	// functions are the names of functions, and of methods with their type, by file.
	functions map[string][]string
	// types are by package and name.
	types map[string]*goType
}

type goType struct {
	methods int
	files   []string
	embeds  []string
}

// sourceIn reads the files in a folder and those below it, without tests.
func sourceIn(t *testing.T, root string) *source {
	t.Helper()
	s := &source{functions: make(map[string][]string), types: make(map[string]*goType)}
	if err := filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, path)
		for _, decl := range file.Decls {
			s.add(filepath.ToSlash(name), file.Name.Name, decl)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *source) add(file, pkg string, decl ast.Decl) {
	switch d := decl.(type) {
	case *ast.FuncDecl:
		if d.Recv == nil {
			s.functions[file] = append(s.functions[file], d.Name.Name)
			return
		}
		of := nameOf(d.Recv.List[0].Type)
		s.functions[file] = append(s.functions[file], of+"."+d.Name.Name)
		t := s.typeOf(pkg + "." + of)
		if t.methods++; !slices.Contains(t.files, file) {
			t.files = append(t.files, file)
		}
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			named, ok := spec.(*ast.TypeSpec)
			if !ok {
				continue
			}
			structure, ok := named.Type.(*ast.StructType)
			if !ok {
				continue
			}
			for _, field := range structure.Fields.List {
				if len(field.Names) > 0 {
					continue
				}
				of := nameOf(field.Type)
				if !strings.Contains(of, ".") {
					of = pkg + "." + of
				}
				t := s.typeOf(pkg + "." + named.Name.Name)
				t.embeds = append(t.embeds, of)
			}
		}
	}
}

func (s *source) typeOf(name string) *goType {
	if s.types[name] == nil {
		s.types[name] = &goType{}
	}
	return s.types[name]
}

// methodsOf counts the methods of a type and of those that it embeds, as far as they are of the folder.
func (s *source) methodsOf(name string) int {
	t := s.types[name]
	if t == nil {
		return 0
	}
	n := t.methods
	for _, of := range t.embeds {
		n += s.methodsOf(of)
	}
	return n
}

// nameOf is the name of a type in an expression, without pointers and parameters.
func nameOf(of ast.Expr) string {
	switch e := of.(type) {
	case *ast.StarExpr:
		return nameOf(e.X)
	case *ast.IndexExpr:
		return nameOf(e.X)
	case *ast.SelectorExpr:
		return nameOf(e.X) + "." + e.Sel.Name
	case *ast.Ident:
		return e.Name
	}
	return ""
}

// TestNoTypeHasTooManyMethods, nor are they in too many files: a newcomer finds what a type does.
func TestNoTypeHasTooManyMethods(t *testing.T) {
	s := sourceIn(t, "..")
	for name, of := range s.types {
		if n := s.methodsOf(name); n > mostMethods {
			t.Errorf("%s has %d methods, and may have %d", name, n, mostMethods)
		}
		if len(of.files) > mostFiles {
			t.Errorf("the methods of %s are in %v, and may be in %d files", name, of.files, mostFiles)
		}
	}
}

// step is a function that doc.go names with its file.
var step = regexp.MustCompile(`([a-z/]+\.go): ([A-Za-z.]+)`)

// TestTheWalk: the page of steps in doc.go names functions that are there. It prints the files from event to binding.
func TestTheWalk(t *testing.T) {
	page, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	s := sourceIn(t, ".")
	var files []string
	text := strings.Join(strings.Fields(strings.ReplaceAll(string(page), "//", "")), " ")
	for _, named := range step.FindAllStringSubmatch(text, -1) {
		file, function := named[1], strings.TrimSuffix(named[2], ".")
		if !slices.Contains(s.functions[file], function) {
			t.Errorf("doc.go names %s in %s, where there is no such function", function, file)
		}
		if !slices.Contains(files, file) {
			files = append(files, file)
		}
	}
	if len(files) < 20 {
		t.Errorf("doc.go names the files %v, and a gang passes more", files)
	}
	packages := make(map[string]bool)
	for i, file := range files {
		packages[filepath.Dir(file)] = true
		t.Logf("%2d %s", i+1, file)
	}
	t.Logf("%d files in %d packages", len(files), len(packages))
}
