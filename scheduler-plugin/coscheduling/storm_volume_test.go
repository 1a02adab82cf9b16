// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/component-helpers/storage/volume"
)

// Each node of a storm has some local volumes, and each member of some gangs has a claim on
// one. The scheduler chooses it, and from then on the member has its place there, whatever
// becomes of its binding. The claim goes with its Pod, unless that is made anew.

const volumesPerNode = 2

var (
	claimResource  = corev1.SchemeGroupVersion.WithResource("persistentvolumeclaims")
	volumeResource = corev1.SchemeGroupVersion.WithResource("persistentvolumes")
)

// stormVolume is a local volume. Claim is empty for one that is free.
type stormVolume struct{ node, claim string }

func (h *history) addVolumes(node string) {
	for i := range volumesPerNode {
		pv := localVolume(node).(*corev1.PersistentVolume)
		pv.Name = fmt.Sprintf("volume-%s-%d", node, i)
		pv.ResourceVersion = h.version()
		h.volumes[pv.Name] = &stormVolume{node: node}
		if err := h.kube.Tracker().Create(volumeResource, pv, ""); err != nil {
			panic(err)
		}
	}
}

// addClaim makes the claim of a Pod, unless there is one from a Pod of its name before.
func (h *history) addClaim(pod string) {
	if h.claims[pod] {
		return
	}
	h.claims[pod] = true
	claim := volumeClaims(pod, 1)[0].(*corev1.PersistentVolumeClaim)
	claim.Name, claim.ResourceVersion = pod, h.version()
	claim.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	if err := h.kube.Tracker().Create(claimResource, claim, testNamespace); err != nil {
		panic(err)
	}
}

// removeClaim deletes the claim of a Pod that is gone, and lets others have its volume.
func (h *history) removeClaim(pod string) {
	if !h.claims[pod] {
		return
	}
	delete(h.claims, pod)
	h.wires.bury(claimResource, testNamespace, pod)
	for name, v := range h.volumes {
		if v.claim == pod {
			v.claim = ""
			h.updateVolume(name, func(pv *corev1.PersistentVolume) { pv.Spec.ClaimRef, pv.Status.Phase = nil, corev1.VolumeAvailable })
		}
	}
}

func (h *history) updateVolume(name string, change func(*corev1.PersistentVolume)) *corev1.PersistentVolume {
	object, err := h.kube.Tracker().Get(volumeResource, "", name)
	if err != nil {
		panic(err)
	}
	pv := object.(*corev1.PersistentVolume).DeepCopy()
	change(pv)
	pv.ResourceVersion = h.version()
	if err := h.kube.Tracker().Update(volumeResource, pv, ""); err != nil {
		panic(err)
	}
	return pv
}

// onVolume takes the scheduler's choice of a volume for a claim, and binds the two as the
// controller of volumes does.
func (h *history) onVolume(action clienttesting.Action) (bool, apiruntime.Object, error) {
	chosen := action.(clienttesting.UpdateAction).GetObject().(*corev1.PersistentVolume)
	ref, v := chosen.Spec.ClaimRef, h.volumes[chosen.Name]
	switch {
	case ref == nil:
		return true, chosen, nil
	case v.claim != "" && v.claim != ref.Name, !h.claims[ref.Name], h.volumeOf(ref.Name) != nil:
		return true, nil, apierrors.NewConflict(volumeResource.GroupResource(), chosen.Name, errors.New("the volume or the claim is taken"))
	}
	v.claim = ref.Name
	h.logf("%s is bound to %s", ref.Name, chosen.Name)
	if p := h.pods[ref.Name]; p != nil && h.nodes[v.node] == nil {
		h.excuse(p.group) // the scheduler does not know yet that the node is gone, and the claim is bound for good
	}
	pv := h.updateVolume(chosen.Name, func(pv *corev1.PersistentVolume) { pv.Spec.ClaimRef, pv.Status.Phase = ref, corev1.VolumeBound })
	object, err := h.kube.Tracker().Get(claimResource, testNamespace, ref.Name)
	if err != nil {
		return true, nil, err
	}
	claim := object.(*corev1.PersistentVolumeClaim).DeepCopy()
	claim.Spec.VolumeName, claim.Status.Phase, claim.ResourceVersion = chosen.Name, corev1.ClaimBound, h.version()
	metav1.SetMetaDataAnnotation(&claim.ObjectMeta, volume.AnnBindCompleted, "yes")
	return true, pv, h.kube.Tracker().Update(claimResource, claim, testNamespace)
}

