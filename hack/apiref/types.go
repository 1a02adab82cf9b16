// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strconv"
	"strings"
)

// types are those of a package.
type types struct {
	// group is the API group and version, as an apiVersion has it.
	group  string
	byName map[string]*declared
	order  []string
}

// declared is a type.
type declared struct {
	name    string
	doc     doc
	fields  []field // of a struct
	embeds  []string
	kind    bool   // users write objects of it
	is      string // what a type that is no struct is
	refers  []string
	choices []choice
}

// field is one of a struct, by the name that users write.
type field struct {
	name, is string
	refers   []string
	doc      doc
}

// choice is a value that a type may have.
type choice struct{ value, meaning string }

// doc is a comment: sentences for users, and markers.
type doc struct {
	text  string
	marks []string
}

// read reads the types of the package in a folder.
func read(folder string) (*types, error) {
	t := &types{byName: map[string]*declared{}}
	names, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		return nil, err
	}
	set := token.NewFileSet()
	var constants []*ast.GenDecl
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") || strings.HasPrefix(filepath.Base(name), "zz_") {
			continue
		}
		source, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		file, err := parser.ParseFile(set, name, source, parser.ParseComments)
		if err != nil {
			return nil, err
		}
		if group := groupName.FindSubmatch(source); group != nil && t.group == "" {
			t.group = string(group[1]) + "/" + filepath.Base(folder)
		}
		for _, declaration := range file.Decls {
			general, ok := declaration.(*ast.GenDecl)
			switch {
			case ok && general.Tok == token.TYPE:
				for _, spec := range general.Specs {
					t.add(general, spec.(*ast.TypeSpec))
				}
			case ok && general.Tok == token.CONST:
				constants = append(constants, general)
			}
		}
	}
	if t.group == "" {
		return nil, fmt.Errorf("no +groupName and no GroupName in %s", folder)
	}
	for _, c := range constants {
		t.addChoices(c)
	}
	return t, nil
}

var groupName = regexp.MustCompile(`(?:\+groupName=|GroupName\s*=\s*")([a-z0-9.-]+)`)

func (t *types) add(general *ast.GenDecl, spec *ast.TypeSpec) {
	comment := spec.Doc
	if comment == nil {
		comment = general.Doc
	}
	d := &declared{name: spec.Name.Name, doc: docOf(comment)}
	d.kind = d.doc.mark("kubebuilder:object:root") == "true" && !strings.HasSuffix(d.name, "List")
	structure, ok := spec.Type.(*ast.StructType)
	if !ok {
		d.is, d.refers = typeOf(spec.Type)
	} else {
		for _, f := range structure.Fields.List {
			d.addField(f)
		}
	}
	t.byName[d.name] = d
	t.order = append(t.order, d.name)
}

func (d *declared) addField(f *ast.Field) {
	var tag string
	if f.Tag != nil {
		unquoted, _ := strconv.Unquote(f.Tag.Value)
		tag = reflect.StructTag(unquoted).Get("json")
	}
	name, options, _ := strings.Cut(tag, ",")
	is, refers := typeOf(f.Type)
	switch {
	case name == "" && strings.Contains(options, "inline"):
		if is != "metav1.TypeMeta" {
			d.embeds = append(d.embeds, refers...)
		}
	case name != "" && name != "-" && name != "metadata":
		d.fields = append(d.fields, field{name: name, is: is, refers: refers, doc: docOf(f.Doc)})
	}
}

// addChoices adds constants to their type.
func (t *types) addChoices(general *ast.GenDecl) {
	for _, spec := range general.Specs {
		value := spec.(*ast.ValueSpec)
		ident, ok := value.Type.(*ast.Ident)
		if !ok || t.byName[ident.Name] == nil || len(value.Values) != 1 {
			continue
		}
		literal, ok := value.Values[0].(*ast.BasicLit)
		if !ok || literal.Kind != token.STRING {
			continue
		}
		text, _ := strconv.Unquote(literal.Value)
		meaning := docOf(value.Doc).text
		if meaning == "" {
			meaning = docOf(value.Comment).text
		}
		// "ExecutionStop completes …" is about the value, whose name in Go users do not see.
		meaning = strings.Replace(meaning, value.Names[0].Name, "`"+text+"`", 1)
		d := t.byName[ident.Name]
		d.choices = append(d.choices, choice{value: text, meaning: meaning})
	}
}

// typeOf is a type as users know it, and the types of the package that it refers to.
func typeOf(e ast.Expr) (is string, refers []string) {
	switch e := e.(type) {
	case *ast.Ident:
		if ast.IsExported(e.Name) {
			return e.Name, []string{e.Name}
		}
		return map[string]string{"bool": "boolean", "int": "integer", "int32": "integer", "int64": "integer", "float32": "number", "float64": "number"}[e.Name] +
			map[bool]string{true: e.Name}[e.Name == "string"], nil
	case *ast.StarExpr:
		return typeOf(e.X)
	case *ast.ArrayType:
		is, refers := typeOf(e.Elt)
		return "list of " + is, refers
	case *ast.MapType:
		key, keys := typeOf(e.Key)
		value, values := typeOf(e.Value)
		return "map from " + key + " to " + value, append(keys, values...)
	case *ast.SelectorExpr:
		return fmt.Sprintf("%s.%s", e.X, e.Sel.Name), nil
	default:
		return "any", nil
	}
}

// docOf splits a comment. What follows a line of three hyphens is for developers.
func docOf(group *ast.CommentGroup) doc {
	var d doc
	if group == nil {
		return d
	}
	var lines []string
	hidden := false
	for _, comment := range group.List {
		line := strings.TrimPrefix(strings.TrimPrefix(comment.Text, "//"), " ")
		switch {
		case strings.HasPrefix(line, "+"):
			d.marks = append(d.marks, line[1:])
		case line == "---":
			hidden = true
		case !hidden:
			lines = append(lines, line)
		}
	}
	d.text = strings.TrimSpace(strings.Join(lines, "\n"))
	return d
}

// mark is the value of a marker, or "".
func (d doc) mark(name string) string {
	for _, mark := range d.marks {
		if key, value, ok := strings.Cut(mark, "="); ok && key == name {
			return strings.Trim(value, "\"`")
		}
	}
	return ""
}
