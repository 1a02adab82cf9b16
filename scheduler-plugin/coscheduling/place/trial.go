// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package place

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/kube"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/victims"
)

// maxTrials is the largest number of times that one search for victims asks the plugins. Each time costs about as much
// as verifying a plan, so a search for a large gang runs out of time earlier.
const maxTrials = 256

// maxChoices is the largest number of domains in which the plugins verify the choice of victims that packing has found.
// If they reject the choice in the best domain, there is also a search that asks the plugins at each step.
const maxChoices = 8

// trial is a search for victims that tries the gang on the snapshot with Pods removed.
type trial struct {
	cluster *Cluster
	attempt *attempt
	pool    *pool
	// asked reports that the plugins were asked about a choice of victims.
	asked bool
	gone  []bool // which of the pool's Pods are out of the snapshot
	left  int    // how often the plugins may still be asked
	until deadline
	err   error
	// places are the members on their nodes when the gang last fitted. victims says for each Pod of the pool whether it
	// was removed then.
	places  []*framework.PodInfo
	victims []bool
}

// newTrial returns a trial for a gang.
func newTrial(gang *Gang, cluster *Cluster, pool *pool, until deadline) *trial {
	t := &trial{cluster: cluster, attempt: newAttempt(gang, cluster, make(rejections)), pool: pool, left: maxTrials, until: until}
	t.attempt.until = until
	return t
}

func (t *trial) run(ctx context.Context) (*space, error) {
	logger := klog.FromContext(ctx)
	t.gone = make([]bool, len(t.pool.infos))
	for _, leaving := range t.pool.leaving {
		if err := t.cluster.Snapshot.RemovePod(logger, leaving.GetPod(), leaving.GetPod().Spec.NodeName); err != nil {
			return nil, fmt.Errorf("trying the cluster without %s: %w", klog.KObj(leaving.GetPod()), err)
		}
	}
	if err := t.take(ctx, slices.Repeat([]bool{true}, len(t.pool.infos))); err != nil {
		return nil, err
	}
	if err := t.attempt.survey(ctx); err != nil {
		return nil, err
	}
	found := t.attempt.found
	pods := t.pool.requests(found.classes, found.world)
	choices := victims.Search(found.world, found.gang, pods, t.pool.Units, t.until.share(2).isOver)
	if len(choices) == 0 && t.until.isOver() {
		return nil, errOverdue
	}
	if len(choices) == 0 {
		return nil, nil
	}
	t.asked = true
	if held := t.firstThatHolds(ctx, choices); held != 0 && t.err == nil {
		t.ask(ctx)
	}
	if t.err != nil || t.victims == nil {
		return nil, t.err
	}
	return t.space(), nil
}

// space returns the last result.
func (t *trial) space() *space {
	free := &space{places: t.places, awaited: slices.Clone(t.pool.leaving)}
	for p, gone := range t.victims {
		if gone {
			free.victims = append(free.victims, t.pool.Pods[p])
			free.awaited = append(free.awaited, t.pool.infos[p])
		}
	}
	return free
}

// ask searches for victims by asking the plugins at each step. It is called if the plugins rejected the best choice
// that packing found. If they accepted another choice, in another domain and with a higher loss, that choice stays
// unless ask finds one.
func (t *trial) ask(ctx context.Context) {
	before, places := t.victims, t.places
	t.victims, t.places = nil, nil
	t.attempt.until = t.until.share(2)
	victims.Choose(t.pool.Units, &askedRoom{ctx: ctx, trial: t, taken: make([]bool, len(t.pool.Units))})
	t.attempt.until = t.until
	if t.err == nil && t.left <= 0 && t.victims != nil {
		t.spareUnused(ctx)
	}
	if before == nil {
		return
	}
	if errors.Is(t.err, errOverdue) {
		t.victims, t.err = nil, nil
	}
	if t.err == nil && t.victims != nil {
		return // no unit in it is dearer than the dearest of the choice before
	}
	t.victims, t.places = before, places
}

// firstThatHolds asks the plugins about the best choices of victims, one for each domain. It returns the index of the
// first choice with which the gang fits, or -1.
func (t *trial) firstThatHolds(ctx context.Context, choices []victims.Choice) int {
	for i, choice := range choices[:min(len(choices), maxChoices)] {
		if t.fitsWithout(ctx, t.pool.marked(choice.Pods), false) {
			return i
		}
	}
	return -1
}

// askedRoom is the room that the plugins find without the units that are taken.
type askedRoom struct {
	ctx   context.Context
	trial *trial
	taken []bool
}

func (r *askedRoom) Take(unit int, taken bool) {
	r.taken[unit] = taken
}

func (r *askedRoom) Fits(spares bool) bool {
	return r.trial.fitsWithout(r.ctx, r.trial.podsOf(r.taken), spares)
}

// spareUnused is called when a search for victims has used up maxTrials. In one last step it spares all units (Pods
// that are evicted together) without a Pod on the nodes on which the gang was placed.
func (t *trial) spareUnused(ctx context.Context) {
	used := sets.New[string]()
	for _, place := range t.places {
		used.Insert(place.Pod.Spec.NodeName)
	}
	taken := make([]bool, len(t.pool.Units))
	for u, unit := range t.pool.Units {
		taken[u] = !slices.ContainsFunc(unit.Pods, func(p int) bool { return !t.victims[p] }) &&
			slices.ContainsFunc(unit.Pods, func(p int) bool { return used.Has(t.pool.Pods[p].Spec.NodeName) })
	}
	t.left = 1
	t.fitsWithout(ctx, t.podsOf(taken), true)
}

// fitsWithout asks the plugins whether the gang fits without the Pods in `gone`. After maxTrials calls the result is
// false, which is safe: the search then evicts more Pods than necessary, but never too few. spares reports that the
// gang has fitted with more Pods gone; then the result is also false if the time is over.
func (t *trial) fitsWithout(ctx context.Context, gone []bool, spares bool) bool {
	if t.left--; t.left < 0 || t.err != nil {
		return false
	}
	if t.err = t.take(ctx, gone); t.err != nil {
		return false
	}
	placed, _, err := t.attempt.plan(ctx)
	if errors.Is(err, errOverdue) && spares {
		t.left = 0 // the choice that held is used
		return false
	}
	if t.err = err; err != nil || placed == nil {
		return false
	}
	t.places, t.victims = places(placed.placements), slices.Clone(gone)
	placed.undo(ctx)
	return true
}

// nodesOf returns the names of the nodes of some of the pool's Pods.
func (t *trial) nodesOf(pods []bool) sets.Set[string] {
	nodes := sets.New[string]()
	for p, in := range pods {
		if in {
			nodes.Insert(t.pool.Pods[p].Spec.NodeName)
		}
	}
	return nodes
}

// places returns copies of members with their nodes set.
func places(placements []*kube.Placement) []*framework.PodInfo {
	infos := make([]*framework.PodInfo, len(placements))
	for i, p := range placements {
		infos[i] = p.Assumed
	}
	return infos
}

// podsOf returns which of the pool's Pods are in the units that are taken.
func (t *trial) podsOf(taken []bool) []bool {
	pods := make([]bool, len(t.pool.infos))
	for u, taken := range taken {
		if taken {
			for _, p := range t.pool.Units[u].Pods {
				pods[p] = true
			}
		}
	}
	return pods
}

// take changes the snapshot so that exactly these of the pool's Pods are gone.
func (t *trial) take(ctx context.Context, want []bool) error {
	logger := klog.FromContext(ctx)
	for p, gone := range want {
		if gone == t.gone[p] {
			continue
		}
		info := t.pool.infos[p]
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
