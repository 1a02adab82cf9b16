// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package place

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/lockstep-k8s/lockstep/podgroup"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/kube"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/planner"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/provision"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/room"
)

// A gang may ask for room that is kept for members which are still to come (package provision).
// They are planned as virtual members: Pods that are nowhere but in the snapshot, and then in a
// room.Provision. At its start a gang that is strict has its place only if all of them have one,
// too. From then on, members that come have a place wherever there is one, that room among it,
// and for the rest as much is kept as there is.

// needs says what of a gang has to have a place.
type needs int

const (
	// needsMinimum: what its group asks for.
	needsMinimum needs = iota
	// needsAll: all that waits, virtual members among it.
	needsAll
	// needsAny: nothing. As much as fits is placed.
	needsAny
)

// isServedBy says whether the gang has what it needs when more members are placed, virtual ones
// among them.
func (g *Gang) isServedBy(more podgroup.Tally) bool {
	switch g.needs {
	case needsAll:
		return int(more.Total) >= len(g.Waiting)
	case needsAny:
		return true
	case needsMinimum:
	}
	return g.Group.HeldBy(g.Placed.Plus(more))
}

// minima are what the gang needs, for the planner.
func (g *Gang) minima() (all int, roles map[string]int) {
	switch g.needs {
	case needsAll:
		return len(g.Waiting), nil
	case needsAny:
		return 0, nil
	}
	minimum := &g.Group.Spec.Minimum
	roles = make(map[string]int, len(minimum.Roles))
	for role, least := range minimum.Roles {
		roles[role] = max(0, int(least-g.Placed.Roles[role]))
	}
	return max(0, int(minimum.Members-g.Placed.Total)), roles
}

// provides says whether room is kept for the gang from when it starts.
func (g *Gang) provides(cluster *Cluster) bool {
	due := g.Provision
	return due != nil && due.Longest > 0 && (due.End.IsZero() || cluster.Now().Before(due.End))
}

// candidates are the gang in the ways in which it may start: as it is, or, if it asks for room for
// members to come, with virtual members. First with all that waits; then with no more than what
// it has asked for, as members above that are no reason to wait.
func (g *Gang) candidates() []*Gang {
	due := g.Provision
	if due == nil || due.Started || due.Mode != provision.Strict || len(g.Waiting) == 0 {
		return []*Gang{g}
	}
	takes, sum := make([]provision.Amounts, len(g.Waiting)), make(provision.Amounts)
	placed := g.Placed.Plus(podgroup.Tally{})
	least, minimum := len(g.Waiting), len(g.Waiting)
	for i, pod := range g.Waiting {
		if g.Group.HeldBy(placed) {
			minimum = min(minimum, i)
			if due.RestWith(sum).IsZero() {
				least = min(least, i)
			}
		}
		takes[i] = provision.OfPod(pod)
		sum.Add(takes[i])
		placed.Add(g.Key.RoleOf(pod), 1)
	}
	if minimum == least && due.RestWith(sum).IsZero() {
		return []*Gang{g} // nothing is asked for beside the minimum
	}
	all := []*Gang{g.withVirtual(len(g.Waiting), sum)}
	if least < len(g.Waiting) {
		sum = make(provision.Amounts)
		for _, t := range takes[:least] {
			sum.Add(t)
		}
		all = append(all, g.withVirtual(least, sum))
	}
	return all
}

// withVirtual is the gang with the first n of its members, which take so much, and with virtual
// members for the rest. It needs all of them.
func (g *Gang) withVirtual(n int, takes provision.Amounts) *Gang {
	with := *g
	with.needs = needsAll
	with.Waiting, with.ClassKeys = slices.Clone(g.Waiting[:n]), slices.Clone(g.ClassKeys[:n])
	virtual, keys := g.virtualMembers(n, takes)
	with.Waiting, with.ClassKeys = append(with.Waiting, virtual...), append(with.ClassKeys, keys...)
	with.virtual = uids(virtual)
	return &with
}

// split are the real and the virtual members, each as a gang that needs all of them.
func (g *Gang) split() (real, virtual *Gang) {
	r, v := *g, *g
	r.Waiting, r.ClassKeys, v.Waiting, v.ClassKeys = nil, nil, nil, nil
	for i, pod := range g.Waiting {
		part := &r
		if g.virtual.Has(pod.UID) {
			part = &v
		}
		part.Waiting, part.ClassKeys = append(part.Waiting, pod), append(part.ClassKeys, g.ClassKeys[i])
	}
	r.virtual = nil
	return &r, &v
}

