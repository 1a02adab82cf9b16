// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package page renders the figures of a replay as one self-contained HTML page. The package is pure.
package page

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"math"
	"strings"

	"github.com/lockstep-k8s/lockstep/internal/replay/figures"
)

//go:embed page.html
var source string

var page = template.Must(template.New("page").Funcs(template.FuncMap{
	"percent": func(part float64) string { return fmt.Sprintf("%.1f %%", 100*part) },
	"span":    figures.Span,
	"color":   func(i int) string { return colors[i%len(colors)] },
	"line":    line,
	"bar":     func(wait figures.Wait, most float64) float64 { return barWidth * share(float64(wait), most) },
}).Parse(source))

// colors are the colours of the policies, in the order of the policies. Color-blind readers can tell them apart, too
// (Okabe and Ito, https://jfly.uni-koeln.de/color/).
var colors = []string{"#0072b2", "#e69f00", "#999999", "#009e73", "#cc79a7", "#56b4e9", "#d55e00"}

// Sizes of the drawings, in pixels.
const (
	lineWidth, lineHeight = 720.0, 160.0
	barWidth              = 420.0
)

// size is the waits of one size of jobs under all policies.
type size struct {
	Name string
	Jobs int
	// Most is the longest p99 of them.
	Most  float64
	Waits []wait
}

type wait struct {
	Policy string
	Number int
	figures.Class
}

// Write writes the page. Title says what was played.
func Write(w io.Writer, title string, all []figures.Figures) error {
	err := page.Execute(w, map[string]any{"Title": title, "All": all, "Sizes": sizes(all)})
	if err != nil {
		return fmt.Errorf("writing the page: %w", err)
	}
	return nil
}

// sizes groups the waits by size.
func sizes(all []figures.Figures) []*size {
	var sizes []*size
	byName := map[string]*size{}
	for number, f := range all {
		for _, class := range f.Classes {
			s := byName[class.Name]
			if s == nil {
				s = &size{Name: class.Name, Jobs: class.Jobs}
				byName[class.Name] = s
				sizes = append(sizes, s)
			}
			if p99 := float64(class.P99); !math.IsInf(p99, 1) {
				s.Most = max(s.Most, p99)
			}
			s.Waits = append(s.Waits, wait{Policy: f.Policy, Number: number, Class: class})
		}
	}
	return sizes
}

// share returns the length of a bar for a value, from 0 to 1, where 1 is the length for `most`. The result is never so
// small that the bar would be invisible.
func share(value, most float64) float64 {
	if most == 0 {
		return 0.004
	}
	return min(1, max(0.004, value/most))
}

// line returns the points of a line over time, in SVG.
func line(parts []float64) string {
	var b strings.Builder
	for i, part := range parts {
		fmt.Fprintf(&b, "%.1f,%.1f ", lineWidth*float64(i)/float64(max(1, len(parts)-1)), lineHeight*(1-part))
	}
	return b.String()
}
