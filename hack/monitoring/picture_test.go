// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"fmt"
	"html"
	"math"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/promql"
)

// Size of a unit of the dashboard's grid and of the parts of a panel, in pixels.
const (
	unitWidth, unitHeight = 50, 30
	titleHeight           = 24
	legendHeight          = 54
	inset                 = 6
	axisWidth             = 52
)

// colours are those of the lines of a panel, in turns.
var colours = []string{"#56a64b", "#e0b400", "#3274d9", "#e02f44", "#ff780a", "#8f3bb8", "#37872d", "#1f60c4"}

// mostInLegend is how many names a legend has room for.
const mostInLegend = 8

// picture draws the dashboard as SVG: its panels and rows, with what the queries say of a recording.
func picture(t *testing.T, r recorded) string {
	t.Helper()
	var b strings.Builder
	height := 0
	for _, panel := range panels(t) {
		height = max(height, (panel.GridPos.Y+panel.GridPos.H)*unitHeight)
	}
	fmt.Fprintf(&b, "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 %d %d' font-family='system-ui, sans-serif' font-size='11' fill='#333'>\n", 24*unitWidth, height)
	fmt.Fprintf(&b, "<rect width='%d' height='%d' fill='#f4f5f5'/>\n", 24*unitWidth, height)
	for _, panel := range panels(t) {
		x, y := panel.GridPos.X*unitWidth, panel.GridPos.Y*unitHeight
		if panel.Type == "row" {
			fmt.Fprintf(&b, "<text x='%d' y='%d' font-size='14' font-weight='600'>%s</text>\n", x+inset, y+20, html.EscapeString(panel.Title))
			continue
		}
		fmt.Fprintf(&b, "<g transform='translate(%d,%d)'>\n", x, y)
		draw(&b, panel, r.lines(t, panel), r.end.Unix())
		b.WriteString("</g>\n")
	}
	b.WriteString("</svg>\n")
	return b.String()
}

// line is one of a panel.
type line struct {
	name   string
	points []promql.FPoint
	// right says that its axis is that on the right.
	right bool
}

// lines are those of a panel, by the order of its queries and then of the labels.
func (r recorded) lines(t *testing.T, panel panel) []line {
	t.Helper()
	var all []line
	for _, target := range panel.Targets {
		for _, series := range r.query(t, target) {
			name := ofLegends.ReplaceAllStringFunc(target.LegendFormat, func(label string) string {
				return series.Metric.Get(strings.Trim(label, "{}"))
			})
			all = append(all, line{name, series.Floats, panel.right(target)})
		}
	}
	return all
}

// draw draws a panel at 0,0.
func draw(b *strings.Builder, panel panel, lines []line, seconds int64) {
	width, height := panel.GridPos.W*unitWidth, panel.GridPos.H*unitHeight
	fmt.Fprintf(b, "<rect x='2' y='2' width='%d' height='%d' fill='#fff' stroke='#dcdedf'/>\n", width-4, height-4)
	fmt.Fprintf(b, "<text x='%d' y='18' font-weight='600'>%s</text>\n", inset+4, html.EscapeString(panel.Title))
	left, right, top, bottom := float64(axisWidth), float64(width-inset-4), float64(titleHeight+8), float64(height-legendHeight-16)
	// The most that there is on the axis on the left, and on the right if there is one.
	most, two := map[bool]float64{}, false
	for _, line := range lines {
		two = two || line.right
		for _, point := range line.points {
			if !math.IsNaN(point.F) && !math.IsInf(point.F, 0) {
				most[line.right] = max(most[line.right], point.F)
			}
		}
	}
	if two {
		right -= axisWidth - inset
	}
	scale := func(right bool) float64 {
		if most[right] == 0 {
			return 1
		}
		return most[right]
	}
	for _, part := range []float64{0, 0.5, 1} {
		at := bottom - part*(bottom-top)
		fmt.Fprintf(b, "<path d='M%.1f %.1fH%.1f' stroke='#e7e8e9'/><text x='%.1f' y='%.1f' text-anchor='end' fill='#777'>%s</text>\n",
			left, at, right, left-5, at+4, short(part*scale(false)))
		if two {
			fmt.Fprintf(b, "<text x='%.1f' y='%.1f' fill='#777'>%s</text>\n", right+5, at+4, short(part*scale(true)))
		}
	}
	fmt.Fprintf(b, "<text x='%.1f' y='%.1f' fill='#777'>0 s</text><text x='%.1f' y='%.1f' text-anchor='end' fill='#777'>%d s</text>\n", left, bottom+13, right, bottom+13, seconds)
	for i, line := range lines {
		var path strings.Builder
		command := 'M'
		for _, point := range line.points {
			if math.IsNaN(point.F) || math.IsInf(point.F, 0) {
				command = 'M'
				continue
			}
			fmt.Fprintf(&path, "%c%.1f %.1f", command, left+float64(point.T)/1000/float64(seconds)*(right-left), bottom-point.F/scale(line.right)*(bottom-top))
			command = 'L'
		}
		fmt.Fprintf(b, "<path d='%s' fill='none' stroke='%s' stroke-width='1.3'/>\n", path.String(), colours[i%len(colours)])
	}
	for i, line := range lines[:min(len(lines), mostInLegend)] {
		name := line.name
		if i == mostInLegend-1 && len(lines) > mostInLegend {
			name = fmt.Sprintf("and %d more", len(lines)-i)
		}
		x, y := inset+8+i%2*(width/2-inset), height-legendHeight+13+i/2*12
		fmt.Fprintf(b, "<rect x='%d' y='%d' width='10' height='3' fill='%s'/><text x='%d' y='%d' font-size='10'>%s</text>\n", x, y-5, colours[i%len(colours)], x+14, y, html.EscapeString(name))
	}
}

// short writes a number in few characters.
func short(n float64) string {
	for _, unit := range []struct {
		of   float64
		name string
	}{{1e9, " G"}, {1e6, " M"}, {1e3, " k"}} {
		if n >= unit.of {
			return fmt.Sprintf("%.3g%s", n/unit.of, unit.name)
		}
	}
	return fmt.Sprintf("%.3g", n)
}
