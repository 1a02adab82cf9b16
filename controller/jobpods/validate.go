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

// MaxProblems limits how many problems of a spec are looked for and reported. A spec of 1 MiB can have a hundred
// thousand.
const MaxProblems = 20

// maxProblem limits the text about one problem, in bytes. The text may quote the invalid value.
const maxProblem = 512

// Problems describes the errors of a spec. Problems lists at most MaxProblems of them, shortened and without
// duplicates, and then says how many more there are.
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

// OneOf returns an error if a value is not one of the allowed values. The error lists the allowed values, except the
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
