// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package place

import (
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/storage/ephemeral"
	"k8s.io/dynamic-resource-allocation/resourceclaim"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// Members with the same spec may each have a volume or a device of their own. While none of these is bound, the members
// are alike. A bound one pins its member to some nodes: after a crash, some members may be pinned and others not. So a
// member's class includes what the member is pinned to, but not the names of its claims.

// ownsClaims reports whether a Pod has claims that may pin the Pod to nodes.
func ownsClaims(pod *corev1.Pod) bool {
	for i := range pod.Spec.Volumes {
		if v := &pod.Spec.Volumes[i]; v.PersistentVolumeClaim != nil || v.Ephemeral != nil {
			return true
		}
	}
	return len(pod.Spec.ResourceClaims) > 0
}

// pin is what decides on which nodes a Pod can use one of its claims. Claims with equal pins admit the same nodes.
type pin struct {
	// Missing reports that the claim does not exist yet.
	Missing bool `json:",omitempty"`
	// For a volume claim: before binding, what the claim requests, and the node for which a volume is being
	// provisioned; after binding, the nodes and zones of the volume.
	Class        *string                             `json:",omitempty"`
	Modes        []corev1.PersistentVolumeAccessMode `json:",omitempty"`
	Resources    *corev1.VolumeResourceRequirements  `json:",omitempty"`
	Selector     *metav1.LabelSelector               `json:",omitempty"`
	Mode         *corev1.PersistentVolumeMode        `json:",omitempty"`
	Attributes   *string                             `json:",omitempty"`
	SelectedNode string                              `json:",omitempty"`
	Affinity     *corev1.VolumeNodeAffinity          `json:",omitempty"`
	Zones        map[string]string                   `json:",omitempty"`
	// For a device claim: what the claim requests, whether it is allocated, and on which nodes its devices can be used
	// (nil for all).
	Devices   *resourcev1.DeviceClaim `json:",omitempty"`
	Allocated bool                    `json:",omitempty"`
	Nodes     *corev1.NodeSelector    `json:",omitempty"`
}

// selectedNode is the annotation with which the scheduler names the node for which a volume is to be provisioned.
const selectedNode = "volume.kubernetes.io/selected-node"

// pinsOf returns a key that is equal for Pods of a class that are pinned to the same nodes.
func pinsOf(handle framework.Framework, pod *corev1.Pod) string {
	var pins []pin
	for i := range pod.Spec.Volumes {
		v := &pod.Spec.Volumes[i]
		switch {
		case v.PersistentVolumeClaim != nil:
			pins = append(pins, volumePin(handle, pod.Namespace, v.PersistentVolumeClaim.ClaimName))
		case v.Ephemeral != nil:
			pins = append(pins, volumePin(handle, pod.Namespace, ephemeral.VolumeClaimName(pod, v)))
		}
	}
	for i := range pod.Spec.ResourceClaims {
		name, _, err := resourceclaim.Name(pod, &pod.Spec.ResourceClaims[i])
		if err != nil {
			pins = append(pins, pin{Missing: true})
		} else if name != nil {
			pins = append(pins, devicePin(handle, pod.Namespace, *name))
		}
	}
	data, err := json.Marshal(pins)
	if err != nil {
		return string(pod.UID) // as in ClassKey
	}
	return string(data)
}

func volumePin(handle framework.Framework, namespace, name string) pin {
	core := handle.SharedInformerFactory().Core().V1()
	claim, err := core.PersistentVolumeClaims().Lister().PersistentVolumeClaims(namespace).Get(name)
	if err != nil {
		return pin{Missing: true}
	}
	if claim.Spec.VolumeName == "" {
		return pin{Class: claim.Spec.StorageClassName, Modes: claim.Spec.AccessModes, Resources: &claim.Spec.Resources,
			Selector: claim.Spec.Selector, Mode: claim.Spec.VolumeMode, Attributes: claim.Spec.VolumeAttributesClassName,
			SelectedNode: claim.Annotations[selectedNode]}
	}
	volume, err := core.PersistentVolumes().Lister().Get(claim.Spec.VolumeName)
	if err != nil {
		return pin{Missing: true}
	}
	p := pin{Class: claim.Spec.StorageClassName, Affinity: volume.Spec.NodeAffinity, Zones: map[string]string{}}
	for _, key := range []string{corev1.LabelTopologyZone, corev1.LabelTopologyRegion,
		corev1.LabelFailureDomainBetaZone, corev1.LabelFailureDomainBetaRegion} {
		if zone := volume.Labels[key]; zone != "" {
			p.Zones[key] = zone
		}
	}
	return p
}

func devicePin(handle framework.Framework, namespace, name string) pin {
	manager := handle.SharedDRAManager()
	if manager == nil {
		return pin{Missing: true}
	}
	claim, err := manager.ResourceClaims().Get(namespace, name)
	if err != nil {
		return pin{Missing: true}
	}
	p := pin{Devices: &claim.Spec.Devices}
	if claim.Status.Allocation != nil {
		p.Allocated, p.Nodes = true, claim.Status.Allocation.NodeSelector
	}
	return p
}
