// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package place

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/gangs"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/provision"
)

// TestANamespaceHasRoomKeptForSoManyGroups: one more waits if it is strict, and starts with nothing kept if
// it is not.
func TestANamespaceHasRoomKeptForSoManyGroups(t *testing.T) {
	due := &provision.Due{Terms: provision.Terms{Mode: provision.Strict, Longest: time.Minute, Percent: 100}}
	virtual := &corev1.Pod{}
	virtual.UID = provision.UID("group", 0)
	gang := &Gang{View: gangs.View{Provision: due, Waiting: []*corev1.Pod{virtual}, ClassKeys: []string{"class"}}, virtual: sets.New[types.UID](virtual.UID)}
	full := &Cluster{Providing: maxProviding}
	if got, want := gang.exceeds(full), "room is kept for members to come of 100 groups of its namespace, which are as many as may have that"; got != want {
		t.Errorf("it is told %q, want %q", got, want)
	}
	gang.keepWithin(full)
	if len(gang.Waiting) > 0 || len(gang.ClassKeys) > 0 {
		t.Error("room is sought for it all the same")
	}
}