// rest is what the virtual members take.
func (g *Gang) rest() provision.Amounts {
	rest := make(provision.Amounts)
	for _, pod := range g.Waiting {
		if g.virtual.Has(pod.UID) {
			rest.Add(provision.OfPod(pod))
		}
	}
	return rest
}

// takes is what all members take, virtual ones among them.
func (g *Gang) takes() provision.Amounts {
	sum := make(provision.Amounts)
	for _, pod := range g.Waiting {
		sum.Add(provision.OfPod(pod))
	}
	return sum
}

// virtualMembers are the virtual members of a gang when n of its members are placed, which
// take so much, and their class keys.
func (g *Gang) virtualMembers(n int, takes provision.Amounts) (members []*corev1.Pod, keys []string) {
	for _, alike := range g.Provision.Cut(n, takes) {
		key := ""
		for range alike.Count {
			pod := g.virtualMember(len(members), alike.Each)
			if key == "" {
				key = ClassKey(pod, "")
			}
			members, keys = append(members, pod), append(keys, key)
		}
	}
	return members, keys
}

// virtualMember is the i-th virtual member. It wants of a node what the model does, but for what
// only one Pod can have, and for what Pods want of each other. It names its gang as the model does, by a label or
// an annotation: the plugins would keep any other Pod out of the gang's own room.
func (g *Gang) virtualMember(i int, takes provision.Amounts) *corev1.Pod {
	of := &g.Provision.Model.Spec
	name := g.Key.Name + "-to-come-" + strconv.Itoa(i)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: g.Key.Namespace, Name: name, Labels: g.Provision.Model.Labels, Annotations: g.Provision.Model.Annotations,
			UID: provision.UID(g.Group.UID, i)},
		Spec: corev1.PodSpec{
			SchedulerName: of.SchedulerName, NodeSelector: of.NodeSelector, Tolerations: of.Tolerations,
			Priority: of.Priority, PreemptionPolicy: of.PreemptionPolicy, RestartPolicy: of.RestartPolicy,
			Containers: []corev1.Container{{Name: "to-come", Resources: corev1.ResourceRequirements{Requests: takes.List()}}},
		},
	}
	if of.Affinity != nil && of.Affinity.NodeAffinity != nil {
		pod.Spec.Affinity = &corev1.Affinity{NodeAffinity: of.Affinity.NodeAffinity}
	}
	return pod
}

func uids(pods []*corev1.Pod) sets.Set[types.UID] {
	all := make(sets.Set[types.UID], len(pods))
	for _, pod := range pods {
		all.Insert(pod.UID)
	}
	return all
}

// provided is what has come of seeking room for members to come.
type provided struct {
	// claim is what the gang is to have from now on, nil for none.
	claim room.Claim
	// rest is for how much room was sought, if it was. If not, the claim is what is left of the one that the
	// gang had, and err is why; nil if the turn took too long.
	rest   provision.Amounts
	sought bool
	err    error
}

// tell puts it into an outcome.
func (p provided) tell(out *Outcome) {
	out.Claim, out.Rest, out.SoughtRest, out.RestErr = p.claim, p.rest, p.sought, p.err
}

// provide is the claim that a gang has from when its members are placed, which are in the snapshot:
// as many virtual members for the rest as have room. It is nil if there is none, or none is to be
// kept.
func (g *Gang) provide(ctx context.Context, cluster *Cluster, placed *verification) provided {
	takes, real := make(provision.Amounts), 0
	var assumed []*framework.PodInfo
	var nodes []string
	for _, p := range placed.placements {
		if placed.gang.virtual.Has(p.Pod.UID) {
			assumed = append(assumed, p.Assumed)
			continue
		}
		takes.Add(provision.OfPod(p.Pod))
		real++
		nodes = append(nodes, p.Node)
	}
	rest := g.Provision.RestWith(takes)
	if !g.provides(cluster) {
		return provided{rest: rest, sought: true}
	}
	end := g.Provision.End
	if real > 0 {
		end = g.Provision.EndWith(cluster.Now())
	}
	if len(assumed) == 0 && !rest.IsZero() {
		virtual := *g
		virtual.needs = needsAny
		virtual.Nodes = append(slices.Clone(g.Nodes), nodes...)
		virtual.Waiting, virtual.ClassKeys = g.virtualMembers(real, takes)
		virtual.virtual = uids(virtual.Waiting)
		virtual.keepWithin(cluster)
		var err error
		if assumed, err = virtual.places(ctx, cluster); err != nil {
			if errors.Is(err, errOverdue) {
				err = nil // the members have their place all the same
			}
			return provided{claim: leftOf(cluster, rest, end), err: err}
		}
	}
	if len(assumed) == 0 {
		return provided{rest: rest, sought: true}
	}
	return provided{claim: room.NewProvision(room.Gang{Rank: g.Rank, UID: g.Group.UID}, assumed, end), rest: rest, sought: true}
}

