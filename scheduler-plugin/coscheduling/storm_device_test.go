// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	resourcev1client "k8s.io/client-go/kubernetes/typed/resource/v1"
	clienttesting "k8s.io/client-go/testing"
	schedulertesting "k8s.io/kubernetes/pkg/scheduler/testing"
	"k8s.io/utils/ptr"
)

// Each node of a storm has some devices. Each member of some gangs has a claim on one from a
// template, as some ordinary Pods have, and the members of some gangs share one. The history
// stands in for the controller of claims, too: it makes them, tells Pods their names, clears
// reservations of Pods that are gone, and with the last one the allocation.

const devicesPerNode = 2

var sliceResource = resourcev1.SchemeGroupVersion.WithResource("resourceslices")

func (h *history) addDevices(node string) {
	slice := devices(node, devicesPerNode).(*resourcev1.ResourceSlice)
	slice.ResourceVersion = h.version()
	if err := h.kube.Tracker().Create(sliceResource, slice, ""); err != nil {
		panic(err)
	}
}

func (h *history) removeDevices(node string) {
	h.wires.bury(sliceResource, "", devices(node, 0).(*resourcev1.ResourceSlice).Name)
}

// addDeviceClaim makes a claim on a device, for a Pod unless that is nil.
func (h *history) addDeviceClaim(name, group string, pod *corev1.Pod) {
	claim := deviceClaims(name)[0].(*resourcev1.ResourceClaim)
	claim.ResourceVersion = h.version()
	claim.UID = types.UID("uid-of-claim-" + claim.ResourceVersion)
	if pod != nil {
		ofPod(claim, pod)
	}
	h.deviceClaims[name] = group
	if err := h.kube.Tracker().Create(deviceClaimResource, claim, testNamespace); err != nil {
		panic(err)
	}
}

// tellClaim makes the claim of a Pod from its template and tells the Pod, if it is still there.
func (h *history) tellClaim(p *stormPod) {
	if h.pods[p.name] != p || p.deleting {
		return
	}
	object, err := h.kube.Tracker().Get(podResource, testNamespace, p.name)
	if err != nil {
		panic(err)
	}
	p.claim = p.name + "-device-" + h.version()
	h.addDeviceClaim(p.claim, p.group, object.(*corev1.Pod))
	h.updatePod(p.name, func(pod *corev1.Pod) { pod.Status = withClaimNamed(pod, p.claim).Status })
}

// giveClaim has a Pod's claim be made, now or a moment later.
func (s *storm) giveClaim(p *stormPod) {
	if s.random.IntN(3) > 0 {
		s.tellClaim(p)
		return
	}
	s.leaving++
	time.AfterFunc(time.Duration(1+s.random.IntN(3))*time.Millisecond, func() {
		s.kube.Lock()
		defer s.kube.Unlock()
		s.leaving--
		s.tellClaim(p)
	})
}

// withSharedClaimOf has a member use the claim that all of its gang use.
func withSharedClaimOf(name string) podOption {
	return func(w *schedulertesting.PodWrapper) {
		w.PodResourceClaims(corev1.PodResourceClaim{Name: "device", ResourceClaimName: ptr.To(name)})
	}
}

func (h *history) deviceClaim(name string) *resourcev1.ResourceClaim {
	object, err := h.kube.Tracker().Get(deviceClaimResource, testNamespace, name)
	if err != nil {
		return nil
	}
	return object.(*resourcev1.ResourceClaim)
}

// storeClaim stores a claim as a new version. Reservations of Pods that are gone are cleared.
func (h *history) storeClaim(claim *resourcev1.ResourceClaim) *resourcev1.ResourceClaim {
	store := func(claim *resourcev1.ResourceClaim) {
		claim.ResourceVersion = h.version()
		if err := h.kube.Tracker().Update(deviceClaimResource, claim.DeepCopy(), testNamespace); err != nil {
			panic(err)
		}
	}
	store(claim)
	swept := claim.DeepCopy()
	swept.Status.ReservedFor = slices.DeleteFunc(swept.Status.ReservedFor, func(by resourcev1.ResourceClaimConsumerReference) bool {
		return !slices.ContainsFunc(h.allPods(), func(p stormPod) bool { return p.uid == by.UID && !p.succeeded })
	})
	if len(swept.Status.ReservedFor) < len(claim.Status.ReservedFor) {
		if len(swept.Status.ReservedFor) == 0 {
			h.logf("the allocation of %s is cleared", claim.Name)
			swept.Status.Allocation = nil
		}
		store(swept)
	}
	return claim
}

// releaseDevices clears the reservation of a Pod that has ended, and deletes the claim that was
// made for it if it is gone.
func (h *history) releaseDevices(p *stormPod) {
	claim := h.deviceClaim(p.claim)
	if claim == nil {
		return
	}
	h.storeClaim(claim.DeepCopy())
	if p.wantsDevice && h.pods[p.name] != p {
		delete(h.deviceClaims, p.claim)
		h.wires.bury(deviceClaimResource, testNamespace, p.claim)
	}
}

