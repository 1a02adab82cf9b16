// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package place

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/kube"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/victims"
)

// maxTrials bounds how often the plugins are asked in a search for victims whose
// room is not a matter of resources alone. Each trial costs about as much as a
// plan.
const maxTrials = 48

// maxChoices bounds in how many domains the plugins are asked whether the least
// choice there holds, before they are asked in the search.
const maxChoices = 8

// trial is a search for victims on a snapshot that is changed for it.
type trial struct {
	cluster *Cluster
	attempt *attempt
	pool    *pool
	// asked says that the plugins were asked about a choice of victims.
	asked bool
	gone  []bool // which of the pool's Pods are out of the snapshot
	left  int    // how often the plugins may still be asked
	err   error
	// places are those of the last time that the gang fitted.
	places []*framework.PodInfo
}

func (t *trial) run(ctx context.Context) (*space, error) {
	logger := klog.FromContext(ctx)
	t.gone = make([]bool, len(t.pool.pods))
	for _, leaving := range t.pool.leaving {
		if err := t.cluster.Snapshot.RemovePod(logger, leaving.GetPod(), leaving.GetPod().Spec.NodeName); err != nil {
			return nil, fmt.Errorf("trying the cluster without %s: %w", klog.KObj(leaving.GetPod()), err)
		}
	}
	everything := make([]bool, len(t.pool.units))
	for i := range everything {
		everything[i] = true
	}
	if err := t.take(ctx, t.podsOf(everything)); err != nil {
		return nil, err
	}
	if err := t.attempt.survey(ctx); err != nil {
		return nil, err
	}
	found := t.attempt.found
	choices := victims.Search(found.world, found.gang, t.pool.requests(found.classes, found.world, t.cluster.Now()), t.pool.units)
	if len(choices) == 0 {
		return nil, nil
	}
	t.asked = true
	if !t.verifyOne(ctx, choices) && t.err == nil {
		chosen, ok := victims.Choose(t.pool.units, func(taken []bool) bool { return t.fits(ctx, taken) })
		if !ok {
			return nil, t.err
		}
		taken := make([]bool, len(t.pool.units))
		for _, u := range chosen {
			taken[u] = true
		}
		t.left = 1 // what was chosen may not be what was tried last
		if !t.fits(ctx, taken) {
			return nil, t.err
		}
	}
	if t.err != nil {
		return nil, t.err
	}
	free := &space{places: t.places, awaited: slices.Clone(t.pool.leaving)}
	for p, gone := range t.gone {
		if gone {
			free.victims = append(free.victims, t.pool.pods[p].GetPod())
			free.awaited = append(free.awaited, t.pool.pods[p])
		}
	}
	return free, nil
}

// verifyOne asks the plugins of the choices, one for each domain, the best ones
// only. It says whether one holds, and leaves that in the snapshot.
func (t *trial) verifyOne(ctx context.Context, choices []victims.Choice) bool {
	for _, choice := range choices[:min(len(choices), maxChoices)] {
		gone := make([]bool, len(t.pool.pods))
		for _, p := range choice.Pods {
			gone[p] = true
		}
		if t.fitsWithout(ctx, gone) {
			return true
		}
	}
	return false
}

// fits asks the plugins whether the gang fits without the units that are taken.
func (t *trial) fits(ctx context.Context, taken []bool) bool {
	return t.fitsWithout(ctx, t.podsOf(taken))
}

// fitsWithout asks the plugins whether the gang fits without some Pods. When it has
// asked too often it says no, which is on the safe side: more is taken than must
// be, never too little.
func (t *trial) fitsWithout(ctx context.Context, gone []bool) bool {
	if t.left--; t.left < 0 || t.err != nil {
		return false
	}
	if t.err = t.take(ctx, gone); t.err != nil {
		return false
	}
	placed, _, err := t.attempt.plan(ctx)
	if t.err = err; err != nil || placed == nil {
		return false
	}
	t.places = places(placed.placements)
	placed.undo(ctx)
	return true
}

// places are copies of members that name their nodes.
func places(placements []*kube.Placement) []*framework.PodInfo {
	infos := make([]*framework.PodInfo, len(placements))
	for i, p := range placements {
		infos[i] = p.Assumed
	}
	return infos
}

// podsOf says which of the pool's Pods are in the units that are taken.
func (t *trial) podsOf(taken []bool) []bool {
	pods := make([]bool, len(t.pool.pods))
	for u, taken := range taken {
		if taken {
			for _, p := range t.pool.units[u].Pods {
				pods[p] = true
			}
		}
	}
	return pods
}

// take brings the snapshot to where just these of the pool's Pods are gone.
func (t *trial) take(ctx context.Context, want []bool) error {
	logger := klog.FromContext(ctx)
	for p, gone := range want {
		if gone == t.gone[p] {
			continue
		}
		info := t.pool.pods[p]
		var err error
		if gone {
			err = t.cluster.Snapshot.RemovePod(logger, info.GetPod(), info.GetPod().Spec.NodeName)
		} else {
			err = t.cluster.Snapshot.AddPod(info, info.GetPod().Spec.NodeName)
		}
		if err != nil {
			return fmt.Errorf("trying the cluster without %s: %w", klog.KObj(info.GetPod()), err)
		}
		t.gone[p] = gone
	}
	return nil
}
