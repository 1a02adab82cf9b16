// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package place

import (
	"context"
	"errors"
	"fmt"
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
	// needsMost reports that the gang has to wait for most of the running work.
	needsMost bool
}

// newPacking searches among the Pods of a pool. empty is the world without these Pods.
func newPacking(s *seeker, pool *pool, empty *planner.World, until deadline) *packing {
	p := &packing{by: s, pool: pool, needsMost: needsMost(s.found, pool)}
	if len(pool.Units) > 0 {
		p.choices = victims.Search(empty, s.found.gang, pool.requests(s.found.classes, empty), pool.Units, until.share(2).isOver)
	}
	if p.needsMost {
		p.addEarlier()
	}
	return p
}

// addEarlier adds to each choice the Pods that end no later than the choice. The gang has to wait until then anyway, and when all of
// these Pods have ended there is more room than it needs. So it may leave nodes to others that are idle now. A gang that needs less
// of the cluster keeps them: limits are overstated, and with idle nodes the gang may start as soon as any work ends early.
func (p *packing) addEarlier() {
	for c := range p.choices {
		choice := &p.choices[c]
		choice.Pods = nil
		for _, unit := range p.pool.Units {
			if unit.Ends <= choice.Ends {
				choice.Pods = append(choice.Pods, unit.Pods...)
			}
		}
	}
}

// needsMost reports whether a gang asks for more than half of what the nodes have of some resource, without what Pods take that do
// not end by themselves.
func needsMost(found *survey, pool *pool) bool {
	all, needs := make([]int64, len(found.world.Resources)), make([]int64, len(found.world.Resources))
	for n := range found.world.Nodes {
		add(all, found.world.Nodes[n].Free, 1)
	}
	for _, one := range pool.soon {
		add(all, pool.seen[one.pod].request, 1)
	}
	for c := range found.gang.Classes {
		add(needs, found.gang.Classes[c].Request, int64(found.gang.Classes[c].Count))
	}
	for r := range needs {
		if needs[r] > all[r]/2 {
			return true
		}
	}
	return false
}

// add adds a multiple of some amounts to a sum.
func add(sum, amounts []int64, times int64) {
	for r, amount := range amounts {
		sum[r] += max(0, amount) * times
	}
}

// mayBeBetterThan reports whether it is worthwhile to ask the plugins about the choices, because they may be better than
// the gang's reservation.
func (p *packing) mayBeBetterThan(has *room.Reservation) bool {
	if len(p.choices) == 0 {
		return true
	}
	var from time.Time
	if best := p.choices[0]; best.Ends != victims.Never {
		from = p.pool.Now.Add(best.Ends)
	}
	return has.IsWorseThan(from, len(p.choices[0].Pods), p.pool.Now)
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
	t.gone, t.usesVacated = make([]bool, len(p.pool.infos)), p.needsMost
	for _, leaving := range p.pool.leaving {
		if err := cluster.Snapshot.RemovePod(klog.FromContext(ctx), leaving.GetPod(), leaving.GetPod().Spec.NodeName); err != nil {
			return nil, fmt.Errorf("trying the cluster without %s: %w", klog.KObj(leaving.GetPod()), err)
		}
	}
	if t.firstThatHolds(ctx, p.choices[:min(n, len(p.choices))]) < 0 || t.err != nil {
		if errors.Is(t.err, errOverdue) {
			return nil, nil
		}
		return nil, t.err
	}
	return t.space(), nil
}
