// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// DefaultMaskedNameFragments are parts of the names that environment variables
// with secrets usually have.
func DefaultMaskedNameFragments() []string {
	return []string{"password", "secret", "token", "key", "credential"}
}

// Masks says whether the value of the environment variable of this name is
// masked. What is not set counts as its default.
func (m MaskEnv) Masks(name string) bool {
	setMaskEnvDefaults(&m)
	switch *m.Policy {
	case MaskEnvAll:
		return true
	case MaskEnvNone:
		return false
	default:
		name = strings.ToLower(name)
		return slices.ContainsFunc(m.NameFragments, func(fragment string) bool {
			return strings.Contains(name, strings.ToLower(fragment))
		})
	}
}

func setMaskEnvDefaults(m *MaskEnv) {
	setDefault(&m.Policy, MaskEnvByName)
	if *m.Policy == MaskEnvByName && m.NameFragments == nil {
		m.NameFragments = DefaultMaskedNameFragments()
	}
}

func validateMaskEnv(m MaskEnv, path *field.Path) field.ErrorList {
	if errs := oneOf(path.Child("policy"), m.Policy, MaskEnvByName, MaskEnvAll, MaskEnvNone); len(errs) > 0 {
		return errs
	}
	fragments := path.Child("nameFragments")
	switch {
	case m.NameFragments == nil:
		return nil
	case m.Policy != nil && *m.Policy != MaskEnvByName:
		return field.ErrorList{field.Forbidden(fragments, "must be left out unless policy is ByName")}
	case len(m.NameFragments) == 0:
		return field.ErrorList{field.Required(fragments, "must have at least one fragment; policy None masks no variable")}
	}
	var errs field.ErrorList
	for i, fragment := range m.NameFragments {
		if fragment == "" {
			errs = append(errs, field.Invalid(fragments.Index(i), fragment, "must not be empty; policy All masks every variable"))
		}
	}
	return errs
}
