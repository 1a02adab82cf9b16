// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	resourcehelper "k8s.io/component-helpers/resource"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/dynamic-resource-allocation/resourceclaim"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	schedulerutil "k8s.io/kubernetes/pkg/scheduler/util"
)

// Pods that are placed together may share a ResourceClaim without a device. The scheduler places each Pod as if that
// Pod wrote the allocation into the claim. DynamicResources lets only the first Pod write, and fails the others; and if
// the claim loses its device in between, another Pod would write the same device again, even if another claim has got
// the device. So the first Pod goes ahead, and the others then look at the claim again. The devices that were chosen
// for other claims stay chosen.

// sharedClaim is a claim that several placements share.
type sharedClaim struct {
	name string
	// turn is a lock: a placement that may have to write the claim's device puts an element into it while PreBind runs,
	// and the other placements that share the claim wait.
	turn chan struct{}
	// written reports that the device was written. turn guards it.
	written bool
}

// group is the state that plugins share between the placements of a cycle. In the cycle they are called for one
// placement after the other, and need no lock.
type group struct {
	state fwk.PodGroupCycleState
	lock  *sync.Mutex
}

// Part makes a placement independent of the other placements of its cycle: from then on, plugins no longer share state
// between them.
func Part(p *Placement) {
	if state, ok := p.State.(*framework.CycleState); ok {
		p.group.state = state.GetPodGroupSchedulingCycle()
		state.SetPodGroupSchedulingCycle(nil)
	}
}

// PendingClaimsLast returns the Pod with its claims reordered: claims for which the gang has already chosen a device
// come last. The caller passes this Pod to the PreFilter of DynamicResources. The plugin's Filter chooses devices for
// the other claims, and lists these devices first. Its Reserve assumes that the devices are listed in the order of the
// claims.
func PendingClaimsLast(profile framework.Framework, pod *corev1.Pod) *corev1.Pod {
	if len(pod.Spec.ResourceClaims) < 2 {
		return pod
	}
	var first, last []corev1.PodResourceClaim
	for i := range pod.Spec.ResourceClaims {
		claim := pod.Spec.ResourceClaims[i]
		if name, _, err := resourceclaim.Name(pod, &claim); err == nil && name != nil && isPending(profile, pod.Namespace, *name) {
			last = append(last, claim)
		} else {
			first = append(first, claim)
		}
	}
	if len(last) == 0 || len(first) == 0 {
		return pod
	}
	sorted := *pod
	sorted.Spec.ResourceClaims = append(first, last...)
	return &sorted
}

// MayShare reports whether DynamicResources can place a Pod together with others that share its claims. It can't if the
// Pod also requests extended resources that DeviceClasses provide. The claim for these resources always comes last (see
// PendingClaimsLast), so it would get the device of another claim.
func MayShare(profile framework.Framework, pod *corev1.Pod) *fwk.Status {
	if len(pod.Spec.ResourceClaims) == 0 || profile.SharedDRAManager() == nil {
		return nil
	}
	for _, claim := range claimNames(pod) {
		if !isPending(profile, pod.Namespace, claim) {
			continue
		}
		if names := extendedByDevices(profile, pod); len(names) > 0 {
			return fwk.NewStatus(fwk.Unschedulable, fmt.Sprintf("members that request %s can't share the ResourceClaim %s before it has a device", strings.Join(names, ", "), claim)).
				WithPlugin(DynamicResources)
		}
	}
	return nil
}

// ShareClaims makes placements that share a ResourceClaim which is not allocated yet be bound one after the other. Call
// it before any of them is bound.
func ShareClaims(placements []*Placement) {
	lock := new(sync.Mutex)
	claims := make(map[string]*sharedClaim)
	sharers := make(map[string][]*Placement)
	for _, p := range placements {
		p.group.lock = lock
		for _, name := range claimNames(p.Pod) {
			key := p.Pod.Namespace + "/" + name
			if claims[key] == nil {
				claims[key] = &sharedClaim{name: name, turn: make(chan struct{}, 1)}
			}
			sharers[key] = append(sharers[key], p)
		}
	}
	for key, by := range sharers {
		if len(by) < 2 || isAllocated(by[0].Profile, by[0].Pod.Namespace, claims[key].name) {
			continue
		}
		for _, p := range by {
			p.shared = append(p.shared, claims[key])
		}
	}
	for _, p := range placements { // one order for all, so that there is no deadlock
		slices.SortFunc(p.shared, func(a, b *sharedClaim) int { return strings.Compare(a.name, b.name) })
	}
}

