// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// maxSchedulerNames bounds a list of schedulers.
const maxSchedulerNames = 16

// orNone says that a list of schedulers may have the empty name, which is that of what names
// none.
const orNone = true

// validateSchedulerNames checks a list of schedulers, that may not be set.
func validateSchedulerNames(c *ControllerConfiguration, path *field.Path, names []string, mayBeEmpty bool) field.ErrorList {
	var errs field.ErrorList
	if n := len(names); names != nil && (n < 1 || n > maxSchedulerNames) {
		errs = append(errs, field.Invalid(path, n, fmt.Sprintf("must have from 1 to %d names", maxSchedulerNames)))
	}
	for i, name := range names {
		switch at := path.Index(i); {
		case slices.Contains(names[:i], name):
			errs = append(errs, field.Duplicate(at, name))
		case name == "" && mayBeEmpty:
		case c.GangSchedulerName != nil && name == *c.GangSchedulerName:
			// What is wrong with it is told there.
		case len(name) > validation.DNS1123LabelMaxLength:
			errs = append(errs, field.Invalid(at, name, fmt.Sprintf("must have at most %d characters", validation.DNS1123LabelMaxLength)))
		default:
			for _, problem := range validation.IsDNS1123Subdomain(name) {
				errs = append(errs, field.Invalid(at, name, problem))
			}
		}
	}
	return errs
}