// leftOf is what is left of the claim that the gang has, nil for none, when no more is to be kept than a rest.
func leftOf(cluster *Cluster, rest provision.Amounts, end time.Time) room.Claim {
	if own, ok := cluster.Own.(*room.Provision); ok {
		if left := own.Within(rest, cluster.Snapshot, end); left != nil {
			return left
		}
	}
	return nil
}

// places are the places that members of the gang have in the snapshot as it is, as far as there are
// any. The snapshot is as before then. On an error, and if that takes too long, nobody knows them.
func (g *Gang) places(ctx context.Context, cluster *Cluster) ([]*framework.PodInfo, error) {
	if len(g.Waiting) == 0 {
		return nil, nil
	}
	placed, _, err := newAttempt(g, cluster, make(rejections)).plan(ctx)
	if err != nil || placed == nil {
		return nil, err
	}
	found := places(placed.placements)
	placed.undo(ctx)
	return found, nil
}

// provideOn is provide when no member has found a place. The claim that the gang has stays as it is if
// it is for as much, no more than its namespace may have, and its room is there.
func (g *Gang) provideOn(ctx context.Context, cluster *Cluster) provided {
	rest := g.Provision.Rest()
	own, ok := cluster.Own.(*room.Provision)
	if ok && g.provides(cluster) && own.Held().Equal(rest.WithoutPods()) && own.ToCome().Within(g.share(cluster)) && own.Stands(cluster.Snapshot) {
		return provided{claim: own, rest: rest, sought: true}
	}
	return g.provide(ctx, cluster, &verification{gang: g})
}

// Provide seeks room for the members of a gang that are still to come, when no place is sought for members
// that wait. Of the outcome only Claim, Rest, SoughtRest and RestErr are set.
func Provide(ctx context.Context, gang Gang, cluster Cluster) Outcome {
	out := Outcome{Claim: cluster.Own}
	ahead, err := respect(cluster.Ahead, cluster.Snapshot, &gang)
	defer ahead.leave(ctx)
	if err != nil {
		out.RestErr = err
		return out
	}
	cluster.Nominated = gang.notOutranked(cluster.Nominated)
	gang.provideOn(ctx, &cluster).tell(&out)
	return out
}

// maxProviding is for how many groups of a namespace room is kept at most at the same time: all others
// look at what is kept.
const maxProviding = 100

// For how many members to come room is kept at most at the same time: of the groups of a namespace, and of
// all. Each turn of a gang that is behind finds them in the cluster, one by one. No namespace has more than half
// of what others leave of all, so a few namespaces that ask for nothing but places leave some for the next.
const (
	maxToCome      = 2000
	maxToComeInAll = 10000
)

// toComeLeft is for how many more members room may be kept. With what its namespace has, n, and what others
// have, m, it is at most min(2000, (10,000 - m) / 2) - n.
func (c *Cluster) toComeLeft() int64 {
	own := c.Provided[corev1.ResourcePods]
	others := int64(c.ToCome) - own
	return max(0, min(maxToCome, (maxToComeInAll-others)/2)-own)
}

// exceeds says for what a gang has to wait if it asks for more than may be kept for its namespace, and is empty
// otherwise.
func (g *Gang) exceeds(cluster *Cluster) string {
	if len(g.virtual) == 0 || g.Provision.Longest == 0 {
		return ""
	}
	if cluster.Providing >= maxProviding {
		return fmt.Sprintf("room is kept for members to come of %d groups of its namespace, which are as many as may have that", cluster.Providing)
	}
	if left := cluster.toComeLeft(); int64(len(g.virtual)) > left {
		return fmt.Sprintf("room is to be kept for %d members to come, and may be for %d more: for %d at most in a namespace, for no more than half of what others leave of %d in all",
			len(g.virtual), left, maxToCome, maxToComeInAll)
	}
	left, rest := g.share(cluster), g.rest()
	for _, name := range slices.Sorted(maps.Keys(rest)) {
		amount := rest[name]
		if amount <= left[name] {
			continue
		}
		return fmt.Sprintf("%s is to be kept for members to come, and of the %d%% of the cluster that may be kept for groups of its namespace %s is left",
			provision.Amounts{name: amount}, g.Provision.Percent, provision.Amounts{name: left[name]})
	}
	return ""
}