// isAllocated reports whether a claim has a device.
func isAllocated(profile framework.Framework, namespace, claim string) bool {
	manager := profile.SharedDRAManager()
	if manager == nil {
		return true // nothing allocates a device for the claim
	}
	found, err := manager.ResourceClaims().Get(namespace, claim)
	return err == nil && found.Status.Allocation != nil
}

// isPending reports whether a device is chosen for a claim, but not written yet.
func isPending(profile framework.Framework, namespace, claim string) bool {
	manager := profile.SharedDRAManager()
	if manager == nil {
		return false
	}
	found, err := manager.ResourceClaims().Get(namespace, claim)
	return err == nil && found.Status.Allocation == nil && manager.ResourceClaims().GetPendingAllocation(found.UID) != nil
}

// preBind runs the PreBind plugins. If the placement shares claims with others, it first waits until no other placement
// that shares one of them is in PreBind. If the claims have got devices meanwhile, DynamicResources looks at the claims
// again.
func preBind(ctx context.Context, p *Placement) *fwk.Status {
	anew := false
	for i, claim := range p.shared {
		select {
		case claim.turn <- struct{}{}:
		case <-ctx.Done():
			leave(p.shared[:i])
			return fwk.AsStatus(context.Cause(ctx))
		}
		// The placement that wrote the claim may have failed after the write.
		anew = anew || claim.written || isAllocated(p.Profile, p.Pod.Namespace, claim.name)
	}
	if anew {
		if status := lookAnew(ctx, p); !status.IsSuccess() {
			leave(p.shared)
			return status
		}
		if !slices.ContainsFunc(p.shared, func(claim *sharedClaim) bool { return !claim.written }) {
			leave(p.shared) // there is nothing left to write before others
			return p.Profile.RunPreBindPlugins(ctx, p.State, p.Assumed.Pod, p.Node)
		}
	}
	status := p.Profile.RunPreBindPlugins(ctx, p.State, p.Assumed.Pod, p.Node)
	written(p.shared, status)
	leave(p.shared)
	return status
}

// devicesReach returns an error if the devices of a placement's claims can't be used on its node. It is called after
// the claims were reserved for the Pod. DynamicResources has checked this when the Pod was placed. But a shared claim
// may since have lost its device and got one of another node, and when DynamicResources retries after a conflict it
// reserves such a claim nevertheless.
func devicesReach(p *Placement) error {
	names := claimNames(p.Pod)
	manager := p.Profile.SharedDRAManager()
	if manager == nil || len(names) == 0 {
		return nil
	}
	node, err := p.Profile.SharedInformerFactory().Core().V1().Nodes().Lister().Get(p.Node)
	if err != nil {
		return fmt.Errorf("looking for node %s: %w", p.Node, err)
	}
	for _, name := range names {
		claim, err := manager.ResourceClaims().Get(p.Pod.Namespace, name)
		if err != nil {
			return fmt.Errorf("looking for the claim %s: %w", name, err)
		}
		if claim.Status.Allocation == nil {
			return fmt.Errorf("the claim %s has no device", name)
		}
		if claim.Status.Allocation.NodeSelector == nil {
			continue // all nodes can use the device
		}
		reached, err := nodeaffinity.NewNodeSelector(claim.Status.Allocation.NodeSelector)
		if err != nil {
			return fmt.Errorf("reading which nodes reach the devices of the claim %s: %w", name, err)
		}
		if !reached.Match(node) {
			return fmt.Errorf("the claim %s has got a device that %s does not reach", name, p.Node)
		}
	}
	return nil
}

// written records whether PreBind succeeded for a placement, which then has written the devices of the claims.
func written(claims []*sharedClaim, status *fwk.Status) {
	for _, claim := range claims {
		claim.written = claim.written || status.IsSuccess()
	}
}

