// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package news

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// TestFewMembersAreToldThatTheyAreNotBound, though many are bound one after the other.
func TestFewMembersAreToldThatTheyAreNotBound(t *testing.T) {
	gang := gangOf()
	for i := range 50 {
		name := fmt.Sprintf("pod-%02d", i)
		gang.Slow = append(gang.Slow, SlowMember{Pod: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)}}})
	}
	events := 0
	for ; len(gang.Slow) > 0; gang.Slow = gang.Slow[1:] {
		warnings := gang.Warnings()
		events += len(warnings)
		gang.Record.Warned(warnings)
	}
	if events != maxSlowTold {
		t.Errorf("%d events, want %d", events, maxSlowTold)
	}
}
