// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"fmt"
	"regexp"

	"k8s.io/apimachinery/pkg/util/validation/field"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
)

func validatePodFailureSpec(spec []CompletionCodeInfo, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	first := map[frameworkv1.CompletionCode]int{}
	for i, info := range spec {
		at := path.Index(i)
		errs = append(errs, validateCode(info.Code, at.Child("code"))...)
		if info.Code != nil {
			if j, taken := first[*info.Code]; taken {
				errs = append(errs, field.Invalid(at.Child("code"), *info.Code, fmt.Sprintf("must be unique, and is that of %s too", path.Index(j))))
			} else {
				first[*info.Code] = i
			}
		}
		errs = append(errs, validateType(info.Type, at.Child("type"))...)
		errs = append(errs, validatePodPatterns(info.PodPatterns, at.Child("podPatterns"))...)
	}
	return errs
}

func validateCode(code *frameworkv1.CompletionCode, path *field.Path) field.ErrorList {
	const legal = "must be at most -1000, from 1 to 199, or at least 220: the others are predefined"
	if code == nil {
		return field.ErrorList{field.Required(path, legal)}
	}
	predefined := *code >= frameworkv1.ReservedCodeMin && *code <= frameworkv1.ReservedCodeMax
	predefinedExit := *code >= frameworkv1.ReservedContainerCodeMin && *code <= frameworkv1.ReservedContainerCodeMax
	if predefined || predefinedExit {
		return field.ErrorList{field.Invalid(path, *code, legal)}
	}
	return nil
}

func validateType(t frameworkv1.CompletionType, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if t.Name != "" && t.Name != frameworkv1.CompletionTypeFailed {
		errs = append(errs, field.NotSupported(path.Child("name"), t.Name, []frameworkv1.CompletionTypeName{frameworkv1.CompletionTypeFailed}))
	}
	for i, attribute := range t.Attributes {
		switch attribute {
		case frameworkv1.AttributeTransient, frameworkv1.AttributePermanent, frameworkv1.AttributeConflict:
		default:
			errs = append(errs, field.NotSupported(path.Child("attributes").Index(i), attribute, []frameworkv1.CompletionTypeAttribute{
				frameworkv1.AttributeTransient, frameworkv1.AttributePermanent, frameworkv1.AttributeConflict,
			}))
		}
	}
	return errs
}

func validatePodPatterns(patterns []*PodPattern, path *field.Path) field.ErrorList {
	if len(patterns) == 0 {
		return field.ErrorList{field.Required(path, "must have at least one pattern; {} fits every failed Pod")}
	}
	var errs field.ErrorList
	for i, pattern := range patterns {
		at := path.Index(i)
		if pattern == nil {
			errs = append(errs, field.Required(at, "must not be null; {} fits every failed Pod"))
			continue
		}
		errs = append(errs, validateRegex(pattern.NameRegex, at.Child("nameRegex"))...)
		errs = append(errs, validateRegex(pattern.ReasonRegex, at.Child("reasonRegex"))...)
		errs = append(errs, validateRegex(pattern.MessageRegex, at.Child("messageRegex"))...)
		errs = append(errs, validateContainerPatterns(pattern.Containers, at.Child("containers"))...)
	}
	return errs
}

func validateContainerPatterns(patterns []*ContainerPattern, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, pattern := range patterns {
		at := path.Index(i)
		if pattern == nil {
			errs = append(errs, field.Required(at, "must not be null; {} fits every container"))
			continue
		}
		errs = append(errs, validateRegex(pattern.NameRegex, at.Child("nameRegex"))...)
		errs = append(errs, validateRegex(pattern.ReasonRegex, at.Child("reasonRegex"))...)
		errs = append(errs, validateRegex(pattern.MessageRegex, at.Child("messageRegex"))...)
		errs = append(errs, validateRange(pattern.SignalRange, at.Child("signalRange"))...)
		errs = append(errs, validateRange(pattern.CodeRange, at.Child("codeRange"))...)
	}
	return errs
}

func validateRegex(regex string, path *field.Path) field.ErrorList {
	if _, err := regexp.Compile(regex); err != nil {
		return field.ErrorList{field.Invalid(path, regex, fmt.Sprintf("must be a regular expression of Go (RE2): %v", err))}
	}
	return nil
}

func validateRange(r Int32Range, path *field.Path) field.ErrorList {
	if r.Min != nil && r.Max != nil && *r.Max < *r.Min {
		return field.ErrorList{field.Invalid(path.Child("max"), *r.Max, fmt.Sprintf("must be at least min, which is %d", *r.Min))}
	}
	return nil
}
