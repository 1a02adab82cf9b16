// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-k8s/lockstep/controller/engine/plan"
	"github.com/lockstep-k8s/lockstep/controller/pacing"
	"github.com/lockstep-k8s/lockstep/internal/controlled"
)

// list lists the owner's objects of a kind from the API server. It also records where the cache is behind: objects that
// are missing in the cache, objects of which the cache has an older version, and cached objects that are gone.
func (p *pass[O, S]) list(ctx context.Context, action plan.Action) error {
	cached, known, err := p.knownOf(action)
	if err != nil {
		return err
	}
	found, err := p.listed(ctx, action.Kind, action.Selector, func(object metav1.Object) bool {
		return controlled.By(action.Owner, object)
	})
	if err != nil {
		return err
	}
	if err := p.lookForLost(ctx, action.Kind, known, found); err != nil {
		return err
	}
	for uid, object := range found {
		at := ref{action.Kind, object.GetName()}
		if ours := p.memory.ahead[at]; ours != nil && newer(object, ours) {
			delete(p.memory.ahead, at)
		}
		before := cached[uid]
		if before == nil {
			p.noteLook(result{found: object})
		}
		if before == nil || before.GetResourceVersion() != object.GetResourceVersion() {
			p.memory.listed[uid] = stray{kind: action.Kind, object: object}
		}
	}
	p.memory.outcomes = append(p.memory.outcomes, plan.Outcome{Action: action})
	return nil
}

// knownOf returns the objects of a list's kind and labels: as the cache has them, and as the decision saw them. knownOf
// leaves out strays, which are read one by one.
func (p *pass[O, S]) knownOf(action plan.Action) (cached, known map[types.UID]metav1.Object, err error) {
	informer, err := p.informer(action.Kind)
	if err != nil {
		return nil, nil, err
	}
	objects, err := informer.GetIndexer().ByIndex(ByOwner, OwnerKey(p.key.Namespace, action.Owner))
	if err != nil {
		return nil, nil, err
	}
	cached = map[types.UID]metav1.Object{}
	for _, object := range objects {
		if accessor := objectMeta(object); accessor != nil && !p.memory.gone[accessor.GetUID()] {
			cached[accessor.GetUID()] = accessor
		}
	}
	known = maps.Clone(cached)
	for uid, listed := range p.memory.listed {
		if listed.kind == action.Kind && controlled.By(action.Owner, listed.object) {
			known[uid] = listed.object
		}
	}
	for at, object := range p.memory.ahead {
		if at.kind == action.Kind && controlled.By(action.Owner, object) {
			known[object.GetUID()] = object
		}
	}
	return cached, known, nil
}

// lookForLost reads each known object that a list did not contain. The object is gone, or has lost a label.
func (p *pass[O, S]) lookForLost(ctx context.Context, kind string, known, found map[types.UID]metav1.Object) error {
	var lost []plan.Action
	for uid, object := range known {
		if found[uid] == nil {
			lost = append(lost, plan.Action{Verb: plan.LookFor, Kind: kind, Name: object.GetName(), UID: uid})
		}
	}
	if len(lost) > fewLooks {
		return p.lookForAll(ctx, kind, lost)
	}
	for _, action := range lost {
		p.turn.requests++
		request, cancel := context.WithTimeout(ctx, pacing.RequestTime)
		live, gone, err := lookFor(request, p.owners.kinds[kind].Client, p.key.Namespace, action)
		cancel()
		if err != nil {
			return err
		}
		if live == nil {
			p.memory.remember(result{action: action, gone: gone})
		}
	}
	return nil
}

// listPage is how many objects a page of a list has.
const listPage = 500

// listed returns the objects of a kind in the namespace that the label selector selects and for which `wanted` returns
// true, in the form in which the cache keeps them.
func (p *pass[O, S]) listed(ctx context.Context, kind, selector string, wanted func(metav1.Object) bool) (map[types.UID]metav1.Object, error) {
	registered, err := p.owners.writable(kind)
	if err != nil {
		return nil, err
	}
	found := map[types.UID]metav1.Object{}
	options := metav1.ListOptions{Limit: listPage, LabelSelector: selector}
	for {
		p.turn.requests++
		request, cancel := context.WithTimeout(ctx, pacing.RequestTime)
		page, next, err := registered.Client.List(request, p.key.Namespace, options)
		cancel()
		if err != nil {
			return nil, err
		}
		for _, object := range page {
			if wanted(object) {
				found[object.GetUID()] = registered.reduced(object)
			}
		}
		if options.Continue = next; next == "" {
			return found, nil
		}
	}
}
