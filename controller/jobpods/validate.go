// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package jobpods

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/lockstep-k8s/lockstep/internal/text"
)

// MaxProblems bounds how many problems of a spec are searched and reported. A spec of 1 MiB can have a hundred
// thousand.
const MaxProblems = 20

// maxProblem bounds the report of one problem, in bytes. The report may quote the invalid value.
const maxProblem = 512

// Problems describes the errors in a spec: the first MaxProblems, without duplicates and each truncated, and the
// number of further ones.
func Problems(errs field.ErrorList) string {
	var told []string
	for _, err := range errs[:min(len(errs), MaxProblems)] {
		if problem := text.Shorten(err.Error(), maxProblem); !slices.Contains(told, problem) {
			told = append(told, problem)
		}
	}
	all := strings.Join(told, ", ")
	if len(told) > 1 {
		all = "[" + all + "]"
	}
	if more := len(errs) - MaxProblems; more > 0 {
		all += fmt.Sprintf(" and %d more", more)
	}
	return all
}

// AtLeast says if a number is too small.
func AtLeast[N int32 | int64](path *field.Path, number, least N) field.ErrorList {
	if number < least {
		return field.ErrorList{field.Invalid(path, number, fmt.Sprintf("must be at least %d", least))}
	}
	return nil
}

// AtLeastIfSet says if a number that may be absent is too small.
func AtLeastIfSet[N int32 | int64](path *field.Path, number *N, least N) field.ErrorList {
	if number == nil {
		return nil
	}
	return AtLeast(path, *number, least)
}

// OneOf returns an error if a value is not among the allowed values. The message lists the allowed values except the
// empty one.
func OneOf[T ~string](path *field.Path, value T, allowed ...T) field.ErrorList {
	if slices.Contains(allowed, value) {
		return nil
	}
	told := slices.DeleteFunc(slices.Clone(allowed), func(v T) bool { return v == "" })
	return field.ErrorList{field.NotSupported(path, value, told)}
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
