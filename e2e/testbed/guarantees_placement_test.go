// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package testbed

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
)

// member is a Pod of two cores of the gang fw, on a node if one is given.
func member(uid types.UID, node string, phase corev1.PodPhase) event {
	return event{pod: &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: string(uid), UID: uid, Annotations: map[string]string{frameworkv1.KeyFrameworkName: "fw"}},
		Spec: corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2")},
		}}}},
		Status: corev1.PodStatus{Phase: phase},
	}}
}

func TestBrokenPlacementsAreFound(t *testing.T) {
	gang := event{framework: &frameworkv1.Framework{
		ObjectMeta: metav1.ObjectMeta{Name: "fw"},
		Spec:       frameworkv1.FrameworkSpec{Gang: &frameworkv1.GangSpec{}, TaskRoles: []frameworkv1.TaskRoleSpec{{TaskNumber: 2}}},
	}}
	one := int32(1)
	small := event{framework: gang.framework.DeepCopy()}
	small.framework.Spec.Gang.MinMember = &one
	tooMany := []string{"node n has 4000m cores, and with Pod c its Pods request 6000m"}
	inPart := []string{"1 Pods of the gang of Framework fw are placed, and it needs 2"}
	for name, tc := range map[string]struct {
		events            []event
		overfull, partial []string
	}{
		"a node that is full, and a whole gang": {
			events: []event{gang, member("a", "n", ""), member("b", "n", ""), member("b", "n", corev1.PodRunning)},
		},
		"one Pod too many": {
			events:   []event{member("a", "n", ""), member("b", "n", ""), member("c", "n", "")},
			overfull: tooMany,
		},
		"one Pod too many that soon was gone": {
			events:   []event{member("a", "n", ""), member("b", "n", ""), member("c", "n", ""), gone(member("c", "n", ""))},
			overfull: tooMany,
		},
		"room of a Pod that has ended": {
			events: []event{member("a", "n", ""), member("b", "n", ""), member("a", "n", corev1.PodSucceeded), member("c", "n", "")},
		},
		"room of a Pod that is gone": {
			events: []event{member("a", "n", ""), member("b", "n", ""), gone(member("a", "n", "")), member("c", "n", "")},
		},
		"a gang of which one Pod waits":      {events: []event{gang, member("a", "n", ""), member("b", "", "")}, partial: inPart},
		"a gang of which one Pod is gone":    {events: []event{gang, member("a", "n", ""), member("b", "n", ""), gone(member("b", "n", ""))}, partial: inPart},
		"a gang that waits":                  {events: []event{gang, member("a", "", ""), member("b", "", "")}},
		"a gang that needs one Pod only":     {events: []event{small, member("a", "n", ""), member("b", "", "")}},
		"a gang of a Framework that is gone": {events: []event{gang, member("a", "n", ""), gone(gang)}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := overfullNodes(tc.events, map[string]int64{"n": 4000}); !slices.Equal(got, tc.overfull) {
				t.Errorf("nodes: %q, want %q", got, tc.overfull)
			}
			if got := partialGangs(tc.events); !slices.Equal(got, tc.partial) {
				t.Errorf("gangs: %q, want %q", got, tc.partial)
			}
		})
	}
}
