// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package reading

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
)

// Name is the name of a job or a gang as users and programs write it: NAME, KIND/NAME, KIND.GROUP/NAME or
// NAMESPACE/NAME.
type Name struct {
	Namespace, Name string
	// kinds are the possible kinds.
	kinds kinds
}

// kinds are what a name may be of.
type kinds struct {
	frameworks, groups bool
	jobs               []JobKind
}

// ErrName is of what is no name.
var ErrName = errors.New("is no name")

// IsFramework reports whether the name may be that of a Framework.
func (n Name) IsFramework() bool { return n.kinds.frameworks }

// IsFrameworkOnly reports whether the name can be that of nothing but a Framework.
func (n Name) IsFrameworkOnly() bool {
	return n.kinds.frameworks && !n.kinds.groups && len(n.kinds.jobs) == 0
}

// ParseName parses a name that a user in a namespace has written. If the part before "/" is the name of a kind, such as
// tfjob, it means the kind and not a namespace. A group may follow the kind. The error for an unknown kind is an
// ErrName.
func ParseName(namespace, text string) (Name, error) {
	before, name, two := strings.Cut(text, "/")
	if !two {
		before, name = namespace, text
	}
	if two && before == "" || name == "" || strings.Contains(name, "/") {
		return Name{}, fmt.Errorf("%q %w: it is NAME, KIND/NAME or NAMESPACE/NAME", text, ErrName)
	}
	kind := strings.ToLower(before)
	switch {
	case !two:
		return Name{namespace, text, kinds{true, true, JobKinds()}}, nil
	case isCalled(kind, "framework", frameworkv1.FrameworkPlural, frameworkv1.GroupName):
		return Name{namespace, name, kinds{frameworks: true}}, nil
	case isCalled(kind, "podgroup", schedulingv1alpha1.PodGroupPlural, schedulingv1alpha1.GroupName), kind == "lpg":
		return Name{namespace, name, kinds{groups: true}}, nil
	}
	var known []string
	for _, jobKind := range JobKinds() {
		if jobKind.isCalled(kind) {
			return Name{namespace, name, kinds{jobs: []JobKind{jobKind}}}, nil
		}
		known = append(known, strings.ToLower(jobKind.Kind))
	}
	// No namespace has a dot.
	if strings.Contains(kind, ".") {
		return Name{}, fmt.Errorf("%q %w that is known here: kinds are framework, podgroup, %s", text, ErrName, strings.Join(known, ", "))
	}
	return Name{before, name, kinds{true, true, JobKinds()}}, nil
}

// isCalled reports whether a lower-case word is the singular or the plural of a kind, alone or before its group.
func isCalled(word, singular, plural, group string) bool {
	word = strings.TrimSuffix(word, "."+group)
	return word == singular || word == plural
}

// isCalled reports whether a lower-case word names the kind. If Kubernetes has a kind of the same name, the word must
// include the group.
func (f JobKind) isCalled(word string) bool {
	r := f.Resource
	singular, _, _ := strings.Cut(strings.ToLower(f.Kind), ".")
	return word != "job" && word != "jobs" && isCalled(word, singular, r.Resource, r.Group) || slices.Contains(f.Short, word)
}
