// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package podgroup

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// TestTheNamesOfImplicitGroups follow from what tools write into Pods, and are names that a PodGroup may have.
func TestTheNamesOfImplicitGroups(t *testing.T) {
	hash := strings.Repeat("0123456789", 4) // as long as one by SHA-1
	for name, tc := range map[string]struct {
		labels map[string]string
		want   []string // a name that ends in * has a digest
	}{
		"a Job":    {map[string]string{LabelJobUID: "5e1f"}, []string{"job-5e1f"}},
		"a JobSet": {map[string]string{LabelJobSetUID: "5e1f", LabelJobSetAttempt: "2", LabelJobUID: "77aa", LabelJobSetJob: hash}, []string{"jobset-5e1f-2", "jobset-5e1f-2-" + hash}},
		"a JobSet with a long UID": {map[string]string{LabelJobSetUID: "11111111-2222-3333-4444-555555555555", LabelJobSetAttempt: "0", LabelJobSetJob: hash},
			[]string{"jobset-11111111-2222-3333-4444-555555555555-0", "jobset-*"}},
		"a LeaderWorkerSet":                         {map[string]string{LabelLWSGroup: "8f2c", LabelLWSRevision: "5d2f", LabelLWSName: "serve"}, []string{"lws-8f2c-5d2f"}},
		"a LeaderWorkerSet with long hashes":        {map[string]string{LabelLWSGroup: hash, LabelLWSRevision: hash}, []string{"lws-*"}},
		"a LeaderWorkerSet without a revision":      {map[string]string{LabelLWSGroup: "8f2c"}, []string{"lws-8f2c"}},
		"a value that makes no name":                {map[string]string{LabelJobUID: "A_1."}, []string{"job-*"}},
		"a Job's Pod that names a PodGroup":         {map[string]string{LabelJobUID: "5e1f", "scheduling.lockstep.dev/pod-group": "own"}, []string{"own"}},
		"a Pod of nothing that has implicit groups": {nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: tc.labels}}
			got := GroupsOf(pod)
			for i, name := range got {
				if problems := validation.IsDNS1123Label(name); len(problems) > 0 {
					t.Errorf("%s is no name: %v", name, problems)
				}
				if i < len(tc.want) {
					if prefix, digest := strings.CutSuffix(tc.want[i], "*"); digest && len(name) == len(prefix)+40 {
						got[i] = prefix + "*"
					}
				}
			}
			if !slices.Equal(got, tc.want) {
				t.Errorf("its groups are %q, want %q", got, tc.want)
			}
			if first, _ := ImplicitOf(pod); first != nil && !IsLinked(first.MemberLabels(pod), pod) {
				t.Errorf("it lacks the labels %v of its own group", first.MemberLabels(pod))
			}
		})
	}
}

// TestPodsOfTwoGroupsHaveTwoNames, though their labels are the same in a row.
func TestPodsOfTwoGroupsHaveTwoNames(t *testing.T) {
	long := strings.Repeat("a", 63)
	a := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{LabelLWSGroup: long, LabelLWSRevision: "r1"}}}
	b := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{LabelLWSGroup: long, LabelLWSRevision: "r2"}}}
	if GroupsOf(a)[0] == GroupsOf(b)[0] {
		t.Errorf("both are called %s", GroupsOf(a)[0])
	}
}
