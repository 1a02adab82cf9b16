// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"encoding/json"
	"fmt"
)

// Encode is an object as one line of JSON. In the line the values of those environment variables are masked that
// masks chooses by name; all else is as json.Marshal has it. A masks of nil chooses none.
//
// Masked is what looks like a variable, wherever in the object, because templates are kept as written and may be no
// Pod templates: see masker. Secrets in other places, such as arguments, are not known as such.
func Encode(object any, masks func(name string) bool) ([]byte, error) {
	data, err := json.Marshal(object)
	if err != nil {
		return nil, fmt.Errorf("encoding a %T: %w", object, err)
	}
	if masks == nil {
		return data, nil
	}
	return mask(data, masks), nil
}
