// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package place

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/lockstep-k8s/lockstep/podgroup"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/planner"
)

// The planner counts resources. Of what members want of each other, the planner knows only which have to share a node.
// Where its plans fail, members are placed one by one, as kube-scheduler places Pods without a group: each member on
// the node that the profile's plugins score highest, with the members before assumed there. Several orders are tried. A
// member that finds no place comes first in the next order.
//
// Members that required affinity connects are a party. If a party finds no place that way, all of the party is tried in
// each domain of the affinity's topology, since the first member may prefer a domain without room for the others.

// maxOrders is how many orders are tried at most on a set of nodes.
const maxOrders = 8

// maxScored is how many nodes are scored at most for a member.
const maxScored = 400

// member is a member of a gang, with its class.
type member struct {
	class *class
	pod   *corev1.Pod
	nth   int // in the order of the gang's members
}

// party is a set of members that are connected by required Pod affinity. keys are the topology keys of that affinity.
type party struct {
	members []member
	keys    []string
}

// oneByOne places members one by one.
type oneByOne struct {
	*verification
	// until is when to give up, which may be before the cycle ends.
	until deadline
	// packs puts each member on the first node that accepts the member, and not on the node with the highest score.
	packs bool
}

// membersOf returns the members of classes, in the gang's order.
func (v *verification) membersOf(count func(class int) int) []member {
	nth := make(map[*corev1.Pod]int, len(v.gang.Waiting))
	for i, pod := range v.gang.Waiting {
		nth[pod] = i
	}
	var members []member
	for c, class := range v.found.classes {
		for _, pod := range class.members[:count(c)] {
			members = append(members, member{class, pod, nth[pod]})
		}
	}
	slices.SortFunc(members, func(a, b member) int { return cmp.Compare(a.nth, b.nth) })
	return members
}

// orders returns the orders that are tried first: the gang's order of the members, and the orders by class in which the
// planner packs.
func (v *verification) orders(members []member, nodes []int) [][]member {
	orders := [][]member{members}
	for _, classes := range planner.Orders(v.found.world, v.found.gang, nodes) {
		nth := make(map[*class]int)
		for i, c := range classes {
			nth[v.found.classes[c]] = i
		}
		byClass := slices.Clone(members)
		slices.SortStableFunc(byClass, func(a, b member) int { return cmp.Compare(nth[a.class], nth[b.class]) })
		orders = append(orders, byClass)
	}
	return orders
}

// place tries one order of the members after another, until `enough` accepts the members that found no place. If it
// returns false, no member is left placed.
func (o *oneByOne) place(ctx context.Context, members []member, nodes []int, enough func(left []member) bool) (bool, error) {
	if err := o.late(); err != nil {
		return false, o.unlessLate(err)
	}
	orders := o.orders(members, nodes)
	tried := make(map[string]bool)
	for n := 0; n < len(orders) && n < maxOrders; n++ {
		order := orders[n]
		if name := nameOf(order); tried[name] {
			continue
		} else {
			tried[name] = true
		}
		stuck, err := o.inOrder(ctx, order, nodes, enough)
		if stuck == nil && err == nil {
			return true, nil
		}
		o.undo(ctx)
		if err != nil {
			return false, o.unlessLate(err)
		}
		orders = append(orders, front(order, stuck))
	}
	return false, nil
}

// late returns an error if the time for placing members one by one is over.
func (o *oneByOne) late() error {
	if o.until.isOver() {
		return errOverdue
	}
	return nil
}

// unlessLate returns nil for an error that only says that the time for placing members one by one is over. It returns
// other errors as they are.
func (o *oneByOne) unlessLate(err error) error {
	if errors.Is(err, errOverdue) && !o.verification.until.isOver() {
		return nil
	}
	return err
}

// nameOf returns a key that is equal for orders with the same sequence of classes.
func nameOf(order []member) string {
	var b strings.Builder
	for _, m := range order {
		fmt.Fprintf(&b, "%p ", m.class)
	}
	return b.String()
}

// front returns an order with some of its members moved to the front.
func front(order, some []member) []member {
	isFirst := make(map[*corev1.Pod]bool, len(some))
	for _, m := range some {
		isFirst[m.pod] = true
	}
	first := make([]member, 0, len(order))
	var rest []member
	for _, m := range order {
		if isFirst[m.pod] {
			first = append(first, m)
		} else {
			rest = append(rest, m)
		}
	}
	return append(first, rest...)
}

