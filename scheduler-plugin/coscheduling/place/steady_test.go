// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package place

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	schedulertesting "k8s.io/kubernetes/pkg/scheduler/testing"

	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/room"
)

// placesOf are copies of members on nodes, given as "member@node …".
func placesOf(t *testing.T, members map[string]*corev1.Pod, text string) []*framework.PodInfo {
	t.Helper()
	var places []*framework.PodInfo
	for at := range strings.FieldsSeq(text) {
		name, node, _ := strings.Cut(at, "@")
		pod := members[name].DeepCopy()
		pod.Spec.NodeName = node
		info, err := framework.NewPodInfo(pod)
		if err != nil {
			t.Fatal(err)
		}
		places = append(places, info)
	}
	return places
}

// TestMembersThatAreAlikeKeepTheirNodes: the small members s0 to s3 are alike, as are the
// large ones l0 and l1, but c0 and c1, which have claims, are not.
func TestMembersThatAreAlikeKeepTheirNodes(t *testing.T) {
	tests := map[string]struct {
		nominated map[string]string
		before    string // the reservation; empty for none
		found     string
		want      string
	}{
		"new ones go where they were planned": {found: "s0@a s1@b", want: "s0@a s1@b"},
		"they change places":                  {before: "s0@b s1@a", found: "s0@a s1@b", want: "s0@b s1@a"},
		"only who has to goes elsewhere": {
			before: "s0@a s1@a s2@b", found: "s0@c s1@a s2@a", want: "s0@a s1@a s2@c",
		},
		"who is new has what is left":                 {before: "s0@a s1@b", found: "s2@a s1@b s0@c", want: "s2@c s1@b s0@a"},
		"no more go to a node than there is room for": {before: "s0@a s1@a", found: "s0@b s1@a", want: "s0@a s1@b"},
		"members that differ don't":                   {before: "s0@b l0@a", found: "s0@a l0@b", want: "s0@a l0@b"},
		"nor those with claims":                       {before: "c0@b c1@a", found: "c0@a c1@b", want: "c0@a c1@b"},
		"after a crash they stay where they are nominated": {
			nominated: map[string]string{"s0": "b", "s1": "a"}, found: "s0@a s1@b", want: "s0@b s1@a",
		},
		"the reservation is newer than what was written": {
			nominated: map[string]string{"s0": "a", "s1": "b"}, before: "s0@b s1@a", found: "s0@a s1@b", want: "s0@b s1@a",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			members := make(map[string]*corev1.Pod)
			var waiting []*corev1.Pod
			for _, name := range []string{"s0", "s1", "s2", "s3", "l0", "l1", "c0", "c1"} {
				members[name] = pod(name, func(w *schedulertesting.PodWrapper) {
					switch name[0] {
					case 'l':
						w.Req(map[corev1.ResourceName]string{"cpu": "4"})
					case 'c':
						w.PVC("claim-of-" + name)
					}
					w.NominatedNodeName(tc.nominated[name])
				})
				waiting = append(waiting, members[name])
			}
			var before *room.Reservation
			if tc.before != "" {
				before = room.New(room.Gang{}, room.Preemption, placesOf(t, members, tc.before), nil, time.Time{})
			}
			steadied, err := steady(gangOf(waiting...), placesOf(t, members, tc.found), before)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, info := range steadied {
				got = append(got, info.Pod.Name+"@"+info.Pod.Spec.NodeName)
			}
			if diff := cmp.Diff(tc.want, strings.Join(got, " ")); diff != "" {
				t.Errorf("places (-want, +got):\n%s", diff)
			}
		})
	}
}
