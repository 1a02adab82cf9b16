// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"encoding/json"
	"fmt"
)

// Encode returns an object as one line of JSON. The value of an environment variable is masked if `masks` returns true
// for the variable's name; nil masks nothing. Everything else is as json.Marshal writes it.
//
// Encode masks whatever looks like an environment variable, anywhere in the object: templates are kept as the user
// wrote them, and may not be valid Pod templates (see masker). Secrets in other places, such as arguments, are not
// recognized.
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
