// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// Pods that are placed together may share a ResourceClaim that has no device yet. Each of them
// is placed as if it were the one that is to write down which device the claim gets.
// DynamicResources lets only the first one do so and fails the others, and should the claim lose
// its device meanwhile, another one would write it down again, though somebody else may have it
// by then. So the first one goes ahead, and the others look at the claim anew.

// sharedClaim is a claim that several placements share.
type sharedClaim struct {
	name string
	// turn has an element while somebody binds who is to write down the claim's device.
	turn chan struct{}
	// written says that somebody has. The turn guards it.
	written bool
}

// ShareClaims has those of some placements that share claims without a device be bound in an
// order that allows it. It comes before any of them is bound.
func ShareClaims(placements []*Placement) {
	claims := make(map[string]*sharedClaim)
	sharers := make(map[string][]*Placement)
	for _, p := range placements {
		for _, name := range claimNames(p.Pod) {
			key := p.Pod.Namespace + "/" + name
			if claims[key] == nil {
				claims[key] = &sharedClaim{name: name, turn: make(chan struct{}, 1)}
			}
			sharers[key] = append(sharers[key], p)
		}
	}
	for key, by := range sharers {
		if len(by) < 2 || isAllocated(by[0], claims[key].name) {
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

// isAllocated says whether a claim of a Pod's namespace has a device.
func isAllocated(p *Placement, claim string) bool {
	manager := p.Profile.SharedDRAManager()
	if manager == nil {
		return true // nobody gives it one
	}
	found, err := manager.ResourceClaims().Get(p.Pod.Namespace, claim)
	return err == nil && found.Status.Allocation != nil
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
		anew = anew || claim.written
	}
	if !anew {
		status := p.Profile.RunPreBindPlugins(ctx, p.State, p.Assumed.Pod, p.Node)
		for _, claim := range p.shared {
			claim.written = claim.written || status.IsSuccess()
		}
		leave(p.shared)
		return status
	}
	leave(p.shared)
	if status := reserveAnew(ctx, p); !status.IsSuccess() {
		return status
	}
	return p.Profile.RunPreBindPlugins(ctx, p.State, p.Assumed.Pod, p.Node)
}

// leave ends the turns with claims.
func leave(claims []*sharedClaim) {
	for _, claim := range claims {
		<-claim.turn
	}
}

// reserveAnew has DynamicResources look at a Pod's claims anew, on the node where it is placed. All
// of them have a device by now; if one has lost it again, nobody may choose another one here, off
// the scheduling goroutine. It runs the plugin's own extension points, up to Reserve.
func reserveAnew(ctx context.Context, p *Placement) *fwk.Status {
	for _, claim := range claimNames(p.Pod) {
		if !isAllocated(p, claim) {
			return fwk.AsStatus(fmt.Errorf("the claim %s has no device", claim))
		}
	}
	node, err := p.Profile.SharedInformerFactory().Core().V1().Nodes().Lister().Get(p.Node)
	if err != nil {
		return fwk.AsStatus(fmt.Errorf("looking for node %s: %w", p.Node, err))
	}
	for _, plugin := range p.Profile.PreEnqueuePlugins() {
		claims, ok := plugin.(claimPlugin)
		if !ok || plugin.Name() != DynamicResources {
			continue
		}
		claims.Unreserve(inMemory(ctx), p.State, p.Assumed.Pod, p.Node) // see UndoReserve
		if _, status := claims.PreFilter(ctx, p.State, p.Pod, nil); !status.IsSuccess() {
			return status
		}
		if status := claims.Filter(ctx, p.State, p.Pod, nodeInfoOf(node)); !status.IsSuccess() {
			return status
		}
		return claims.Reserve(ctx, p.State, p.Assumed.Pod, p.Node)
	}
	return nil
}

// claimPlugin is DynamicResources, as far as it is run anew.
type claimPlugin interface {
	fwk.PreFilterPlugin
	fwk.FilterPlugin
	fwk.ReservePlugin
}

func nodeInfoOf(node *corev1.Node) fwk.NodeInfo {
	info := framework.NewNodeInfo()
	info.SetNode(node)
	return info
}
