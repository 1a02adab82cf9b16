// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Clean makes text from an untrusted source safe for a terminal: the message of a container must not move the cursor,
// or change the window's title or the writing direction. Line breaks and tabs become spaces. Other invisible
// characters, and bytes that are not UTF-8, are written as \x1b or \u202e.
func Clean(s string) string {
	if harmless(s) {
		return s
	}
	var clean strings.Builder
	for len(s) > 0 {
		r, size := utf8.DecodeRuneInString(s)
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&clean, `\x%02x`, s[0])
		case r == '\n' || r == '\t' || r == '\r':
			clean.WriteByte(' ')
		case visible(r):
			clean.WriteRune(r)
		case r < 0x80:
			fmt.Fprintf(&clean, `\x%02x`, r)
		default:
			fmt.Fprintf(&clean, `\u%04x`, r)
		}
		s = s[size:]
	}
	return clean.String()
}

func harmless(s string) bool {
	if !utf8.ValidString(s) {
		return false
	}
	for _, r := range s {
		if !visible(r) {
			return false
		}
	}
	return true
}

// visible reports whether a character is visible, or a space. U+FFFD counts as visible.
func visible(r rune) bool {
	return r == ' ' || unicode.IsGraphic(r) && !unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp)
}
