// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"strings"
	"unicode/utf8"
)

// Style is how texts are written. The zero value writes without colours.
type Style struct {
	// Colours allows escape sequences for colours.
	Colours bool
}

// Colour is the colour of a text.
type Colour string

// The colours, which terminals show in the user's own scheme.
const (
	Plain   Colour = ""
	Bold    Colour = "1"
	Dim     Colour = "2"
	Red     Colour = "31"
	Green   Colour = "32"
	Yellow  Colour = "33"
	Blue    Colour = "34"
	Magenta Colour = "35"
	Cyan    Colour = "36"
)

// Prefixes returns the colours that distinguish sources of lines.
func Prefixes() []Colour { return []Colour{Cyan, Green, Magenta, Yellow, Blue} }

// Paint makes a text harmless, and adds a colour.
func (s Style) Paint(colour Colour, text string) string {
	text = Clean(text)
	if !s.Colours || colour == Plain || text == "" {
		return text
	}
	return "\x1b[" + string(colour) + "m" + text + "\x1b[0m"
}

// Cell is a part of a line.
type Cell struct {
	Text   string
	Colour Colour
}

// Table formats rows of cells. Each column is as wide as its widest cell, and columns are three spaces apart. Rows may
// have different numbers of cells. The only cell of a row does not count for the width of its column.
func (s Style) Table(rows [][]Cell) string {
	var widths []int
	for _, row := range rows {
		if len(row) == 1 {
			continue
		}
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], Width(Clean(cell.Text)))
		}
	}
	var out strings.Builder
	for _, row := range rows {
		var line strings.Builder
		pad := 0
		for i, cell := range row {
			if cell.Text != "" {
				line.WriteString(strings.Repeat(" ", pad))
				line.WriteString(s.Paint(cell.Colour, cell.Text))
				pad = 0
			}
			if i == len(row)-1 {
				break
			}
			pad += widths[i] - Width(Clean(cell.Text)) + 3
		}
		out.WriteString(line.String())
		out.WriteByte('\n')
	}
	return out.String()
}

// Width returns how many columns a text takes, if each character takes one.
func Width(s string) int { return utf8.RuneCountInString(s) }

// Fit cuts a line to a number of columns and ends it with "…" if it is longer. The line may contain colours.
func Fit(line string, columns int) string {
	width, coloured := 0, false
	for i := 0; i < len(line); {
		if line[i] == '\x1b' {
			if end := strings.IndexByte(line[i:], 'm'); end >= 0 {
				i += end + 1
				coloured = true
				continue
			}
		}
		_, size := utf8.DecodeRuneInString(line[i:])
		if width == columns-1 && hasMore(line[i+size:]) {
			cut := line[:i] + "…"
			if coloured {
				cut += "\x1b[0m"
			}
			return cut
		}
		width++
		i += size
	}
	return line
}

// hasMore reports whether anything of a line is to be seen.
func hasMore(line string) bool {
	for len(line) > 0 && line[0] == '\x1b' {
		end := strings.IndexByte(line, 'm')
		if end < 0 {
			return true
		}
		line = line[end+1:]
	}
	return line != ""
}
