// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package logging configures the log of a program so that texts from users can neither imitate records of the log nor
// control the terminal on which somebody reads it.
package logging

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"k8s.io/component-base/featuregate"
	logsapi "k8s.io/component-base/logs/api/v1"
)

// Set configures the log as config says, on the streams of the program.
func Set(config *logsapi.LoggingConfiguration, gates featuregate.FeatureGate) error {
	return SetOn(config, gates, os.Stdout, os.Stderr)
}

// SetOn configures the log as config says, with separate streams for errors and other records. SetOn escapes line
// breaks in values, so that each record is one line: errors of the API server quote users' texts, and klog would write
// their line breaks as they are.
func SetOn(config *logsapi.LoggingConfiguration, gates featuregate.FeatureGate, info, errors io.Writer) error {
	options := &logsapi.LoggingOptions{InfoStream: info, ErrorStream: errors}
	// Buffered output has many records at a time. Only an alpha feature of Kubernetes buffers.
	if config.Options.Text.InfoBufferSize.Value() == 0 && config.Options.JSON.InfoBufferSize.Value() == 0 {
		options.InfoStream = lines{info}
	}
	options.ErrorStream = lines{errors}
	return logsapi.ValidateAndApplyWithOptions(config, options, gates)
}

// lines writes each record on one line of characters that are to be seen.
type lines struct{ to io.Writer }

// Write writes a record.
func (l lines) Write(record []byte) (int, error) {
	if _, err := l.to.Write(line(record)); err != nil {
		return 0, err
	}
	return len(record), nil
}

// line returns a record as one line. line escapes line breaks and all other invisible characters but tabs as JSON
// strings do, so that JSON records stay valid. A byte that is no UTF-8 becomes \x9b.
func line(record []byte) []byte {
	end := len(record)
	if end > 0 && record[end-1] == '\n' {
		end--
	}
	clean := []byte(nil)
	from := 0
	for at := 0; at < end; {
		if b := record[at]; b >= ' ' && b < 0x7f || b == '\t' {
			at++
			continue
		}
		r, size := utf8.DecodeRune(record[at:end])
		if broken := r == utf8.RuneError && size == 1; broken || !unicode.IsGraphic(r) || unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp) {
			clean = append(clean, record[from:at]...)
			clean = appendEscaped(clean, r, record[at], broken)
			from = at + size
		}
		at += size
	}
	if from == 0 {
		return record
	}
	return append(clean, record[from:]...)
}

func appendEscaped(to []byte, r rune, first byte, broken bool) []byte {
	switch {
	case broken:
		return fmt.Appendf(to, `\x%02x`, first)
	case r == '\n', r == '\r':
		quoted := strconv.QuoteRune(r)
		return append(to, quoted[1:len(quoted)-1]...)
	case r > 0xffff:
		high, low := utf16.EncodeRune(r)
		return fmt.Appendf(to, `\u%04x\u%04x`, high, low)
	default:
		return fmt.Appendf(to, `\u%04x`, r)
	}
}
