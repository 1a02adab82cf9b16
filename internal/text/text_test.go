// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package text

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestTextsAreCutBetweenCharacters(t *testing.T) {
	tests := map[string]struct {
		text        string
		most        int
		cut, shorts string
	}{
		"a text that fits":        {"abc", 3, "abc", "abc"},
		"one that does not":       {"abcd", 3, "abc", "abc…"},
		"two bytes a character":   {"äöü", 3, "ä", "ä…"},
		"three bytes a character": {"€€", 5, "€", "€…"},
		"four bytes a character":  {"a😀", 4, "a", "a…"},
		"no room for any":         {"😀", 3, "", "…"},
		"no room at all":          {"abc", 0, "", "…"},
		"less than none":          {"abc", -1, "", "…"},
		"nothing":                 {"", 0, "", ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := Cut(tc.text, tc.most); got != tc.cut {
				t.Errorf("Cut: got %q, want %q", got, tc.cut)
			}
			if got := Shorten(tc.text, tc.most); got != tc.shorts {
				t.Errorf("Shorten: got %q, want %q", got, tc.shorts)
			}
		})
	}
}

func TestSignsInStringsDontCount(t *testing.T) {
	tests := map[string]struct {
		json string
		want int
	}{
		"nothing":                {``, 0},
		"values":                 {`{"a":[1,2,{}],"b":3}`, 6},
		"a string":               {`["{[,"]`, 1},
		"a quote in a string":    {`["\"{",{}]`, 3},
		"a backslash at the end": {`["\\",{}]`, 3},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := CountSigns(tc.json, "{[,"); got != tc.want {
				t.Errorf("got %d, want %d", got, tc.want)
			}
			if got := CountSigns([]byte(tc.json), "{[,"); got != tc.want {
				t.Errorf("of bytes: got %d, want %d", got, tc.want)
			}
		})
	}
}

// TestAShortTextIsShortAsJSON, whatever JSON makes of its characters.
func TestAShortTextIsShortAsJSON(t *testing.T) {
	for _, sign := range []string{"a", "ä", "€", "😀", "\"", "\\", "\n", "\b", "\x01", "<", "&", "\u2028", "\x7f", "\xff", "\ufffd"} {
		long := strings.Repeat(sign, 200)
		short := ShortenJSON(long, 100)
		data, err := json.Marshal(short)
		if err != nil {
			t.Fatal(err)
		}
		if rest := len(data) - len(`"…"`); rest > 100 || rest < 48 || !strings.HasPrefix(long, strings.TrimSuffix(short, "…")) {
			t.Errorf("%q becomes %d bytes of JSON: %s", sign, rest, data)
		}
	}
	for _, fits := range []string{"", "abc", strings.Repeat("ä", 50), strings.Repeat("<", 16)} {
		if got := ShortenJSON(fits, 100); got != fits {
			t.Errorf("%q fits, and becomes %q", fits, got)
		}
	}
}
