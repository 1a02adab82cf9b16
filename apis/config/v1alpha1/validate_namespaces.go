// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// maxNamespaces bounds how many namespaces are watched one by one: each costs a watch of every
// kind.
const maxNamespaces = 100

// validateNamespaces checks a list of namespaces, of which there may be none and at most a number.
func validateNamespaces(path *field.Path, namespaces []string, most int) field.ErrorList {
	var errs field.ErrorList
	if n := len(namespaces); n > most {
		errs = append(errs, field.Invalid(path, n, fmt.Sprintf("must have at most %d namespaces", most)))
	}
	for i, namespace := range namespaces {
		if slices.Contains(namespaces[:i], namespace) {
			errs = append(errs, field.Duplicate(path.Index(i), namespace))
		}
		for _, problem := range validation.IsDNS1123Label(namespace) {
			errs = append(errs, field.Invalid(path.Index(i), namespace, problem))
		}
	}
	return errs
}

// ValidateNamespaces checks the namespaces of a program: at most 100, each once, each a DNS label.
func ValidateNamespaces(path *field.Path, namespaces []string) field.ErrorList {
	return validateNamespaces(path, namespaces, maxNamespaces)
}
