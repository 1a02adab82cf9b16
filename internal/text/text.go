// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package text bounds texts that others have written, and counts in words. It is pure.
package text

import (
	"strconv"
	"unicode/utf8"
)

// Counted returns "1 Pod" or "3 Pods": the number and the noun, with an s unless n is 1.
func Counted(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return strconv.Itoa(n) + " " + noun
}

// Cut returns the longest part of a text, from its beginning, of at most `most` bytes
// that ends between two characters. Half a character could not be stored as JSON.
func Cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	most = max(0, most)
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most]
}

// Shorten cuts a text, and shows that it did, by three bytes more.
func Shorten(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return Cut(text, most) + "…"
}

// ShortenJSON cuts a text that would take more than `most` bytes as JSON, without its quotes and the sign that it was
// cut. Some characters take six times as much there.
func ShortenJSON(text string, most int) string {
	size := 0
	for at, sign := range text {
		switch {
		case sign == '"' || sign == '\\' || sign == '\n' || sign == '\r' || sign == '\t' || sign == '\b' || sign == '\f':
			size += 2
		case sign < ' ' || sign == '<' || sign == '>' || sign == '&' || sign == '\u2028' || sign == '\u2029' || sign == utf8.RuneError:
			size += 6
		default:
			size += utf8.RuneLen(sign)
		}
		if size > most {
			return text[:at] + "…"
		}
	}
	return text
}

// CountSigns counts the given characters in valid JSON, outside of strings. The numbers of {, [ and commas show how
// many values there are.
func CountSigns[T string | []byte](json T, signs string) int {
	var counts [256]bool
	for i := range len(signs) {
		counts[signs[i]] = true
	}
	count := 0
	for i, quoted := 0, false; i < len(json); i++ {
		switch sign := json[i]; {
		case sign == '"':
			quoted = !quoted
		case sign == '\\':
			i++ // Only strings have it, and what follows does not end the string.
		case !quoted && counts[sign]:
			count++
		}
	}
	return count
}