// inOrder places members in an order, party by party. stuck is nil if enough members are placed. Otherwise it is the
// party that found no place, or the whole order if no single party is the reason.
func (o *oneByOne) inOrder(ctx context.Context, order []member, nodes []int, enough func(left []member) bool) (stuck []member, err error) {
	all, err := o.parties(order, nil)
	if err != nil {
		return nil, err
	}
	var homeless []member
	for _, p := range all {
		settled, err := o.settle(ctx, p, nodes)
		if err != nil {
			return nil, err
		}
		if settled {
			continue
		}
		left := p.members
		if len(left) > 1 { // as many of them as have a place
			if left, err = o.walk(ctx, p.members, nodes); err != nil {
				return nil, err
			}
		}
		if homeless = append(homeless, left...); !enough(homeless) {
			return p.members, nil
		}
	}
	if len(homeless) > 0 { // the others may have what they need by now
		if homeless, err = o.walk(ctx, homeless, nodes); err != nil {
			return nil, err
		}
	}
	if len(o.placements) == 0 || !enough(homeless) {
		return order, nil
	}
	return nil, nil
}

// settle places a whole party. If the nodes have no place for the party, settle tries each domain of the party's
// topologies. If it returns false, no member of the party is left placed.
func (o *oneByOne) settle(ctx context.Context, p party, nodes []int) (bool, error) {
	mark := len(o.placements)
	left, err := o.walk(ctx, p.members, nodes)
	if err != nil || len(left) == 0 {
		return err == nil, err
	}
	o.undoTo(ctx, mark)
	for _, key := range p.keys {
		parts, err := o.parties(p.members, []string{key})
		if err != nil {
			return false, err
		}
		for _, domain := range o.domains(key, p.members, nodes) {
			if settled, err := o.settleAll(ctx, parts, domain); settled || err != nil {
				return settled, err
			}
			o.undoTo(ctx, mark)
		}
	}
	return false, nil
}

// settleAll settles several parties.
func (o *oneByOne) settleAll(ctx context.Context, all []party, nodes []int) (bool, error) {
	left, err := asLongAsItHelps(all, func(p party) (bool, error) { return o.settle(ctx, p, nodes) })
	return err == nil && len(left) == 0, err
}

// asLongAsItHelps calls place for each element, and again for those that failed, until a round places no more. It
// returns the elements without a place.
func asLongAsItHelps[T any](all []T, place func(T) (bool, error)) ([]T, error) {
	for {
		var left []T
		for _, one := range all {
			placed, err := place(one)
			if err != nil {
				return nil, err
			}
			if !placed {
				left = append(left, one)
			}
		}
		if len(left) == 0 || len(left) == len(all) {
			return left, nil
		}
		all = left
	}
}

// domains returns the domains of a topology, each as the indexes of its nodes. It leaves out domains that can't have
// room for the members, and returns the domain with most room first.
func (o *oneByOne) domains(key string, members []member, nodes []int) [][]int {
	var all [][]int
	index := make(map[string]int)
	for _, n := range nodes {
		info, err := o.cluster.Snapshot.Get(o.found.world.Nodes[n].Name)
		if err != nil {
			continue
		}
		domain := info.Node().Labels[key]
		if domain == "" {
			continue
		}
		i, ok := index[domain]
		if !ok {
			i = len(all)
			index[domain] = i
			all = append(all, nil)
		}
		all[i] = append(all[i], n)
	}
	gang := o.partOf(members)
	all = slices.DeleteFunc(all, func(domain []int) bool { return o.late() != nil || planner.Exceeds(o.found.world, gang, domain) })
	room := make(map[int]int, len(all)) // by first node
	for _, domain := range all {
		room[domain[0]] = planner.Spare(o.found.world, gang, domain)
	}
	slices.SortStableFunc(all, func(a, b []int) int { return -cmp.Compare(room[a[0]], room[b[0]]) })
	return all
}

// partOf returns a gang for the planner that consists of some of the members only. All of them are needed.
func (v *verification) partOf(members []member) *planner.Gang {
	counts := make(map[*class]int)
	for _, m := range members {
		counts[m.class]++
	}
	part := &planner.Gang{Min: len(members)}
	for c, class := range v.found.classes {
		if counts[class] > 0 {
			of := v.found.gang.Classes[c]
			of.Count, of.Repels = counts[class], nil
			part.Classes = append(part.Classes, of)
		}
	}
	return part
}

// walk places members one after the other, and returns the members that found no place.
func (o *oneByOne) walk(ctx context.Context, members []member, nodes []int) ([]member, error) {
	return asLongAsItHelps(members, func(m member) (bool, error) { return o.put(ctx, m, nodes) })
}

