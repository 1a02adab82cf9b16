// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package quantity

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

var errForEver = errors.New("this quantity is read for ever")

// read is a quantity as encoding/json has it read: each that is there, also of those of one name.
type read struct{}

func (*read) UnmarshalJSON(data []byte) error {
	var text string
	if json.Unmarshal(data, &text) != nil {
		text = string(data)
	}
	if longExponent.MatchString(strings.TrimSpace(text)) {
		return errForEver
	}
	return nil
}

// template has quantities where templates have them.
type template struct {
	Limits, Requests, Overhead map[string]read
	SizeLimit, Divisor         *read
	Spec                       *template
	Containers                 []template
}

// FuzzCheckJSON holds that nothing is read for ever that CheckJSON has let pass.
func FuzzCheckJSON(f *testing.F) {
	for _, seed := range []string{
		`{"limits":{"cpu":"1e20000"}}`, `{"limits":{"cpu":"1e20000","cpu":"1"}}`, `{"spec":{"Overhead":{"a":1e20000}},"spec":{}}`,
		`{"containers":[{"requests":{"cpu":"1\u006520000"}}]} {}`, `{"sizeLimit":" 1E-20000 "}`, `{"divisor":1e999}`, `[]`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		if CheckJSON(raw) != nil {
			return
		}
		if err := json.Unmarshal(raw, new(template)); errors.Is(err, errForEver) {
			t.Errorf("%q is let pass", raw)
		}
	})
}