// deviceOf is the device of a claim, and its node; empty if it has none.
func deviceOf(claim *resourcev1.ResourceClaim) (node, device string) {
	if claim == nil || claim.Status.Allocation == nil {
		return "", ""
	}
	result := claim.Status.Allocation.Devices.Results[0]
	return result.Pool, result.Device
}

// onClaim takes the scheduler's allocation, reservation or release of a claim.
func (h *history) onClaim(action clienttesting.Action) (bool, apiruntime.Object, error) {
	wants := action.(clienttesting.UpdateAction).GetObject().(*resourcev1.ResourceClaim)
	stored := h.deviceClaim(wants.Name)
	if stored == nil {
		return true, nil, apierrors.NewNotFound(deviceClaimResource.GroupResource(), wants.Name)
	}
	group := h.deviceClaims[wants.Name]
	if wants.UID != stored.UID || wants.ResourceVersion != stored.ResourceVersion {
		h.excuse(group)
		return true, nil, apierrors.NewConflict(deviceClaimResource.GroupResource(), wants.Name, errors.New("it has changed"))
	}
	claim := stored.DeepCopy()
	if action.GetSubresource() != "status" {
		claim.Finalizers = wants.Finalizers
		return true, h.storeClaim(claim), nil
	}
	if wants.Status.Allocation == nil && len(wants.Status.ReservedFor) > 0 {
		h.excuse(group)
		return true, nil, apierrors.NewForbidden(deviceClaimResource.GroupResource(), wants.Name, errors.New("it is reserved, and has no device"))
	}
	hadNode, had := deviceOf(stored)
	hasNode, has := deviceOf(wants)
	switch {
	case had == has && hadNode == hasNode:
		h.logf("%s is reserved for %d", claim.Name, len(wants.Status.ReservedFor))
	case had != "" && has != "":
		h.violated("%s has %s of %s, and gets %s of %s", claim.Name, had, hadNode, has, hasNode)
	case has != "":
		h.logf("%s gets %s of %s", claim.Name, has, hasNode)
		for name := range h.deviceClaims {
			if node, device := deviceOf(h.deviceClaim(name)); name != claim.Name && node == hasNode && device == has {
				h.violated("%s gets %s of %s, which %s has", claim.Name, has, hasNode, name)
			}
		}
	default:
		h.logf("%s gives %s of %s back", claim.Name, had, hadNode)
		for _, p := range h.allPods() {
			if p.claim == claim.Name && p.runs() && !p.deleting {
				h.violated("%s gives its device back, which %s uses", claim.Name, p.name)
			}
		}
	}
	claim.Status = *wants.Status.DeepCopy()
	return true, h.storeClaim(claim), nil
}

// onClaimPatch takes the scheduler's removal of a reservation, which it patches.
func (h *history) onClaimPatch(action clienttesting.Action) (bool, apiruntime.Object, error) {
	patch := action.(clienttesting.PatchAction)
	var removes struct {
		Status struct {
			ReservedFor []struct{ UID types.UID }
		}
	}
	if err := json.Unmarshal(patch.GetPatch(), &removes); err != nil || len(removes.Status.ReservedFor) != 1 {
		panic(fmt.Sprintf("the patch %s of a claim: %v", patch.GetPatch(), err))
	}
	stored := h.deviceClaim(patch.GetName())
	if stored == nil {
		return true, nil, apierrors.NewNotFound(deviceClaimResource.GroupResource(), patch.GetName())
	}
	h.logf("%s is not reserved any more for %s", stored.Name, removes.Status.ReservedFor[0].UID)
	claim := stored.DeepCopy()
	claim.Status.ReservedFor = slices.DeleteFunc(claim.Status.ReservedFor, func(by resourcev1.ResourceClaimConsumerReference) bool {
		return by.UID == removes.Status.ReservedFor[0].UID
	})
	return true, h.storeClaim(claim), nil
}

// judgeDevice holds the binding of a Pod against its claim. If the claim is not reserved for it,
// that is done now, as the controller of claims does it.
func (h *history) judgeDevice(p *stormPod) {
	if p.claim == "" && !p.wantsDevice {
		return
	}
	claim := h.deviceClaim(p.claim)
	node, device := deviceOf(claim)
	switch {
	case device == "":
		h.violated("%s was bound to %s without a device", p.name, p.node)
	case node != p.node:
		h.violated("%s was bound to %s, and its device is of %s", p.name, p.node, node)
	case !slices.ContainsFunc(claim.Status.ReservedFor, func(by resourcev1.ResourceClaimConsumerReference) bool { return by.UID == p.uid }):
		claim = claim.DeepCopy()
		claim.Status.ReservedFor = append(claim.Status.ReservedFor, resourcev1.ResourceClaimConsumerReference{Resource: "pods", Name: p.name, UID: p.uid})
		h.storeClaim(claim)
	}
}

