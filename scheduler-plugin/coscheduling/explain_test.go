// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestAGangIsToldOfTheMemberThatNoNodeAdmits, also when it is not its first one.
func TestAGangIsToldOfTheMemberThatNoNodeAdmits(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, slices.Concat(makeNodes("node", 2, 8), makeMembers("gang", 1))...)
		w.create(makePod("gang-picky", inGroup("gang"), selecting("disk", "ssd")))
		w.create(makeGroup("gang", 2))
		w.start()
		const want = "there is room for 1 of the 2 members that are needed; 0 of 2 nodes admit them: 2 node(s) didn't match Pod's node affinity/selector"
		if got := w.condition("gang", metav1.ConditionTrue, "NotEnoughResources").Message; !strings.HasPrefix(got, want) {
			t.Errorf("the gang is told\n%s\nwant\n%s", got, want)
		}
	})
}
