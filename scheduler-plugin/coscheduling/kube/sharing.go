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

// Pods that are placed together may share a ResourceClaim that has no device yet. Each of them
// is placed as if it were the one that is to write down which device the claim gets.
// DynamicResources lets only the first one do so and fails the others, and should the claim lose
// its device meanwhile, another one would write it down again, though somebody else may have it
// by then. So the first one goes ahead, and the others look at the claim anew. The devices that
// were chosen for claims of their own stay chosen meanwhile.

// sharedClaim is a claim that several placements share.
type sharedClaim struct {
	name string
	// turn has an element while somebody binds who is to write down the claim's device.
	turn chan struct{}
	// written says that somebody has. The turn guards it.
	written bool
}

// group is what plugins share between the placements of a turn. They know of it while they are
// asked about placements one after the other, and have no lock for it.
type group struct {
	state fwk.PodGroupCycleState
	lock  *sync.Mutex
}

// Part has a placement be on its own from here on: plugins don't share anything between it and
// the others that it was placed with.
func Part(p *Placement) {
	if state, ok := p.State.(*framework.CycleState); ok {
		p.group.state = state.GetPodGroupSchedulingCycle()
		state.SetPodGroupSchedulingCycle(nil)
	}
}

// PendingClaimsLast is a Pod that names those of its claims last for which others of its gang
// have a device chosen already. So DynamicResources is to see it in PreFilter: in Filter it chooses
// devices for the other claims and lists those first, and Reserve takes the list for one in the
// order of the claims.
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

// MayShare says whether a Pod may be placed together with others with which it shares claims, by
// DynamicResources. If it requests extended resources that classes of devices stand for, there is a
// claim for them that comes last whatever the Pod says (see PendingClaimsLast), and would get the
// device of another one.
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

// ShareClaims has those of some placements that share claims without a device be bound in an
// order that allows it. It comes before any of them is bound.
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
	for _, p := range placements { // all take their turns in one order, so that nobody waits for ever
		slices.SortFunc(p.shared, func(a, b *sharedClaim) int { return strings.Compare(a.name, b.name) })
	}
}

// isAllocated says whether a claim has a device.
func isAllocated(profile framework.Framework, namespace, claim string) bool {
	manager := profile.SharedDRAManager()
	if manager == nil {
		return true // nobody gives it one
	}
	found, err := manager.ResourceClaims().Get(namespace, claim)
	return err == nil && found.Status.Allocation != nil
}

// isPending says whether a device is chosen for a claim, and not written down yet.
func isPending(profile framework.Framework, namespace, claim string) bool {
	manager := profile.SharedDRAManager()
	if manager == nil {
		return false
	}
	found, err := manager.ResourceClaims().Get(namespace, claim)
	return err == nil && found.Status.Allocation == nil && manager.ResourceClaims().GetPendingAllocation(found.UID) != nil
}

// preBind runs the PreBind plugins. If the placement shares claims, it waits until who is before it
// has written down their devices.
func preBind(ctx context.Context, p *Placement) *fwk.Status {
	anew := false
	for i, claim := range p.shared {
		select {
		case claim.turn <- struct{}{}:
		case <-ctx.Done():
			leave(p.shared[:i])
			return fwk.AsStatus(context.Cause(ctx))
		}
		// Who has written it may have failed after that.
		anew = anew || claim.written || isAllocated(p.Profile, p.Pod.Namespace, claim.name)
	}
	if !anew {
		status := p.Profile.RunPreBindPlugins(ctx, p.State, p.Assumed.Pod, p.Node)
		written(p.shared, status)
		leave(p.shared)
		return status
	}
	if status := lookAnew(ctx, p); !status.IsSuccess() {
		leave(p.shared)
		return status
	}
	if !slices.ContainsFunc(p.shared, func(claim *sharedClaim) bool { return !claim.written }) {
		leave(p.shared) // there is nothing left to write before others
		return p.Profile.RunPreBindPlugins(ctx, p.State, p.Assumed.Pod, p.Node)
	}
	status := p.Profile.RunPreBindPlugins(ctx, p.State, p.Assumed.Pod, p.Node)
	written(p.shared, status)
	leave(p.shared)
	return status
}

// devicesReach fails if the node of a placement is not one on which the devices of its claims can
// be used, once the claims are reserved for its Pod. DynamicResources has looked at them when it
// placed the Pod. Since then a claim that others share may have lost its device, and have one of
// another node by now: DynamicResources reserves it all the same when it tries again after a conflict.
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
			continue // all nodes reach it
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

// written notes how the PreBind of somebody has ended who was to write down the devices of claims.
func written(claims []*sharedClaim, status *fwk.Status) {
	for _, claim := range claims {
		claim.written = claim.written || status.IsSuccess()
	}
}

// leave ends the turns with claims.
func leave(claims []*sharedClaim) {
	for _, claim := range claims {
		<-claim.turn
	}
}

// lookAnew has DynamicResources look at a Pod's claims anew, on the node where it is placed: some
// have a device by now. For the others one was chosen when it was placed, and stays so. Nobody may
// choose another one here, off the scheduling goroutine.
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
	anew, ok := p.State.Clone().(*framework.CycleState) // what was chosen is given up by the old one if this fails
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

// giveUpShare has a placement have no share any more in the choice of a claim's device, if that is
// written down: the placement writes it no more, and with the last share the choice is forgotten.
func giveUpShare(p *Placement, claim string) {
	claims := p.Profile.SharedDRAManager().ResourceClaims()
	if found, err := claims.Get(p.Pod.Namespace, claim); err == nil && found.Status.Allocation != nil {
		claims.MaybeRemoveClaimPendingAllocation(found.UID, false)
	}
}

// askAnew runs extension points of DynamicResources with what it shares between placements: of a
// claim for which a device was chosen it knows by that.
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

// extendedByDevices are the extended resources that a Pod requests and classes of devices stand
// for. A device is chosen for them each time that DynamicResources looks at the Pod.
func extendedByDevices(profile framework.Framework, pod *corev1.Pod) []string {
	if !wantsExtendedResources(pod) {
		return nil
	}
	var names []string
	for name := range resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{}) {
		if schedulerutil.IsDRAExtendedResourceName(name) && profile.SharedDRAManager().DeviceClassResolver().GetDeviceClass(name) != nil {
			names = append(names, string(name))
		}
	}
	slices.Sort(names)
	return names
}

// claimPlugin is DynamicResources, as far as it is run anew.
type claimPlugin interface {
	fwk.PreFilterPlugin
	fwk.FilterPlugin
}

func nodeInfoOf(node *corev1.Node) fwk.NodeInfo {
	info := framework.NewNodeInfo()
	info.SetNode(node)
	return info
}
