// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"fmt"
	"slices"
	"strconv"
)

// Figure is one measured number.
type Figure struct {
	// What was measured.
	What string `json:"what"`
	// Value in Unit. A ratio has the unit "×", a share "%".
	Value float64 `json:"value"`
	Unit  string  `json:"unit,omitempty"`
	// Bar is what Value has to keep to. Nil for a figure that is only told.
	Bar *Bar `json:"bar,omitempty"`
	// Note says what the figure is made from: both times of a ratio, say.
	Note string `json:"note,omitempty"`
}

// Bar bounds a figure, both ends inclusive. An end that is nil does not.
type Bar struct {
	Min *float64 `json:"min,omitempty"`
	Max *float64 `json:"max,omitempty"`
}

// AtMost is a bar that has no lower end.
func AtMost(limit float64) *Bar { return &Bar{Max: &limit} }

// AtLeast is a bar without an upper end.
func AtLeast(limit float64) *Bar { return &Bar{Min: &limit} }

// Exactly is a bar that one number keeps to.
func Exactly(number float64) *Bar { return &Bar{Min: &number, Max: &number} }

// Between is a bar with two ends.
func Between(least, most float64) *Bar { return &Bar{Min: &least, Max: &most} }

// Holds says whether a figure keeps to its bar. One without does.
func (f Figure) Holds() bool {
	return f.Bar == nil ||
		(f.Bar.Min == nil || f.Value >= *f.Bar.Min) && (f.Bar.Max == nil || f.Value <= *f.Bar.Max)
}

// Verdict is "ok", "MISS", or nothing for a figure without a bar.
func (f Figure) Verdict() string {
	switch {
	case f.Bar == nil:
		return ""
	case f.Holds():
		return "ok"
	default:
		return "MISS"
	}
}

// String is the figure in a line.
func (f Figure) String() string {
	line := f.What + " " + f.quantity(f.Value)
	if f.Bar != nil {
		line += fmt.Sprintf(" (bar %s: %s)", f.bar(), f.Verdict())
	}
	if f.Note != "" {
		line += ", " + f.Note
	}
	return line
}

// bar is the bar as people write it.
func (f Figure) bar() string {
	switch {
	case f.Bar == nil:
		return ""
	case f.Bar.Min == nil:
		return "≤ " + f.quantity(*f.Bar.Max)
	case f.Bar.Max == nil:
		return "≥ " + f.quantity(*f.Bar.Min)
	case *f.Bar.Min == *f.Bar.Max:
		return "= " + f.quantity(*f.Bar.Max)
	default:
		return f.quantity(*f.Bar.Min) + " – " + f.quantity(*f.Bar.Max)
	}
}

// quantity is a number with the figure's unit, to about three digits.
func (f Figure) quantity(value float64) string {
	digits := 2
	switch {
	case value == float64(int64(value)) && f.Unit != "×":
		digits = 0
	case value >= 100:
		digits = 0
	case value >= 10:
		digits = 1
	}
	number := strconv.FormatFloat(value, 'f', digits, 64)
	if f.Unit == "" {
		return number
	}
	return number + " " + f.Unit
}

// Median is the middle of the values, the higher one of two.
func Median[T int | int64 | float64](values []T) T {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}