// freeDevices is how many devices of a node nobody has.
func (h *history) freeDevices(node string) int {
	free := devicesPerNode
	for name := range h.deviceClaims {
		if on, _ := deviceOf(h.deviceClaim(name)); on == node {
			free--
		}
	}
	return max(0, free)
}

// hasDevice says whether a node has a device for a Pod that waits.
func (h *history) hasDevice(p *stormPod, node string) bool {
	if p.claim == "" && !p.wantsDevice {
		return true
	}
	if on, device := deviceOf(h.deviceClaim(p.claim)); device != "" {
		return on == node
	}
	return h.freeDevices(node) > 0
}

// roomWithDevices is room for a group whose members each need a device, or share one. Room
// are the members that there is room for on each node, devices aside.
func (s *storm) roomWithDevices(g *stormGroup, room map[string]int) int {
	sum, most := 0, 0
	on, shared := deviceOf(s.deviceClaim(g.sharedClaim()))
	for node, n := range room {
		sum += min(n, s.freeDevices(node))
		if shared == "" && s.freeDevices(node) > 0 || on == node {
			most = max(most, n)
		}
	}
	if g.shares {
		return most
	}
	return sum
}

// hoarded: a gang that waits holds no devices, unless room is kept for it.
func (s *storm) hoarded() string {
	for _, g := range s.sortedGroups() {
		if s.engine().room.Of(s.rank(g).Key) != nil {
			continue
		}
		for _, p := range s.allPods() {
			claim := s.deviceClaim(p.claim)
			if _, device := deviceOf(claim); p.group != g.Name || !p.waits() || device == "" {
				continue
			}
			if !slices.ContainsFunc(s.allPods(), func(other stormPod) bool { return other.claim == p.claim && other.runs() }) {
				return fmt.Sprintf("%s waits, and has a device", p.name)
			}
		}
	}
	return ""
}

// unseenDevices says which claim or device the scheduler does not know as it is.
func (s *storm) unseenDevices() string {
	manager := anyPlugin(s.engine().plugins).handle.SharedDRAManager()
	claims, err := manager.ResourceClaims().List()
	if err != nil || len(claims) != len(s.deviceClaims) {
		return fmt.Sprintf("%d claims on devices are seen of %d (%v)", len(claims), len(s.deviceClaims), err)
	}
	for _, claim := range claims {
		if stored := s.deviceClaim(claim.Name); stored == nil || stored.ResourceVersion != claim.ResourceVersion {
			return fmt.Sprintf("claim %s is not seen as it is", claim.Name)
		}
		if manager.ResourceClaims().GetPendingAllocation(claim.UID) != nil {
			return fmt.Sprintf("a device is set aside for claim %s", claim.Name)
		}
	}
	slices, err := manager.ResourceSlices().ListWithDeviceTaintRules()
	if err != nil || len(slices) != len(s.nodes) {
		return fmt.Sprintf("the devices of %d nodes are seen of %d (%v)", len(slices), len(s.nodes), err)
	}
	return ""
}

func (m mortal) ResourceV1() resourcev1client.ResourceV1Interface {
	return mortalResources{timely{m.Interface}.ResourceV1(), m.process}
}

type mortalResources struct {
	resourcev1client.ResourceV1Interface
	process *process
}

func (m mortalResources) ResourceClaims(namespace string) resourcev1client.ResourceClaimInterface {
	return mortalClaims{m.ResourceV1Interface.ResourceClaims(namespace), m.process}
}

type mortalClaims struct {
	resourcev1client.ResourceClaimInterface
	process *process
}

func (m mortalClaims) Update(ctx context.Context, claim *resourcev1.ResourceClaim, opts metav1.UpdateOptions) (*resourcev1.ResourceClaim, error) {
	return whileAlive(m.process, func() (*resourcev1.ResourceClaim, error) {
		return m.ResourceClaimInterface.Update(ctx, claim, opts)
	})
}

func (m mortalClaims) UpdateStatus(ctx context.Context, claim *resourcev1.ResourceClaim, opts metav1.UpdateOptions) (*resourcev1.ResourceClaim, error) {
	return whileAlive(m.process, func() (*resourcev1.ResourceClaim, error) {
		return m.ResourceClaimInterface.UpdateStatus(ctx, claim, opts)
	})
}

func (m mortalClaims) Patch(ctx context.Context, name string, pt types.PatchType, data []byte, opts metav1.PatchOptions,
	subresources ...string) (*resourcev1.ResourceClaim, error) {
	return whileAlive(m.process, func() (*resourcev1.ResourceClaim, error) {
		return m.ResourceClaimInterface.Patch(ctx, name, pt, data, opts, subresources...)
	})
}
