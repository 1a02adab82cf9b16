// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package place

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/lockstep-k8s/lockstep/podgroup"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/kube"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/planner"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/provision"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/room"
)

// A group may announce what all of its members take, including members that are still to come (package provision). Such
// a gang starts only if the announced members have a place, too: they are planned as virtual members, Pods that exist
// only in the snapshot. After the start their places become a reservation, which shrinks as members arrive.

// isServedBy reports whether the gang has its minima if the members in `more`, which may be virtual, are placed in
// addition to those placed already.
func (g *Gang) isServedBy(more podgroup.Tally) bool {
	if g.needsAll {
		return int(more.Total) >= len(g.Waiting)
	}
	return g.Group.HeldBy(g.Placed, more)
}

// minima returns what the gang needs, for the planner.
func (g *Gang) minima() (all int, roles map[string]int) {
	if g.needsAll {
		return len(g.Waiting), nil
	}
	minimum := &g.Group.Spec.Minimum
	roles = make(map[string]int, len(minimum.Roles))
	for role, least := range minimum.Roles {
		roles[role] = max(0, int(least-g.Placed.Roles[role]))
	}
	return max(0, int(minimum.Members-g.Placed.Total)), roles
}

// announces reports whether the gang is starting and has announced members.
func (g *Gang) announces() bool { return g.Starts && !g.ToCome.IsZero() }

// starting returns the gang that has to be placed for the start. If spec.provision asks for no more than the minimum,
// this is the gang itself. Otherwise, virtual members stand for the members that do not exist yet. Existing members
// that neither the minimum nor spec.provision includes are left out: they get a place later.
func (g *Gang) starting() *Gang {
	if !g.announces() {
		return g
	}
	least, placed, takes := 0, g.Placed.Plus(podgroup.Tally{}), make(provision.Amounts)
	for ; least < len(g.Waiting) && !(g.Group.HeldBy(placed) && g.ToCome.Less(takes).IsZero()); least++ {
		pod := g.Waiting[least]
		takes.Add(provision.OfPod(pod))
		placed.Add(g.Key.RoleOf(pod), 1)
	}
	if placed.Add(g.Key.RoleOf(g.Waiting[least-1]), -1); !g.Group.HeldBy(placed) && g.ToCome.Less(takes).IsZero() {
		return g // nothing is announced beside the minimum
	}
	return g.withVirtual(least, takes)
}

// withVirtual returns a copy of the gang that waits for the first n of its waiting members, and for virtual members,
// which stand for announced members that do not exist yet. All of them need a place. The waiting members after the
// first n are left out. `takes` is what the first n members request together.
func (g *Gang) withVirtual(n int, takes provision.Amounts) *Gang {
	with := *g
	with.needsAll = true
	with.Waiting, with.ClassKeys = slices.Clone(g.Waiting[:n]), slices.Clone(g.ClassKeys[:n])
	virtual, keys := g.virtualMembers(n, takes)
	with.Waiting, with.ClassKeys = append(with.Waiting, virtual...), append(with.ClassKeys, keys...)
	with.virtual = make(sets.Set[types.UID], len(virtual))
	for _, pod := range virtual {
		with.virtual.Insert(pod.UID)
	}
	// Announced members may never come, and evicted work does not come back.
	with.MayPreempt = g.MayPreempt && (len(virtual) == 0 || *g.Terms.Preemption)
	return &with
}

// rest returns what the virtual members take.
func (g *Gang) rest() provision.Amounts {
	rest := make(provision.Amounts)
	for _, pod := range g.Waiting {
		if g.virtual.Has(pod.UID) {
			rest.Add(provision.OfPod(pod))
		}
	}
	return rest
}

// virtualMembers returns a gang's virtual members and their class keys. It presumes that the first n waiting members,
// which request the amounts `takes` together, are placed.
func (g *Gang) virtualMembers(n int, takes provision.Amounts) (members []*corev1.Pod, keys []string) {
	model := g.model()
	cut := provision.Cut(g.ToCome.Less(takes), provision.OfPod(model), g.stillToCome(n))
	for i, each := range cut {
		members = append(members, g.virtualMember(model, i, each))
		if i > 0 && each.Equal(cut[i-1]) {
			keys = append(keys, keys[i-1]) // a key takes long to make
		} else {
			keys = append(keys, ClassKey(members[i], ""))
		}
	}
	return members, keys
}

// model returns the largest member, after which virtual members are modelled.
func (g *Gang) model() *corev1.Pod {
	return slices.MaxFunc(g.Waiting, func(a, b *corev1.Pod) int { return provision.OfPod(a).Compare(provision.OfPod(b)) })
}

// stillToCome returns how many members are to come after n waiting members are placed, at least 1; 0 if the total
// number of members is unknown.
func (g *Gang) stillToCome(n int) int {
	all := g.Group.Spec.Provision.Members
	for _, pod := range g.Waiting {
		all = max(all, dialect.SizeOn(pod))
	}
	if all == 0 {
		return 0
	}
	return max(1, all-int(g.Placed.Total)-n)
}

