// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package place

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"k8s.io/klog/v2"

	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/kube"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/planner"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/room"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/victims"
)

// packing is a search for the Pods that end by themselves and for which the gang has to wait. It uses what the plugins
// said of the nodes while these Pods still run, so it is cheaper than seeker.search.
type packing struct {
	by   *seeker
	pool *pool
	// choices are the Pods that have to end, one choice for each domain, the best first.
	choices []victims.Choice
}

// newPacking searches among the Pods of a pool. empty is the world without these Pods.
func newPacking(s *seeker, pool *pool, empty *planner.World, until deadline) *packing {
	p := &packing{by: s, pool: pool}
	if len(pool.Units) > 0 {
		p.choices = victims.Search(empty, s.found.gang, pool.requests(s.found.classes, empty), pool.Units, until.share(2).isOver)
	}
	return p
}

// isMost reports whether the gang has to wait for most of the work that ends by itself.
//
// Such a gang gains little if one Pod ends early. So it waits for all work that ends by the same time, and uses the nodes of that work
// first. The last work to end, often a large job, leaves more nodes than the gang still needs; as many idle nodes may be used by others.
func (p *packing) isMost(choice *victims.Choice) bool {
	return choice.Ends != victims.Never && len(choice.Pods) > len(p.pool.soon)/2
}

// gone returns for each Pod of the pool whether the gang waits for its end.
func (p *packing) gone(choice *victims.Choice) []bool {
	gone := p.pool.marked(choice.Pods)
	if p.isMost(choice) {
		for _, unit := range p.pool.Units {
			for _, pod := range unit.Pods {
				gone[pod] = gone[pod] || unit.Ends <= choice.Ends
			}
		}
	}
	return gone
}

// mayBeBetterThan reports whether it is worthwhile to ask the plugins about the choices, because they may be better than
// the gang's reservation.
func (p *packing) mayBeBetterThan(has *room.Reservation) bool {
	if len(p.choices) == 0 {
		return true
	}
	best := &p.choices[0]
	var from time.Time
	if best.Ends != victims.Never {
		from = p.pool.Now.Add(best.Ends)
	}
	left := len(best.Pods)
	if p.isMost(best) {
		left = math.MaxInt // only the time counts
	}
	return has.IsWorseThan(from, left, p.pool.Now)
}

// verify returns the place of the first of the best n choices that the plugins accept, nil for none. It removes only the
// Pods of that choice from the snapshot.
func (p *packing) verify(ctx context.Context, n int, until deadline) (found *space, err error) {
	if len(p.choices) == 0 {
		return nil, nil
	}
	cluster := *p.by.cluster
	cluster.Snapshot = kube.InPlace(p.by.cluster.Snapshot, p.pool.infos, p.pool.leaving)
	restore, err := tryOn(cluster.Snapshot)
	if err != nil {
		return nil, err
	}
	defer restore(&err)
	t := newTrial(p.by.gang, &cluster, p.pool, until)
	t.gone = make([]bool, len(p.pool.infos))
	for _, leaving := range p.pool.leaving {
		if err := cluster.Snapshot.RemovePod(klog.FromContext(ctx), leaving.GetPod(), leaving.GetPod().Spec.NodeName); err != nil {
			return nil, fmt.Errorf("trying the cluster without %s: %w", klog.KObj(leaving.GetPod()), err)
		}
	}
	for i := range p.choices[:min(n, len(p.choices))] {
		choice := &p.choices[i]
		gone := p.gone(choice)
		if t.attempt.vacated = nil; p.isMost(choice) {
			t.attempt.vacated = t.nodesOf(gone)
		}
		if t.fitsWithout(ctx, gone, false) {
			return t.space(), nil
		}
	}
	if errors.Is(t.err, errOverdue) {
		return nil, nil
	}
	return nil, t.err
}