// volumeOf is the volume of a Pod's claim, nil if it has none.
func (h *history) volumeOf(pod string) *stormVolume {
	for _, v := range h.volumes {
		if v.claim == pod {
			return v
		}
	}
	return nil
}

// freeVolumes is how many volumes of a node nobody has.
func (h *history) freeVolumes(node string) int {
	n := 0
	for _, v := range h.volumes {
		if v.node == node && v.claim == "" {
			n++
		}
	}
	return n
}

// unseenVolumes says which claim or volume the scheduler's informers do not know as it is.
func (s *storm) unseenVolumes() string {
	informers := anyPlugin(s.engine().plugins).handle.SharedInformerFactory().Core().V1()
	claims, err := informers.PersistentVolumeClaims().Lister().List(labels.Everything())
	if err != nil || len(claims) != len(s.claims) {
		return fmt.Sprintf("%d claims are seen of %d (%v)", len(claims), len(s.claims), err)
	}
	for _, claim := range claims {
		if !s.claims[claim.Name] || (claim.Spec.VolumeName != "") != (s.volumeOf(claim.Name) != nil) {
			return fmt.Sprintf("claim %s is not seen as it is", claim.Name)
		}
	}
	volumes, err := informers.PersistentVolumes().Lister().List(labels.Everything())
	if err != nil || len(volumes) != len(s.volumes) {
		return fmt.Sprintf("%d volumes are seen of %d (%v)", len(volumes), len(s.volumes), err)
	}
	for _, pv := range volumes {
		if ref := pv.Spec.ClaimRef; (ref != nil) != (s.volumes[pv.Name].claim != "") {
			return fmt.Sprintf("volume %s is not seen as it is", pv.Name)
		}
	}
	return ""
}

// admits is how many members of a group a node admits, whatever room it has.
func (s *storm) admits(g *stormGroup, node string) int {
	const many = 1000
	if !g.apart {
		return many
	}
	if slices.ContainsFunc(s.allPods(), func(p stormPod) bool { return p.group == g.Name && p.runs() && p.node == node }) {
		return 0
	}
	return 1
}

// lacksPs reports whether a group can't have its minimum of role ps, if at most some members of that role without a volume
// get one. Those that have a volume are left aside: whether they have their place depends on where that volume is.
func (s *storm) lacksPs(g *stormGroup, volumes int) bool {
	_, ps, _ := s.tally(g.Name)
	for _, p := range s.pods {
		if p.group == g.Name && p.waits() && p.role == "ps" && s.volumeOf(p.name) == nil && volumes > 0 {
			ps++
			volumes--
		}
	}
	return ps < g.minPs()
}

// roomWithVolumes is room for a group whose members have claims: those with a volume have
// their place where that is, and each of the others takes a volume that is free. Room are
// the members that there is room for on each node, volumes aside.
func (s *storm) roomWithVolumes(g *stormGroup, room map[string]int) int {
	placed, others := 0, 0
	pinned := make(map[string]int)
	for _, p := range s.pods {
		if p.group != g.Name || !p.waits() {
			continue
		}
		if v := s.volumeOf(p.name); v != nil {
			pinned[v.node]++
		} else {
			others++
		}
	}
	left, most := 0, 0
	for node, n := range room {
		here, volumes := min(n, pinned[node]), s.freeVolumes(node)
		placed += here
		left += min(n-here, volumes)
		most += min(n, volumes)
	}
	if s.lacksPs(g, most) {
		return 0
	}
	return placed + min(others, left)
}

func (m mortalCore) PersistentVolumes() corev1client.PersistentVolumeInterface {
	return mortalVolumes{m.CoreV1Interface.PersistentVolumes(), m.process}
}

type mortalVolumes struct {
	corev1client.PersistentVolumeInterface
	process *process
}

func (m mortalVolumes) Update(ctx context.Context, volume *corev1.PersistentVolume, opts metav1.UpdateOptions) (*corev1.PersistentVolume, error) {
	return whileAlive(m.process, func() (*corev1.PersistentVolume, error) {
		return m.PersistentVolumeInterface.Update(ctx, volume, opts)
	})
}
