// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package reading

import (
	"slices"
	"strings"
)

// Name is how a person names a job or a gang: NAME, KIND/NAME or NAMESPACE/NAME.
type Name struct {
	Namespace, Name string
	// kinds are those that are meant.
	kinds kinds
}

// kinds are what a name may be of.
type kinds struct {
	frameworks, groups bool
	frontEnds          []FrontEnd
}

// ParseName reads a name of somebody who is in a namespace. Where a namespace is called like a kind, such as tfjob,
// it is taken for the kind.
func ParseName(namespace, text string) Name {
	before, name, two := strings.Cut(text, "/")
	if !two {
		return Name{namespace, text, kinds{true, true, FrontEnds()}}
	}
	switch kind := strings.ToLower(before); {
	case slices.Contains([]string{"framework", "frameworks"}, kind):
		return Name{namespace, name, kinds{frameworks: true}}
	case slices.Contains([]string{"podgroup", "podgroups", "lpg"}, kind):
		return Name{namespace, name, kinds{groups: true}}
	default:
		for _, frontEnd := range FrontEnds() {
			if frontEnd.isCalled(kind) {
				return Name{namespace, name, kinds{frontEnds: []FrontEnd{frontEnd}}}
			}
		}
		return Name{before, name, kinds{true, true, FrontEnds()}}
	}
}

// isCalled says whether a word in lower case means the kind. The plural alone does not where Kubernetes has
// a kind of that name.
func (f FrontEnd) isCalled(word string) bool {
	r := f.Resource
	return word == strings.ToLower(f.Kind) || word == r.Resource+"."+r.Group || word == r.Resource && word != "jobs" || slices.Contains(f.Short, word)
}
