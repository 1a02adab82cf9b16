// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// section is the part of a page about one package.
type section struct {
	types *types
	out   *strings.Builder
	// suffix tells headings of several packages of a page apart.
	suffix string
}

// write writes the kinds and the types that they are made of, each once: a type after one that
// names it.
func (s *section) write(roots []string) {
	var queue []string
	for _, name := range s.types.order {
		if s.types.byName[name].kind || slices.Contains(roots, name) {
			queue = append(queue, name)
		}
	}
	queued := map[string]bool{}
	for _, name := range queue {
		queued[name] = true
	}
	for len(queue) > 0 {
		d := s.types.byName[queue[0]]
		queue = queue[1:]
		s.writeType(d)
		refers := slices.Concat(d.embeds, d.refers)
		for _, f := range d.fields {
			refers = append(refers, f.refers...)
		}
		for _, name := range refers {
			if s.types.byName[name] != nil && !queued[name] {
				queued[name] = true
				queue = append(queue, name)
			}
		}
	}
}

func (s *section) writeType(d *declared) {
	fmt.Fprintf(s.out, "\n### %s%s\n\n%s\n", d.name, s.suffix, d.doc.text)
	if bounds := d.doc.bounds(); bounds != "" {
		fmt.Fprintf(s.out, "\n%s\n", bounds)
	}
	if d.is != "" {
		fmt.Fprintf(s.out, "\nIt is written as: %s.\n", s.linked(d.is))
	}
	for _, name := range d.embeds {
		fmt.Fprintf(s.out, "\nIt has the fields of %s, too.\n", s.linked(name))
	}
	if len(d.fields) > 0 {
		fmt.Fprint(s.out, "\n| field | type | meaning |\n|---|---|---|\n")
		for _, f := range d.fields {
			meaning := f.doc.text
			if bounds := f.doc.bounds(); bounds != "" {
				meaning += "\n\n" + bounds
			}
			fmt.Fprintf(s.out, "| `%s` | %s | %s |\n", f.name, s.linked(f.is), cell(meaning))
		}
	}
	if len(d.choices) > 0 {
		fmt.Fprint(s.out, "\n| value | meaning |\n|---|---|\n")
		for _, c := range d.choices {
			fmt.Fprintf(s.out, "| `%s` | %s |\n", c.value, cell(c.meaning))
		}
	}
}

var word = regexp.MustCompile(`[\w.]+`)

// linked is a type with links to the types that the page describes.
func (s *section) linked(is string) string {
	return word.ReplaceAllStringFunc(is, func(name string) string {
		switch {
		case s.types.byName[name] != nil:
			anchor := strings.ToLower(name + s.suffix)
			anchor = regexp.MustCompile(`[^a-z0-9 _-]`).ReplaceAllString(anchor, "")
			return "[" + name + "](#" + strings.ReplaceAll(anchor, " ", "-") + ")"
		case strings.HasPrefix(name, "schedulingv1alpha1."):
			_, name, _ := strings.Cut(name, ".")
			return "[" + name + "](podgroup.md#" + strings.ToLower(name) + ")"
		case strings.HasPrefix(name, "busv1alpha1."), strings.HasPrefix(name, "kubeflowv1."):
			_, name, _ := strings.Cut(name, ".") // on the same page
			return name
		case strings.Contains(name, "."):
			return "`" + name[strings.Index(name, ".")+1:] + "` of Kubernetes"
		default:
			return name
		}
	})
}

// ruled finds what a rule says when it refuses something.
var ruled = regexp.MustCompile("message=(?:\"((?:[^\"\\\\]|\\\\.)*)\"|`([^`]*)`)")

// onField finds the field that a rule of a whole type is about.
var onField = regexp.MustCompile(`fieldPath="\.([\w.]+)"`)

// bounds says what the API server refuses.
func (d doc) bounds() string {
	var parts []string
	for _, b := range []struct{ mark, text string }{
		{"kubebuilder:validation:Enum", "One of %s."},
		{"kubebuilder:validation:Minimum", "At least %s."},
		{"kubebuilder:validation:Maximum", "At most %s."},
		{"kubebuilder:validation:MinLength", "At least %s characters."},
		{"kubebuilder:validation:MaxLength", "At most %s characters."},
		{"kubebuilder:validation:MinItems", "At least %s elements."},
		{"kubebuilder:validation:MaxItems", "At most %s elements."},
		{"kubebuilder:validation:MinProperties", "At least %s entries."},
		{"kubebuilder:validation:MaxProperties", "At most %s entries."},
		{"kubebuilder:validation:Pattern", "It matches `%s`."},
	} {
		value := d.mark(b.mark)
		if value == "" || value == "2147483647" {
			continue
		}
		if strings.HasSuffix(b.mark, "Enum") {
			value = "`" + strings.ReplaceAll(value, ";", "`, `") + "`"
		}
		parts = append(parts, fmt.Sprintf(b.text, value))
	}
	for _, mark := range d.marks {
		if message := ruled.FindStringSubmatch(mark); message != nil && strings.HasPrefix(mark, "kubebuilder:validation:XValidation") {
			text := strings.ReplaceAll(message[1]+message[2], `\"`, `"`)
			if path := onField.FindStringSubmatch(mark); path != nil {
				text = "`" + path[1] + "`: " + text
			}
			parts = append(parts, "Rule: "+text+".")
		}
	}
	return strings.Join(parts, " ")
}

// cell makes one line of a text, as tables need.
func cell(text string) string {
	text = strings.NewReplacer("|", `\|`, "<", "&lt;").Replace(text)
	paragraphs := strings.Split(text, "\n\n")
	for i, p := range paragraphs {
		paragraphs[i] = strings.Join(strings.Fields(p), " ")
	}
	return strings.Join(slices.DeleteFunc(paragraphs, func(p string) bool { return p == "" }), "<br>")
}
