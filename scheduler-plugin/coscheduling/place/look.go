// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package place

import (
	"context"
	"fmt"
	"time"

	fwk "k8s.io/kube-scheduler/framework"

	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/ends"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/gangs"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/victims"
)

// seen is a Pod on a node, as the gang that seeks room sees it.
type seen struct {
	info  fwk.PodInfo
	node  int             // the index of the Pod's node in the snapshot
	own   bool            // the Pod is a member of the gang itself
	of    *gangs.Standing // the Pod's gang if it is another one, nil if none is known
	state podState
	// The rest is set only if the gang has a right to a reservation: only such a gang waits for ends. byItself reports that
	// the Pod ends by itself. Then request is what its node gets back, ran is how long the Pod has run, and in is how much
	// longer it will run. in is missing for members of gangs; see endGangs.
	byItself bool
	request  []int64
	in, ran  time.Duration
}

// podState says whether a Pod in the snapshot stays on its node.
type podState int8

const (
	running     podState = iota
	leaving              // the Pod is ending
	overstaying          // the Pod was asked to end and does not
	expected             // the Pod is not on the node yet: room is reserved for it
)

// sight is what the gang that seeks room saw at one time: all Pods on nodes, and the standings of
// the gangs that have placed members.
type sight struct {
	all       []seen
	standings map[dialect.Key]*gangs.Standing
	now       time.Time
}

// look looks at all Pods on nodes. There may be 100,000 Pods, so the nodes are read in parallel. classes are those of the
// gang: the field request of seen has the resources that they name.
func look(ctx context.Context, gang *Gang, classes []*class, cluster *Cluster) (*sight, error) {
	nodes, err := cluster.Snapshot.List()
	if err != nil {
		return nil, fmt.Errorf("listing nodes: %w", err)
	}
	begin, pods := make([]int, len(nodes)), 0 // begin is the index of each node's first Pod
	for n, node := range nodes {
		begin[n], pods = pods, pods+len(node.GetPods())
	}
	v := &sight{all: make([]seen, pods), standings: cluster.Standings(), now: cluster.Now()}
	var amounts resources
	var requests []int64
	if gang.First {
		amounts = newResources(classes)
		requests = make([]int64, pods*len(amounts.names)) // one allocation in place of 100,000
	}
	cluster.Profiles[gang.schedulerName()].Parallelizer().Until(ctx, len(nodes), func(n int) {
		for i, info := range nodes[n].GetPods() {
			i += begin[n]
			one := v.see(info, gang, cluster)
			one.node = n
			if cluster.ahead.assumed.Has(info.GetPod().UID) {
				one.state = expected
			}
			if one.byItself {
				width := len(amounts.names)
				one.request = amounts.add(requests[i*width:i*width:(i+1)*width], info.CalculateResource().Resource, 1)
			}
			v.all[i] = one
		}
	}, cluster.Plugin)
	if err := ctx.Err(); err != nil { // Until has stopped early
		return nil, fmt.Errorf("looking at the Pods on nodes: %w", err)
	}
	return v, nil
}

// see returns what the gang sees of a Pod, without the fields node and request, and without the state expected.
func (v *sight) see(info fwk.PodInfo, gang *Gang, cluster *Cluster) seen {
	pod, one := info.GetPod(), seen{info: info}
	if key, named := cluster.KeyOf(pod); named {
		one.own = key == gang.Key && gang.Group.HasMember(pod)
		if standing := v.standings[key]; standing != nil && !one.own && standing.Group.HasMember(pod) {
			one.of = standing
		}
	}
	switch {
	case cluster.Evictions.IsLeaving(pod, v.now):
		one.state = leaving
	case pod.DeletionTimestamp != nil:
		one.state = overstaying
	}
	if !gang.First || one.own || !endsByItself(pod, one.of) {
		return one
	}
	one.byItself, one.ran = true, victims.Ran(pod, v.now)
	if one.of == nil {
		one.in = timeLeft(ends.OfPod(pod, v.now).Until(cluster.Estimates), v.now)
	}
	return one
}