// virtualMember returns the i-th virtual member, a copy of model that requests the amounts `takes`. The copy has no
// needs that only one Pod can have, such as claims, and no affinity between Pods. It has the model's labels and
// annotations, so that plugins treat it as a member of the gang, which may use the gang's reservation.
func (g *Gang) virtualMember(model *corev1.Pod, i int, takes provision.Amounts) *corev1.Pod {
	of := &model.Spec
	name := g.Key.Name + "-to-come-" + strconv.Itoa(i)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: g.Key.Namespace, Name: name, Labels: model.Labels, Annotations: model.Annotations,
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

// reserveToCome returns the gang's reservation for members to come, given the placements in the snapshot; nil for none.
// At the gang's start, the reservation has the places of the virtual members. Later, it is what is left of the earlier
// reservation: the part that spec.provision still asks for and that still has room.
func (g *Gang) reserveToCome(cluster *Cluster, placed *verification) *room.Reservation {
	takes := make(provision.Amounts)
	var toCome []*framework.PodInfo
	for _, p := range placed.placements {
		if placed.gang.virtual.Has(p.Pod.UID) {
			toCome = append(toCome, p.Assumed)
		} else {
			takes.Add(provision.OfPod(p.Pod))
		}
	}
	switch {
	case len(toCome) > 0 && g.timeout() > 0:
		return room.New(room.Gang{Rank: g.Rank, UID: g.Group.UID}, room.MembersToCome, toCome, nil, cluster.Now().Add(g.timeout()))
	case !g.Starts && cluster.ownToCome():
		return cluster.Own.Within(g.ToCome.Less(takes), cluster.Snapshot)
	}
	return nil
}

// timeout returns how long room is reserved for members to come. A PodGroup can only shorten the configured time.
func (g *Gang) timeout() time.Duration {
	if asked := g.Group.Spec.Provision.Timeout; asked > 0 {
		return min(asked, g.Terms.Timeout.Duration)
	}
	return g.Terms.Timeout.Duration
}

// ownToCome reports whether the gang has a reservation for members to come.
func (c *Cluster) ownToCome() bool { return c.Own != nil && c.Own.Reason == room.MembersToCome }

// maxToCome and maxToComeInAll limit the members to come for which room is reserved at the same time, in one namespace
// and in all. The limits exist because the cycle of each gang behind goes through these members one by one. A namespace
// gets at most half of what the others leave of maxToComeInAll, so that a few namespaces can't use up all of it.
const (
	maxToCome      = 2000
	maxToComeInAll = 10000
)

// toComeLeft returns for how many more members to come the gang's namespace may reserve room. If room is reserved for n
// members of the namespace and m of others, the result is min(2000, (10,000 - m) / 2) - n, but not below 0.
func (c *Cluster) toComeLeft() int64 {
	own := c.ToCome[corev1.ResourcePods]
	others := int64(c.AllToCome) - own
	return max(0, min(maxToCome, (maxToComeInAll-others)/2)-own)
}

// exceeds returns a message if more is to be reserved for members to come than is allowed, otherwise "".
func (g *Gang) exceeds(cluster *Cluster) string {
	if len(g.virtual) == 0 || g.timeout() == 0 {
		return ""
	}
	if left := cluster.toComeLeft(); int64(len(g.virtual)) > left {
		return fmt.Sprintf("room is to be reserved for %d members to come, and may be for %d more: for %d at most in a namespace, for no more than half of what others leave of %d in all",
			len(g.virtual), left, maxToCome, maxToComeInAll)
	}
	rest := g.rest()
	for _, share := range []struct {
		percent int64
		taken   provision.Amounts
		of      string
	}{
		{int64(*g.Terms.NamespaceMaxPercent), cluster.ToCome, "for groups of its namespace"},
		{cluster.MaxPercent, cluster.Reserved, "in all"},
	} {
		left := ShareOf(cluster.Snapshot, share.percent).Less(share.taken)
		for _, name := range slices.Sorted(maps.Keys(rest)) {
			if rest[name] > left[name] {
				return fmt.Sprintf("%s is to be reserved for members to come, and of the %d%% of the cluster that may be reserved %s %s is left",
					provision.Amounts{name: rest[name]}, share.percent, share.of, provision.Amounts{name: left[name]})
			}
		}
	}
	return ""
}

// ShareOf returns a percentage of what all nodes have, including places for Pods.
func ShareOf(cluster kube.Snapshot, percent int64) provision.Amounts {
	all := make(provision.Amounts)
	nodes, err := cluster.List()
	if err != nil {
		return all
	}
	for _, node := range nodes {
		all.Add(room.AmountsOf(node.GetAllocatable(), int64(node.GetAllocatable().GetAllowedPodNumber())))
	}
	for name, amount := range all {
		all[name] = amount/100*percent + amount%100*percent/100
	}
	return all
}

// preferFirst ranks nodes first where room is reserved for the gang's members to come, or that are vacated for the gang.
func preferFirst(a *attempt, world *planner.World) {
	const first = 1 << 32 // more than any score
	kept := a.cluster.ownToCome() && !a.shares
	if !kept && len(a.vacated) == 0 {
		return
	}
	for n := range world.Nodes {
		if node := &world.Nodes[n]; kept && a.cluster.Own.IsOn(node.Name) || a.vacated.Has(node.Name) {
			node.Preferred += first
		}
	}
}
