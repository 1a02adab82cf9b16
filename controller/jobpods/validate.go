// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package jobpods

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// AtLeast says if a number is too small.
func AtLeast[N int32 | int64](path *field.Path, number, least N) field.ErrorList {
	if number < least {
		return field.ErrorList{field.Invalid(path, number, fmt.Sprintf("must be at least %d", least))}
	}
	return nil
}

// Subdomain says if a text is neither empty nor a DNS subdomain.
func Subdomain(path *field.Path, name string) field.ErrorList {
	if name == "" {
		return nil
	}
	var errs field.ErrorList
	for _, problem := range validation.IsDNS1123Subdomain(name) {
		errs = append(errs, field.Invalid(path, name, problem))
	}
	return errs
}
