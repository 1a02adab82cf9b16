// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package rights

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
)

func TestARightIsUsedOrHasAReason(t *testing.T) {
	granted := grantsOf([]rbacv1.PolicyRule{
		{APIGroups: []string{"", "batch"}, Resources: []string{"pods"}, Verbs: []string{"get", "delete"}},
		{NonResourceURLs: []string{"/version"}, Verbs: []string{"get"}},
	})
	all := []grant{"get pods", "get pods.batch", "delete pods", "delete pods.batch", "get /version"}
	for name, tc := range map[string]struct {
		used       []grant
		exceptions []exception
		want       []string
	}{
		"all are used":                      {used: all},
		"one is not used":                   {used: all[1:], want: []string{"get pods: it is granted, and was not used"}},
		"one is not used, for a reason":     {used: all[1:], exceptions: []exception{{grants: "get pods", why: "rare"}}},
		"some are not used, for one reason": {used: all[:2], exceptions: []exception{{grants: "delete *", why: "rare"}, {grants: "get /version", why: "rare"}}},
		"a reason has outlived its right": {used: all, exceptions: []exception{{grants: "patch pods", why: "rare"}},
			want: []string{"patch pods: there is an exception (rare), and no such right is granted"}},
		"a reason has outlived itself": {used: all, exceptions: []exception{{grants: "get pods", why: "rare"}},
			want: []string{"get pods: there is an exception (rare), and the right was used"}},
		"one is used by chance": {used: all, exceptions: []exception{{grants: "get pods", why: "rare", sometimes: true}}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, problems(granted, tc.used, tc.exceptions)); diff != "" {
				t.Errorf("problems (-want,+got):\n%s", diff)
			}
		})
	}
}