// put places a member on one of some nodes, if the plugins accept one.
func (o *oneByOne) put(ctx context.Context, m member, nodes []int) (bool, error) {
	if err := o.late(); err != nil {
		return false, err
	}
	if o.packs {
		return o.search(ctx, m.class, m.pod, nodes)
	}
	state, allowed, err := o.filters.preFilter(ctx, m.class, m.pod)
	if err != nil || state == nil {
		return false, err
	}
	var admitted []fwk.NodeInfo
	for len(nodes) > 0 && len(admitted) < maxScored {
		var infos []fwk.NodeInfo
		for ; len(nodes) > 0 && len(infos) < maxScored; nodes = nodes[1:] {
			if !o.mayHold(m.class, nodes[0], allowed) {
				continue
			}
			if info, err := o.cluster.Snapshot.Get(o.found.world.Nodes[nodes[0]].Name); err == nil {
				infos = append(infos, info)
			}
		}
		some, err := o.admit(ctx, m, state, infos)
		if err != nil {
			return false, err
		}
		admitted = append(admitted, some...)
	}
	if admitted, err = bestFirst(ctx, m.class, m.pod, state, admitted); err != nil {
		return false, err
	}
	for _, info := range admitted {
		if ok, err := o.take(ctx, m.class, m.pod, info, state); ok || err != nil {
			return ok, err
		}
	}
	return false, nil
}

// admit returns the nodes that may hold a member.
func (o *oneByOne) admit(ctx context.Context, m member, state fwk.CycleState, infos []fwk.NodeInfo) ([]fwk.NodeInfo, error) {
	statuses := make([]*fwk.Status, len(infos))
	m.class.handle.Parallelizer().Until(ctx, len(infos), func(i int) {
		statuses[i] = o.admits(ctx, m.class, m.pod, infos[i], state)
	}, o.filters.name)
	var admitted []fwk.NodeInfo
	for i, status := range statuses {
		if status.IsSuccess() {
			admitted = append(admitted, infos[i])
		} else if err := o.note(m.class, infos[i].Node().Name, status); err != nil {
			return nil, err
		}
	}
	return admitted, nil
}

// parties divides members into parties, in their order. Topologies in `without` are ignored. The time grows with the
// number of classes times the number of affinity terms, so parties returns an error when the time is over.
func (o *oneByOne) parties(members []member, without []string) ([]party, error) {
	var classes []*class
	seen := make(map[*class]bool)
	for _, m := range members {
		if !seen[m.class] {
			seen[m.class] = true
			classes = append(classes, m.class)
		}
	}
	leader := make(map[*class]*class) // of the party of a class, if it is in one
	keys := make(map[*class][]string)
	for _, c := range classes {
		for i := range c.wants.Near {
			term := &c.wants.Near[i]
			if slices.Contains(without, term.Key) {
				continue
			}
			if err := o.late(); err != nil {
				return nil, err
			}
			for _, other := range classes {
				if !term.Matches(other.members[0]) {
					continue
				}
				a, b := cmp.Or(leader[c], c), cmp.Or(leader[other], other)
				if !slices.Contains(keys[a], term.Key) {
					keys[a] = append(keys[a], term.Key)
				}
				leader[c], leader[other] = a, a
				if a == b {
					continue
				}
				for of, l := range leader {
					if l == b {
						leader[of] = a
					}
				}
				for _, key := range keys[b] {
					if !slices.Contains(keys[a], key) {
						keys[a] = append(keys[a], key)
					}
				}
			}
		}
	}
	var all []party
	index := make(map[*class]int)
	for _, m := range members {
		l := leader[m.class]
		if l == nil {
			all = append(all, party{members: []member{m}})
			continue
		}
		i, ok := index[l]
		if !ok {
			i = len(all)
			index[l] = i
			all = append(all, party{keys: keys[l]})
		}
		all[i].members = append(all[i].members, m)
	}
	return all, nil
}

// sufficient returns a function that reports whether the gang's minimum holds if all given members are placed except
// those in left.
func (v *verification) sufficient(members []member) func(left []member) bool {
	return func(left []member) bool {
		more := podgroup.Tally{}
		gone := make(map[*corev1.Pod]bool)
		for _, m := range left {
			gone[m.pod] = true
		}
		for _, p := range v.placements {
			gone[p.Pod] = true
		}
		for _, m := range members {
			if !gone[m.pod] {
				more.Add(v.gang.Key.RoleOf(m.pod), 1)
			}
		}
		return v.wouldSuffice(more)
	}
}
