// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package place

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	schedulertesting "k8s.io/kubernetes/pkg/scheduler/testing"
)

// TestMembersWithClaimsOfTheirOwnAreAlike: they cost one look at all nodes. But one gang of
// them learns nothing from another.
func TestMembersWithClaimsOfTheirOwnAreAlike(t *testing.T) {
	withVolume := func(p *schedulertesting.PodWrapper) { p.PVC(p.Obj().Name) }
	withDevice := func(p *schedulertesting.PodWrapper) {
		p.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimName: &p.Pod.Name}}
	}
	for name, option := range map[string]func(*schedulertesting.PodWrapper){"volumes": withVolume, "devices": withDevice} {
		a, b := pod("gang-0", option), pod("gang-1", option)
		if ClassKey(a, "") != ClassKey(b, "") {
			t.Errorf("members that differ only in the names of their %s are of different classes", name)
		}
		if gangOf(a, b).Shape() != "" {
			t.Errorf("a gang with %s of its own is taken to be like others", name)
		}
	}
}
