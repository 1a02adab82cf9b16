// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package place

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/klog/v2"

	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/kube"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/planner"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/victims"
)

// byPacking searches for the Pods that end by themselves and for which the gang has to wait. It uses what the plugins
// said of the nodes while these Pods still run, and removes only the Pods that it chooses from the snapshot, so it is
// cheaper than search. It finds nothing if the plugins would say something else without these Pods; the caller then
// uses search. empty is the world without these Pods.
func byPacking(ctx context.Context, s *seeker, pool *pool, empty *planner.World, until deadline) (found *space, err error) {
	if len(pool.Units) == 0 {
		return nil, nil
	}
	pods := pool.requests(s.found.classes, empty)
	choices := victims.Search(empty, s.found.gang, pods, pool.Units, until.share(2).isOver)
	if len(choices) == 0 {
		return nil, nil
	}
	cluster := *s.cluster
	cluster.Snapshot = kube.InPlace(s.cluster.Snapshot, pool.infos, pool.leaving)
	restore, err := tryOn(cluster.Snapshot)
	if err != nil {
		return nil, err
	}
	defer restore(&err)
	t := newTrial(s.gang, &cluster, pool, until)
	t.gone = make([]bool, len(pool.infos))
	for _, leaving := range pool.leaving {
		if err := cluster.Snapshot.RemovePod(klog.FromContext(ctx), leaving.GetPod(), leaving.GetPod().Spec.NodeName); err != nil {
			return nil, fmt.Errorf("trying the cluster without %s: %w", klog.KObj(leaving.GetPod()), err)
		}
	}
	if t.firstThatHolds(ctx, choices) < 0 || t.err != nil {
		if errors.Is(t.err, errOverdue) {
			return nil, nil
		}
		return nil, t.err
	}
	return t.space(), nil
}
