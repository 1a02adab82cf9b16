// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// Mark takes the place of a masked value. markJSON is the Mark in JSON.
const (
	Mark     = "***"
	markJSON = `"` + Mark + `"`
)

// mask returns valid JSON in which the value of an environment variable is masked if `masks` returns true for the
// variable's name. All other bytes stay as they are. mask does not change data, and returns data itself if there is
// nothing to mask.
func mask(data []byte, masks func(name string) bool) []byte {
	m := masker{data: data, masks: masks}
	m.skipSpace()
	m.value(elsewhere)
	return m.result()
}

// masker walks once over valid JSON and notes what to replace.
//
// It looks for environments, the values of keys "env", in four notations. The first is that of Kubernetes. The others
// are common mistakes: such a template is no valid Pod template, but its values are no less secret.
//
//	"env": [{"name": "A", "value": "masked"}]
//	"env": {"name": "A", "value": "masked"}
//	"env": {"A": "masked"}
//	"env": ["A=masked"]
//
// The annotation in which kubectl apply keeps the manifest holds JSON in a string. This JSON is masked in the same way.
type masker struct {
	data  []byte
	at    int // how far the walk has come
	masks func(name string) bool
	edits []edit
}

// edit replaces the value data[start:end] by JSON; if that is nil, by the Mark.
type edit struct {
	start, end int
	with       []byte
}

// place is where a value is.
type place int

const (
	elsewhere place = iota
	// environment: it is what a key "env" holds.
	environment
	// variable: it is an element of an environment.
	variable
)

func (m *masker) value(at place) {
	switch m.data[m.at] {
	case '{':
		m.object(at)
	case '[':
		m.array(at)
	case '"':
		m.text()
	default:
		m.word()
	}
}

func (m *masker) object(at place) {
	secret := false
	var values []edit
	m.at++
	for m.more('}') {
		key := m.text()
		m.skipSpace()
		m.at++ // the colon
		m.skipSpace()
		start := m.at
		if string(key) == "env" {
			m.value(environment)
		} else {
			m.value(elsewhere)
		}
		found := edit{start: start, end: m.at}
		if at == environment && m.masks(string(key)) {
			m.replace(found)
		}
		switch {
		case at != elsewhere && string(key) == "name":
			secret = secret || m.masks(string(m.textOf(found)))
		case at != elsewhere && string(key) == "value":
			values = append(values, found)
		case string(key) == corev1.LastAppliedConfigAnnotation:
			m.maskApplied(found)
		}
	}
	if secret {
		m.replace(values...)
	}
}

func (m *masker) array(at place) {
	if at == environment {
		at = variable
	}
	m.at++
	for m.more(']') {
		start := m.at
		m.value(at)
		if at == variable {
			m.maskAssignment(edit{start: start, end: m.at})
		}
	}
}

// maskAssignment masks what is after the first "=" of a string.
func (m *masker) maskAssignment(found edit) {
	name, value, assigned := bytes.Cut(m.textOf(found), []byte("="))
	if assigned && len(value) > 0 && m.masks(string(name)) {
		found.with = quoted(string(name) + "=" + Mark)
		m.replace(found)
	}
}

// maskApplied masks values in JSON that is inside a string, such as the manifest that kubectl apply keeps. If the
// string is no valid JSON, the whole string is masked.
func (m *masker) maskApplied(found edit) {
	text := m.textOf(found)
	switch {
	case text == nil: // no string
		return
	case !json.Valid(text):
		m.replace(found)
		return
	}
	if masked := mask(text, m.masks); &masked[0] != &text[0] {
		found.with = quoted(string(masked))
		m.replace(found)
	}
}

// replace records edits. replace skips edits of values with nothing to hide. Values are not copied, since one may be
// most of the data.
func (m *masker) replace(edits ...edit) {
	for _, e := range edits {
		if value := m.data[e.start:e.end]; string(value) != `""` && string(value) != "null" {
			m.edits = append(m.edits, e)
		}
	}
}

// result returns the data with the edits applied. If one edit lies inside another, only the outer one is applied.
func (m *masker) result() []byte {
	if len(m.edits) == 0 {
		return m.data
	}
	slices.SortFunc(m.edits, func(a, b edit) int { return cmp.Compare(a.start, b.start) })
	result := make([]byte, 0, len(m.data)+len(m.edits)*len(markJSON))
	done := 0
	for _, e := range m.edits {
		if e.start < done {
			continue
		}
		result = append(result, m.data[done:e.start]...)
		if e.with == nil {
			result = append(result, markJSON...)
		}
		result = append(result, e.with...)
		done = e.end
	}
	return append(result, m.data[done:]...)
}

// more moves to the next member of an object or the next element of an array. At the end it moves past the closing
// bracket and returns false.
func (m *masker) more(end byte) bool {
	m.skipSpace()
	switch m.data[m.at] {
	case end:
		m.at++
		return false
	case ',':
		m.at++
		m.skipSpace()
	}
	return true
}

// text goes past a string and returns what it holds.
func (m *masker) text() []byte {
	start := m.at
	for m.at++; m.data[m.at] != '"'; m.at++ {
		if m.data[m.at] == '\\' {
			m.at++
		}
	}
	m.at++
	return m.textOf(edit{start: start, end: m.at})
}

// textOf returns what a string holds, nil for any other value.
func (m *masker) textOf(found edit) []byte {
	value := m.data[found.start:found.end]
	if value[0] != '"' {
		return nil
	}
	text := value[1 : len(value)-1]
	if bytes.IndexByte(text, '\\') < 0 {
		return text
	}
	var unescaped string
	if err := json.Unmarshal(value, &unescaped); err != nil {
		return text // it was valid JSON, so this does not happen
	}
	return []byte(unescaped)
}

// word goes past a number, true, false or null.
func (m *masker) word() {
	for m.at < len(m.data) {
		switch m.data[m.at] {
		case ',', '}', ']', ' ', '\t', '\r', '\n':
			return
		}
		m.at++
	}
}

func (m *masker) skipSpace() {
	for m.at < len(m.data) {
		switch m.data[m.at] {
		case ' ', '\t', '\r', '\n':
			m.at++
		default:
			return
		}
	}
}

// quoted returns a text as a JSON string, escaped as json.Marshal does it.
func quoted(text string) []byte {
	data, err := json.Marshal(text)
	if err != nil {
		return []byte(markJSON) // strings have no error
	}
	return data
}