// leave releases the claims for the next placement.
func leave(claims []*sharedClaim) {
	for _, claim := range claims {
		<-claim.turn
	}
}

// lookAnew makes DynamicResources check a Pod's claims again for the Pod's node, because some of them have a device
// now. For the other claims, the device that was chosen at placement stays. No other device may be chosen here, because
// this is not the scheduling goroutine.
func lookAnew(ctx context.Context, p *Placement) *fwk.Status {
	if names := extendedByDevices(p.Profile, p.Pod); len(names) > 0 {
		return fwk.AsStatus(fmt.Errorf("devices for %s are chosen once the claims that it shares with others have theirs", strings.Join(names, ", ")))
	}
	wasWritten := func(name string) bool {
		return slices.ContainsFunc(p.shared, func(claim *sharedClaim) bool { return claim.name == name && claim.written })
	}
	for _, claim := range claimNames(p.Pod) {
		if !isAllocated(p.Profile, p.Pod.Namespace, claim) && (wasWritten(claim) || !isPending(p.Profile, p.Pod.Namespace, claim)) {
			return fwk.AsStatus(fmt.Errorf("the claim %s has no device", claim))
		}
	}
	node, err := p.Profile.SharedInformerFactory().Core().V1().Nodes().Lister().Get(p.Node)
	if err != nil {
		return fwk.AsStatus(fmt.Errorf("looking for node %s: %w", p.Node, err))
	}
	anew, ok := p.State.Clone().(*framework.CycleState) // on failure, undoing the old state undoes the choice
	if !ok {
		return fwk.AsStatus(fmt.Errorf("the state of a placement is a %T", p.State))
	}
	for _, plugin := range p.Profile.PreEnqueuePlugins() {
		claims, ok := plugin.(claimPlugin)
		if !ok || plugin.Name() != DynamicResources {
			continue
		}
		if status := askAnew(ctx, p, claims, anew, nodeInfoOf(node)); !status.IsSuccess() {
			return status
		}
	}
	p.State = anew
	for _, claim := range p.shared {
		giveUpShare(p, claim.name)
	}
	return nil
}

// When the API server shows that a claim has its device, giveUpShare tells DynamicResources that this placement will
// not write it. When the last placement that shares the claim has done so, DynamicResources forgets the allocation that
// it held for the claim.
func giveUpShare(p *Placement, claim string) {
	claims := p.Profile.SharedDRAManager().ResourceClaims()
	if found, err := claims.Get(p.Pod.Namespace, claim); err == nil && found.Status.Allocation != nil {
		claims.MaybeRemoveClaimPendingAllocation(found.UID, false)
	}
}

// askAnew runs PreFilter and Filter of DynamicResources again. It uses the state that the placements share, in which
// DynamicResources keeps the chosen devices.
func askAnew(ctx context.Context, p *Placement, claims claimPlugin, state *framework.CycleState, node fwk.NodeInfo) *fwk.Status {
	p.group.lock.Lock()
	defer p.group.lock.Unlock()
	state.SetPodGroupSchedulingCycle(p.group.state)
	defer state.SetPodGroupSchedulingCycle(nil)
	if _, status := claims.PreFilter(ctx, state, p.Pod, nil); !status.IsSuccess() {
		return status
	}
	return claims.Filter(ctx, state, p.Pod, node)
}

// extendedByDevices returns the extended resources that a Pod requests and that DeviceClasses provide. Each time that
// DynamicResources looks at the Pod, it chooses devices for these.
func extendedByDevices(profile framework.Framework, pod *corev1.Pod) []string {
	var names []string
	for name := range resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{}) {
		if schedulerutil.IsDRAExtendedResourceName(name) && profile.SharedDRAManager().DeviceClassResolver().GetDeviceClass(name) != nil {
			names = append(names, string(name))
		}
	}
	slices.Sort(names)
	return names
}

// claimPlugin is the part of DynamicResources that is run again.
type claimPlugin interface {
	fwk.PreFilterPlugin
	fwk.FilterPlugin
}

func nodeInfoOf(node *corev1.Node) fwk.NodeInfo {
	info := framework.NewNodeInfo()
	info.SetNode(node)
	return info
}
