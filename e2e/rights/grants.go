// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package rights

import (
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
)

// grant is a right to do one thing: a verb, and what it is about, such as "create pods",
// "update jobs/status.batch.volcano.sh" or "get /version".
type grant string

// grantOf is the right to a verb on a resource of a group.
func grantOf(verb, group, resource string) grant {
	if group != "" {
		resource += "." + group
	}
	return grant(verb + " " + resource)
}

// grantsOf are the rights that rules give. Names of single objects are left out: a right to one
// object is written like that to all.
func grantsOf(rules []rbacv1.PolicyRule) []grant {
	var grants []grant
	for _, rule := range rules {
		for _, verb := range rule.Verbs {
			for _, path := range rule.NonResourceURLs {
				grants = append(grants, grant(verb+" "+path))
			}
			for _, group := range rule.APIGroups {
				for _, resource := range rule.Resources {
					grants = append(grants, grantOf(verb, group, resource))
				}
			}
		}
	}
	return grants
}

// exception is why a right is granted though the walk does not use it. What it is for ends in
// an asterisk if it stands for all grants that begin so. sometimes says that the walk may use the
// right, or may not.
type exception struct {
	grants, why string
	sometimes   bool
}

func (e exception) covers(g grant) bool {
	if prefix, ok := strings.CutSuffix(e.grants, "*"); ok {
		return strings.HasPrefix(string(g), prefix)
	}
	return e.grants == string(g)
}

// problems are what is wrong with the rights that are granted, beside those that were used:
// rights that nobody used and no exception has a reason for, and exceptions for what is not
// granted, or was used.
func problems(granted, used []grant, exceptions []exception) []string {
	var found []string
	covered, unused := map[int]bool{}, map[int]bool{}
	for _, g := range slices.Compact(slices.Sorted(slices.Values(granted))) {
		i := slices.IndexFunc(exceptions, func(e exception) bool { return e.covers(g) })
		was := slices.Contains(used, g)
		switch {
		case i >= 0:
			covered[i] = true
			unused[i] = unused[i] || !was
		case !was:
			found = append(found, fmt.Sprintf("%s: it is granted, and was not used", g))
		}
	}
	for i, e := range exceptions {
		switch {
		case !covered[i]:
			found = append(found, fmt.Sprintf("%s: there is an exception (%s), and no such right is granted", e.grants, e.why))
		case !unused[i] && !e.sometimes:
			found = append(found, fmt.Sprintf("%s: there is an exception (%s), and the right was used", e.grants, e.why))
		}
	}
	return found
}
