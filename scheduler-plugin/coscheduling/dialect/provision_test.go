// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/provision"
)

// TestWhatAGroupSaysOfItsMembersToCome, by a field of its dialect and by annotations.
func TestWhatAGroupSaysOfItsMembersToCome(t *testing.T) {
	const timeout, members = "scheduling.lockstep.dev/reservation-timeout", "scheduling.lockstep.dev/expected-members"
	cpu := provision.Amounts{"cpu": 13000}
	tests := map[string]struct {
		resources   provision.Amounts
		timeout     time.Duration
		annotations map[string]string
		want        Provision
	}{
		"nothing":                            {nil, time.Minute, map[string]string{members: "7"}, Provision{}},
		"resources":                          {cpu, 0, nil, Provision{Resources: cpu}},
		"a field and an annotation":          {cpu, time.Minute, map[string]string{timeout: "1s"}, Provision{Resources: cpu, Timeout: time.Minute}},
		"an annotation":                      {cpu, 0, map[string]string{timeout: "90s", members: "7"}, Provision{Resources: cpu, Timeout: 90 * time.Second, Members: 7}},
		"a negative time, and nobody":        {cpu, 0, map[string]string{timeout: "-90s", members: "-7"}, Provision{Resources: cpu}},
		"what can't be read":                 {cpu, 0, map[string]string{timeout: "soon", members: "some"}, Provision{Resources: cpu}},
		"more members than anybody may have": {cpu, 0, map[string]string{members: "1000001"}, Provision{Resources: cpu}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, provisionOf(tc.resources, tc.timeout, tc.annotations)); diff != "" {
				t.Errorf("-want, +got:\n%s", diff)
			}
		})
	}
	pod := &corev1.Pod{}
	if SizeOn(pod) != 0 {
		t.Error("a Pod that says nothing has a size")
	}
	pod.Annotations = map[string]string{"leaderworkerset.sigs.k8s.io/size": "4"}
	if got := SizeOn(pod); got != 4 {
		t.Errorf("the size that a LeaderWorkerSet says is %d, want 4", got)
	}
}

// TestWhatTheAnnotationsOfGroupsOfOtherToolsSay: their kinds have no fields for it.
func TestWhatTheAnnotationsOfGroupsOfOtherToolsSay(t *testing.T) {
	for name, read := range map[string]func(*unstructured.Unstructured) *Group{"scheduling.x-k8s.io/v1alpha1": FromSchedulerPlugins, "scheduling.volcano.sh/v1beta1": FromVolcano(nil)} {
		t.Run(name, func(t *testing.T) {
			said := object(t, `{"apiVersion": "`+name+`", "kind": "PodGroup", "metadata": {"name": "g", "annotations": {
				"scheduling.lockstep.dev/staged": "true", "scheduling.lockstep.dev/expected-members": "7", "scheduling.lockstep.dev/reservation-timeout": "5m"}},
				"spec": {"minMember": 2, "minResources": {"cpu": "3"}}}`)
			got := read(said).Spec
			want := Provision{Resources: provision.Amounts{"cpu": 3000}, Timeout: 5 * time.Minute, Members: 7}
			if diff := cmp.Diff(want, got.Provision); diff != "" || !got.Staged {
				t.Errorf("it is in stages: %t; of members to come (-want, +got):\n%s", got.Staged, diff)
			}
			said.SetAnnotations(nil)
			want = Provision{Resources: provision.Amounts{"cpu": 3000}}
			if got := read(said).Spec; got.Staged || !cmp.Equal(want, got.Provision) {
				t.Errorf("without annotations it asks for %+v", got)
			}
		})
	}
}

// TestAnotherProvisionIsNews: room for it is sought anew.
func TestAnotherProvisionIsNews(t *testing.T) {
	for name, other := range map[string]Provision{
		"resources": {Resources: provision.Amounts{"cpu": 2}},
		"members":   {Resources: provision.Amounts{"cpu": 1}, Members: 1},
		"timeout":   {Resources: provision.Amounts{"cpu": 1}, Timeout: 1},
	} {
		before, after := Spec{Provision: Provision{Resources: provision.Amounts{"cpu": 1}}}, Spec{Provision: other}
		if before.Equal(&after) {
			t.Errorf("other %s are taken for the same", name)
		}
	}
}
