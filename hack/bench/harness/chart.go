// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"fmt"
	"html"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Chart is a picture of how something grows. Both axes are logarithmic, so that
// what grows in proportion is a straight line, and twice as much is the same
// distance everywhere; or, if Linear, both start at 0.
type Chart struct {
	// File is the picture's name in the folder of results, *.svg.
	File string
	// Title, X and Y say what is shown, with units.
	Title, X, Y string
	Linear      bool
	Series      []Series
}

// Series is one line of a chart, its points in order of X, all above 0 unless the
// chart is linear.
type Series struct {
	Name   string
	Points []Point
}

// Point is one measurement.
type Point struct{ X, Y float64 }

// Size of the picture and of its margins, in pixels.
const (
	chartWidth, chartHeight  = 720, 420
	chartLeft, chartRight    = 64, 150
	chartTop, chartBottom    = 44, 52
	chartFont                = "font-family='system-ui, sans-serif' font-size='12'"
	chartInk, chartGrid      = "#333333", "#dddddd"
	chartPaper               = "#ffffff"
	chartStroke, chartRadius = "2", "3"
)

// SVG draws the chart.
func (c Chart) SVG() string {
	x, y := c.axes()
	var b strings.Builder
	fmt.Fprintf(&b, "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 %d %d' %s fill='%s'>\n", chartWidth, chartHeight, chartFont, chartInk)
	fmt.Fprintf(&b, "<rect width='%d' height='%d' fill='%s'/>\n", chartWidth, chartHeight, chartPaper)
	text := func(px, py float64, anchor, s string) {
		fmt.Fprintf(&b, "<text x='%.1f' y='%.1f' text-anchor='%s'>%s</text>\n", px, py, anchor, html.EscapeString(s))
	}
	line := func(x1, y1, x2, y2 float64) {
		fmt.Fprintf(&b, "<line x1='%.1f' y1='%.1f' x2='%.1f' y2='%.1f' stroke='%s'/>\n", x1, y1, x2, y2, chartGrid)
	}
	fmt.Fprintf(&b, "<text x='%d' y='22' font-size='15'>%s</text>\n", chartLeft, html.EscapeString(c.Title))
	for _, tick := range x.ticks() {
		px := x.at(tick)
		line(px, chartTop, px, chartHeight-chartBottom)
		text(px, chartHeight-chartBottom+18, "middle", tickLabel(tick))
	}
	for _, tick := range y.ticks() {
		py := y.at(tick)
		line(chartLeft, py, chartWidth-chartRight, py)
		text(chartLeft-8, py+4, "end", tickLabel(tick))
	}
	text((chartLeft+chartWidth-chartRight)/2, chartHeight-12, "middle", c.X)
	text(chartLeft-8, chartTop-8, "end", c.Y)
	for i, series := range c.Series {
		color := palette()[i%len(palette())]
		var path []string
		for _, p := range series.Points {
			path = append(path, fmt.Sprintf("%.1f,%.1f", x.at(p.X), y.at(p.Y)))
			fmt.Fprintf(&b, "<circle cx='%.1f' cy='%.1f' r='%s' fill='%s'/>\n", x.at(p.X), y.at(p.Y), chartRadius, color)
		}
		fmt.Fprintf(&b, "<polyline points='%s' fill='none' stroke='%s' stroke-width='%s'/>\n", strings.Join(path, " "), color, chartStroke)
		// The legend is in the margin: the ends of lines lie too close together.
		top := float64(chartTop + 20*i)
		fmt.Fprintf(&b, "<rect x='%d' y='%.1f' width='14' height='4' fill='%s'/>\n", chartWidth-chartRight+12, top, color)
		text(chartWidth-chartRight+32, top+7, "start", series.Name)
	}
	b.WriteString("</svg>\n")
	return b.String()
}

// palette is told apart also by the colour-blind (Okabe and Ito).
func palette() []string {
	return []string{"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"}
}

// axes span all points.
func (c Chart) axes() (x, y axis) {
	var xs, ys []float64
	for _, series := range c.Series {
		for _, p := range series.Points {
			xs, ys = append(xs, p.X), append(ys, p.Y)
		}
	}
	if c.Linear {
		return linearAxis(xs, chartLeft, chartWidth-chartRight), linearAxis(ys, chartHeight-chartBottom, chartTop)
	}
	return newAxis(xs, chartLeft, chartWidth-chartRight), newAxis(ys, chartHeight-chartBottom, chartTop)
}

// axis maps values to pixels, by their logarithm unless it is linear.
type axis struct {
	low, high float64 // values
	from, to  float64 // pixels
	linear    bool
}

// linearAxis spans 0 to the largest value, with a little room.
func linearAxis(values []float64, from, to float64) axis {
	const room = 1.05
	high := 1.0
	if len(values) > 0 {
		high = max(slices.Max(values), math.SmallestNonzeroFloat32) * room
	}
	return axis{high: high, from: from, to: to, linear: true}
}

// newAxis spans values, with a little room on both sides.
func newAxis(values []float64, from, to float64) axis {
	const room = 1.15
	if len(values) == 0 {
		values = []float64{1, 10}
	}
	return axis{low: slices.Min(values) / room, high: slices.Max(values) * room, from: from, to: to}
}

func (a axis) at(value float64) float64 {
	if a.linear {
		return a.from + (a.to-a.from)*value/a.high
	}
	return a.from + (a.to-a.from)*math.Log(value/a.low)/math.Log(a.high/a.low)
}

// ticks are the 1s, 2s and 5s of each power of ten, or 0 and multiples of one of
// them, at least four.
func (a axis) ticks() []float64 {
	if a.linear {
		return a.evenTicks()
	}
	var ticks []float64
	for power := math.Pow(10, math.Floor(math.Log10(a.low))); power <= a.high; power *= 10 {
		for _, digit := range []float64{1, 2, 5} {
			if tick := digit * power; tick >= a.low && tick <= a.high {
				ticks = append(ticks, tick)
			}
		}
	}
	return ticks
}

func (a axis) evenTicks() []float64 {
	step := math.Pow(10, math.Floor(math.Log10(a.high)))
	for _, part := range []float64{1, 2, 5, 10} {
		if a.high >= 4*step/part {
			step /= part
			break
		}
	}
	var ticks []float64
	for i := 0.0; i*step <= a.high; i++ {
		ticks = append(ticks, i*step)
	}
	return ticks
}

func tickLabel(value float64) string {
	return strconv.FormatFloat(value, 'g', 6, 64)
}
