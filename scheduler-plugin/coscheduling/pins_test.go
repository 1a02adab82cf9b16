// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/component-helpers/storage/volume"
	schedulertesting "k8s.io/kubernetes/pkg/scheduler/testing"
)

// TestMembersGoWhereTheirVolumesAre: after a crash, say, the volumes of some members are
// bound to nodes and those of others are not. The first member does not speak for the
// others.
func TestMembersGoWhereTheirVolumesAre(t *testing.T) {
	tests := map[string]struct {
		option podOption
		claim  func(pod *corev1.Pod, claim *corev1.PersistentVolumeClaim)
	}{
		"volumes that the Pods name": {
			option: withVolumeClaim,
			claim:  func(*corev1.Pod, *corev1.PersistentVolumeClaim) {},
		},
		"volumes that are made from the Pods": {
			option: func(p *schedulertesting.PodWrapper) {
				p.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{}}}}
			},
			claim: func(pod *corev1.Pod, claim *corev1.PersistentVolumeClaim) {
				claim.Name += "-data"
				claim.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(pod, corev1.SchemeGroupVersion.WithKind("Pod"))}
			},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				members := makeMembers("gang", 3, tc.option)
				objects := all(makeNodes("node", 3, 1), makeGroup("gang", 3), members, localClass(), localVolume("node-1"))
				for i, object := range volumeClaims("gang", 3) {
					claim := object.(*corev1.PersistentVolumeClaim)
					tc.claim(members[i].(*corev1.Pod), claim)
					objects = append(objects, claim)
					if node := map[int]string{0: "node-2", 1: "node-0"}[i]; node != "" {
						objects = append(objects, boundTo(claim, localVolume(node)))
					}
				}
				w := newWorld(t, objects...)
				w.completeVolumes()
				w.start()
				w.eventually("the gang is placed", func() bool { return w.placed("gang") == 3 })
				if nodes := w.nodeOf(); nodes["gang-0"] != "node-2" || nodes["gang-1"] != "node-0" {
					t.Errorf("the members are on %v, want those with a volume where it is", nodes)
				}
			})
		})
	}
}

// boundTo binds a claim to a volume, and returns the volume.
func boundTo(claim *corev1.PersistentVolumeClaim, object apiruntime.Object) apiruntime.Object {
	pv := object.(*corev1.PersistentVolume)
	claim.Spec.VolumeName, claim.Status.Phase = pv.Name, corev1.ClaimBound
	metav1.SetMetaDataAnnotation(&claim.ObjectMeta, volume.AnnBindCompleted, "yes")
	pv.Spec.ClaimRef = &corev1.ObjectReference{Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID}
	pv.Status.Phase = corev1.VolumeBound
	return pv
}
