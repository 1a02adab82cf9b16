// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package quantity protects programs from quantities that take for ever to parse. "1.0000000000000000001e2000000000" is
// a number with two thousand million digits: a user who may write a template could stop the program that reads it.
package quantity

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/lockstep-k8s/lockstep/internal/text"
)

// maxDigits is how many digits the exponent of a quantity may have.
const maxDigits = 3

// CheckJSON returns an error if a quantity in a JSON template has an exponent of more than three digits. The error
// names the field. CheckJSON returns nil for invalid JSON, which can't be decoded anyway.
func CheckJSON(raw []byte) error { return checkFields(raw, ofTemplates) }

// CheckGang is CheckJSON for a PodGroup with templates of its Pods.
func CheckGang(raw []byte) error { return checkFields(raw, ofGangs) }

// CheckMetric is CheckJSON for a metric of autoscaling/v2.
func CheckMetric(raw []byte) error { return checkFields(raw, ofMetrics) }

// checkFields looks at the fields of some names.
func checkFields(raw []byte, quantities []string) error {
	if !isSuspect(raw) {
		return nil
	}
	var template json.RawMessage
	if json.NewDecoder(bytes.NewReader(raw)).Decode(&template) != nil {
		return nil
	}
	w := walk{json.NewDecoder(bytes.NewReader(template)), quantities}
	w.decoder.UseNumber()
	return w.value("", false)
}

// isSuspect reports whether the text may contain an exponent of more than maxDigits digits. This quick scan spares
// most templates the slow check.
func isSuspect(raw []byte) bool {
	for i, c := range raw {
		switch c {
		case '\\':
			if i+1 < len(raw) && raw[i+1] == 'u' {
				return true // it may stand for any sign
			}
		case 'e', 'E':
			rest := raw[i+1:]
			if len(rest) > 0 && (rest[0] == '+' || rest[0] == '-') {
				rest = rest[1:]
			}
			if len(rest) > maxDigits && !bytes.ContainsFunc(rest[:maxDigits+1], func(r rune) bool { return r < '0' || r > '9' }) {
				return true
			}
		}
	}
	return false
}

// longExponent is the end of a number that CheckJSON refuses.
var longExponent = regexp.MustCompile(`[eE][+-]?[0-9]{4,}$`)

// walk reads JSON token by token. A decoder into a map would see only the last of several fields with the same name.
type walk struct {
	decoder    *json.Decoder
	quantities []string
}

// value checks the quantities in the next value. `is` says that the value itself is a quantity, or an object or a list
// of quantities.
func (w walk) value(path string, is bool) error {
	token, err := w.decoder.Token()
	if err != nil {
		return nil
	}
	switch t := token.(type) {
	case string:
		return checkNumber(path, t, is)
	case json.Number:
		return checkNumber(path, t.String(), is)
	case json.Delim:
		for i := 0; w.decoder.More(); i++ {
			within, isThere := path+"["+strconv.Itoa(i)+"]", is
			if t == '{' {
				name, err := w.decoder.Token()
				if err != nil {
					return nil
				}
				field, _ := name.(string)
				within, isThere = strings.TrimPrefix(path+"."+field, "."), is || isQuantity(field, w.quantities)
			}
			if err := w.value(within, isThere); err != nil {
				return err
			}
		}
		_, _ = w.decoder.Token() // the end
	}
	return nil
}

func checkNumber(path, number string, is bool) error {
	if !is {
		return nil
	}
	if err := Check(number); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// Check returns an error if a quantity has an exponent of more than three digits.
func Check(number string) error {
	if longExponent.MatchString(strings.TrimSpace(number)) {
		return fmt.Errorf("must be a quantity with an exponent from -999 to 999, is %q", text.Cut(number, 60))
	}
	return nil
}

// ofTemplates are the names of fields in templates of Pods and PersistentVolumeClaims that are, or contain, quantities.
// ofGangs adds those of a PodGroup, ofMetrics those of a metric.
var (
	ofTemplates = []string{"limits", "requests", "overhead", "sizeLimit", "divisor"}
	ofGangs     = append([]string{"minResources"}, ofTemplates...)
	ofMetrics   = []string{"value", "averageValue"}
)

// isQuantity reports whether a field with this name is a quantity. isQuantity ignores case, as JSON decoders may.
func isQuantity(name string, quantities []string) bool {
	return slices.ContainsFunc(quantities, func(known string) bool {
		return strings.EqualFold(name, known)
	})
}