// share is how much may be kept for the gang: its namespace's share of the cluster without what is kept
// for others of that, and for no more members than may have room kept.
func (g *Gang) share(cluster *Cluster) provision.Amounts {
	left := ShareOf(cluster.Snapshot, g.Provision.Percent).Less(cluster.Provided)
	left[corev1.ResourcePods] = min(left[corev1.ResourcePods], cluster.toComeLeft())
	return left
}

// ShareOf is percent of what all nodes have, places for Pods among it.
func ShareOf(cluster kube.Snapshot, percent int64) provision.Amounts {
	all := make(provision.Amounts)
	nodes, err := cluster.List()
	if err != nil {
		return all
	}
	for _, node := range nodes {
		has := node.GetAllocatable()
		all[corev1.ResourceCPU] += has.GetMilliCPU()
		all[corev1.ResourceMemory] += has.GetMemory()
		all[corev1.ResourceEphemeralStorage] += has.GetEphemeralStorage()
		all[corev1.ResourcePods] += int64(has.GetAllowedPodNumber())
		for name, amount := range has.GetScalarResources() {
			all[name] += amount
		}
	}
	for name, amount := range all {
		all[name] = amount/100*percent + amount%100*percent/100
	}
	return all
}

// keepWithin leaves out the members that would take more than may be kept.
func (g *Gang) keepWithin(cluster *Cluster) {
	if cluster.Providing >= maxProviding {
		g.Waiting, g.ClassKeys = nil, nil
		return
	}
	left := g.share(cluster)
	for i, pod := range g.Waiting {
		takes := provision.OfPod(pod)
		if !takes.Within(left) {
			g.Waiting, g.ClassKeys = g.Waiting[:i], g.ClassKeys[:i]
			return
		}
		left = left.Less(takes)
	}
}

// explainRest says why a gang did not start that asks for room for members to come.
func (a *attempt) explainRest(why *Shortfall) {
	if a.found.gang == nil || why.Overdue {
		return
	}
	real, _ := a.gang.split()
	rest := a.gang.rest().WithoutPods()
	least := *a.found.gang
	least.Classes, least.Min = nil, len(real.Waiting)
	found := &survey{world: a.found.world, gang: &least}
	for c, class := range a.found.classes {
		if !a.gang.virtual.Has(class.members[0].UID) {
			least.Classes = append(least.Classes, withoutRepels(a.found.gang.Classes[c]))
			found.classes = append(found.classes, class)
		}
	}
	for range planner.Plans(a.found.world, &least) {
		why.Message = fmt.Sprintf("there is room for its %d members, but not for all of %s that it asks to have kept", len(real.Waiting), rest)
		if len(real.Waiting) == 1 {
			why.Message = fmt.Sprintf("there is room for its 1 member, but not for all of %s that it asks to have kept", rest)
		}
		if !a.gang.takes().WithoutPods().Within(ShareOf(a.cluster.Snapshot, 100)) {
			why.Message += ", which is more than all nodes have"
		} else if short := planner.Explain(a.found.world, a.found.gang); short.Resource != "" && short.Missing > 0 {
			why.Message += fmt.Sprintf("; short of %s %s", quantity(short.Resource, short.Missing), short.Resource)
		}
		return
	}
	why.Message = describe(found, planner.Explain(a.found.world, &least))
}

// withoutRepels is a class whose members share nodes with all others: the others are not all there.
func withoutRepels(class planner.Class) planner.Class {
	class.Repels = nil
	return class
}

// preferKept has nodes be filled first where room is kept for the gang's members to come: so they have that,
// and what is kept for the others need not move.
func (a *attempt) preferKept(nodes []fwk.NodeInfo, world *planner.World) {
	own, ok := a.cluster.Own.(*room.Provision)
	if !ok || a.shares {
		return
	}
	const first = 1 << 32 // more than any score
	for n, node := range nodes {
		if own.IsOn(node.Node().Name) {
			world.Nodes[n].Score += first
		}
	}
}
