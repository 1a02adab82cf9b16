// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package text limits the length of texts from other sources, and formats counts. The package is pure.
package text

import (
	"strconv"
	"unicode/utf8"
)

// Counted returns "1 Pod" or "3 Pods": the number and the noun, with an s unless n is 1.
func Counted(n int, noun string) string {
	return strconv.Itoa(n) + " " + Form(n, noun, noun+"s")
}

// Form returns the form of a word for n: one if n is 1, else many.
func Form(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

// Cut returns the beginning of a text: at most `most` bytes, and no half character, which JSON could not store.
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

// ShortenJSON cuts a text that would take more than `most` bytes in JSON, where some characters take six bytes. Not
// counted are the quotes around the text, and the "…" that shows the cut.
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

// CountSigns counts the characters of signs in valid JSON, except those in strings. The numbers of "{", "[" and "," are
// a bound for how many values the JSON has.
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
