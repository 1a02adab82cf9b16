// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"cmp"
	"embed"
	"html/template"
	"io"
	"net/url"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/lockstep-k8s/lockstep/internal/terminal"
	"github.com/lockstep-k8s/lockstep/internal/text"
	"github.com/lockstep-k8s/lockstep/internal/view"
)

//go:embed templates
var sources embed.FS

// maxMessage is how many bytes of a text of others are shown.
const maxMessage = 600

var templates = template.Must(template.New("").Funcs(template.FuncMap{
	"age":   func(now, t time.Time) string { return terminal.Age(t, now) },
	"stamp": stamp,
	"short": func(s string) string { return clean(text.Shorten(s, maxMessage)) },
	"clean": clean,
	"tone":  tone,
	"one":   text.Form,
	"int":   func(n int32) int { return int(n) },
	"at":    func(now time.Time, value any) scoped { return scoped{now, value} },
	"path":  path,
	"span":  span,
	"order": func(list *jobList, by, label string) order {
		return order{Label: label, Link: list.Orders[by], Is: cmp.Or(list.Sort, "name") == by, Direction: map[bool]string{true: "descending", false: "ascending"}[by == "age" || by == "running"]}
	},
	"progress": func(row view.Row) progress {
		count, what := row.Progress()
		return progress{count, row.Total, what}
	},
	"says":   func(end view.End) string { return end.Says() },
	"counts": view.CountsInWords,
	"dot":    func(i int) int { return 13 * i },
	// colour is the number of the colour of a role.
	"colour": func(role int) int { return role % hues },
}).ParseFS(sources, "templates/*.html"))

// order is a column by which the list can be sorted.
type order struct {
	Label, Link string
	// Is says that the list is sorted so, in a direction.
	Is        bool
	Direction string
}

// progress is how many tasks of a job run or have succeeded.
type progress struct {
	Count, Total int32
	What         string
}

// scoped gives a template the time beside a value.
type scoped struct {
	Now   time.Time
	Value any
}

// shown is what the templates get.
type shown struct {
	*page
	Visitor *Visitor
	LogOut  string
	// Main is the main part.
	Main template.HTML
}

// part writes the main part of a page.
func part(w io.Writer, p *page, now time.Time) error {
	if err := templates.ExecuteTemplate(w, p.Template, scoped{now, p.Content}); err != nil {
		return err
	}
	return templates.ExecuteTemplate(w, "unread", p.Unread)
}

// whole writes a page.
func (s *Server) whole(w io.Writer, visitor *Visitor, p *page) error {
	var main strings.Builder
	if err := part(&main, p, s.options.Now()); err != nil {
		return err
	}
	// The text comes from a template with escaped values.
	return templates.ExecuteTemplate(w, "page", &shown{page: p, Visitor: visitor, LogOut: s.options.LogOut, Main: template.HTML(main.String())})
}

// clean makes invisible characters in a text of a tenant visible, such as characters that change the direction of
// writing. html/template escapes the rest.
func clean(s string) string { return terminal.Clean(s) }

// stamp returns a time as a machine writes it, in UTC.
func stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}

// tone returns the class of a state, which gives the colour.
func tone(state string) string { return string(view.ToneOf(state)) }

// path returns a path of escaped parts.
func path(parts ...string) string {
	var p strings.Builder
	for _, part := range parts {
		p.WriteByte('/')
		p.WriteString(url.PathEscape(part))
	}
	return p.String()
}

// span returns how long something took, for people; – before the end.
func span(from, to time.Time) string {
	if to.IsZero() {
		return "–"
	}
	return duration.HumanDuration(max(0, to.Sub(from)))
}
