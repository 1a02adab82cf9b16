// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

func TestOfALongLogTheEndIsShown(t *testing.T) {
	line := strings.Repeat("x", 1023) + "\n"
	text, err := end(strings.NewReader("first\n" + strings.Repeat(line, 2000) + "last\n"))
	if err != nil || !strings.HasSuffix(text, "last\n") || len(text) > maxLogBytes || len(text) < maxLogBytes-2*len(line) {
		t.Errorf("the end has %d bytes and ends with %q: %v", len(text), text[len(text)-5:], err)
	}
	if !strings.HasPrefix(text, line) {
		t.Error("it begins within a line")
	}
	if text, err := end(strings.NewReader(strings.Repeat("50%\r", maxLogBytes) + "\n")); err != nil || len(text) != maxLogBytes {
		t.Errorf("of a log of one long line %d bytes are shown: %v", len(text), err)
	}
	if text, err := end(strings.NewReader("a\nb")); err != nil || text != "a\nb" {
		t.Errorf("a short log is %q: %v", text, err)
	}
	broken := io.MultiReader(strings.NewReader("a\n"), iotest.ErrReader(errors.New("gone")))
	if text, err := end(broken); err == nil || text != "a\n" {
		t.Errorf("a log that breaks off is %q: %v", text, err)
	}
}
