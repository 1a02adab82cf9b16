// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package place

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/ends"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/gangs"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/room"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/victims"
)

// soon is a Pod that ends by itself, as an index in pool.seen, with the time that is left until then, and the time that
// the Pod has run. It is small because 100,000 of them are sorted.
type soon struct {
	in, ran time.Duration
	pod     int
}

// ending collects the Pods that the gang may wait for. Pods that end by themselves are sorted, the earliest end first;
// Pods that are ending already are not. estimates says whether estimates count as ends.
func (v *sight) ending(estimates bool) *pool {
	p := &pool{Prey: victims.Prey{Now: v.now}, seen: v.all, soon: make([]soon, 0, len(v.all))}
	members := make(map[dialect.Key][]int)
	for i := range v.all {
		switch one := &v.all[i]; {
		case one.state == expected:
		case !one.own && !one.byItself: // If the Pod is ending, its controller replaces it.
		case one.state == leaving:
			p.leaving = append(p.leaving, one.info)
		case one.own:
		case one.state == overstaying:
			p.spared = true
		default:
			if one.of != nil {
				members[one.of.Rank.Key] = append(members[one.of.Rank.Key], len(p.soon))
			}
			p.soon = append(p.soon, soon{one.in, one.ran, i})
		}
	}
	v.endGangs(p, members, estimates)
	slices.SortFunc(p.soon, func(a, b soon) int {
		if a.in != b.in {
			return cmp.Compare(a.in, b.in)
		}
		return cmp.Compare(a.ran, b.ran)
	})
	return p
}

// endsByItself reports whether a Pod will end by itself, as members of gangs do.
func endsByItself(pod *corev1.Pod, of *gangs.Standing) bool {
	return of != nil || ends.ByItself(pod)
}

// endGangs computes when gangs end. members are the Pods of each gang, as indexes in p.soon. Each of them ends by
// itself, so each may help without the others.
func (v *sight) endGangs(p *pool, members map[dialect.Key][]int, estimates bool) {
	for key, of := range members {
		pods := make([]*corev1.Pod, len(of))
		for i, one := range of {
			pods[i] = p.seen[p.soon[one].pod].info.GetPod()
		}
		group := v.standings[key].Group
		// Ended members are not among the Pods.
		minimum := int(group.Spec.Minimum.Members) - max(0, int(v.standings[key].Placed.Total)-len(pods))
		in := timeLeft(ends.OfGang(group.Spec.Runtime, minimum, pods, p.Now).Until(estimates), p.Now)
		for _, one := range of {
			p.soon[one].in = in
		}
	}
}

// timeLeft returns how much time is left until an end; Never if the end is zero, which means unknown.
func timeLeft(end, now time.Time) time.Duration {
	if end.IsZero() {
		return victims.Never
	}
	return end.Sub(now)
}

// first returns the part of the pool with the n Pods that end first. If a search succeeds with this part, it would find
// the same with all Pods, because it chooses as few of the first Pods as suffice. helps reports whether it can help the
// gang if Pods of a node end; Pods of other nodes are left out. Nil: all nodes help.
func (p *pool) first(n int, helps func(node int) bool) *pool {
	part := *p
	part.Prey, part.infos, part.spared = victims.Prey{Now: p.Now}, nil, p.spared || n < len(p.soon)
	for _, one := range p.soon[:min(n, len(p.soon))] {
		if seen := &p.seen[one.pod]; helps == nil || helps(seen.node) {
			part.infos = append(part.infos, seen.info)
			part.AddEnding(seen.info.GetPod(), one.in)
		}
	}
	return &part
}

// through returns n, plus the number of further Pods that end at the same time as the n-th. All Pods of a gang end at the same time.
func (p *pool) through(n int) int {
	for 0 < n && n < len(p.soon) && p.soon[n].in == p.soon[n-1].in && p.soon[n].in != victims.Never {
		n++
	}
	return n
}

// endsOn returns the times at which the Pods on the nodes of some members end that the gang might wait for, and all Pods
// that are ending already.
func (s *seeker) endsOn(p *pool, members []*framework.PodInfo) (room.Ends, error) {
	nodes, err := s.cluster.Snapshot.List()
	if err != nil {
		return nil, fmt.Errorf("listing nodes: %w", err)
	}
	names := sets.New[string]()
	for _, member := range members {
		names.Insert(member.Pod.Spec.NodeName)
	}
	on := make([]bool, len(nodes))
	for n, node := range nodes {
		on[n] = names.Has(node.Node().Name)
	}
	ends := make(room.Ends)
	for _, one := range p.soon {
		switch seen := &p.seen[one.pod]; {
		case !on[seen.node]:
		case one.in == victims.Never:
			ends[seen.info.GetPod().UID] = time.Time{}
		default:
			ends[seen.info.GetPod().UID] = p.Now.Add(one.in)
		}
	}
	for _, info := range p.leaving {
		ends[info.GetPod().UID] = s.cluster.Evictions.GoneBy([]fwk.PodInfo{info}, p.Now)
	}
	return ends, nil
}
