// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package whatif

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/lockstep-k8s/lockstep/internal/text"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/answers"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/ends"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/planner"
)

// Simulate returns where the waiting members of a gang would go. The answer says that they fit only if the Snapshot has
// all Pods of the cluster. Simulate returns false if the Snapshot has no group with the key.
func Simulate(s *Snapshot, key dialect.Key) (answers.Simulation, bool) {
	all := gangs(s)
	g := all[key]
	if g == nil {
		return answers.Simulation{}, false
	}
	answer := planned(s, all, g)
	answer.Unknown = append(answer.Unknown, append(slices.Clone(s.Lacks), reservationsUnknown)...)
	return answer, true
}

// reservationsUnknown is a sentence on what a simulation does not take into account.
const reservationsUnknown = "nodes that the scheduler has reserved for other gangs count as free"

// planned plans a gang on the nodes beside all known Pods. The answer says that the gang fits only if all Pods of the
// cluster are known.
func planned(s *Snapshot, all map[dialect.Key]*gang, g *gang) answers.Simulation {
	answer := place(s, all, g, s.Pods, true)
	if s.SomePods && (answer.Fits || answer.FitsAfterPreemption) && len(g.waiting) > 0 {
		// Unknown Pods may have taken the room.
		answer.Message = "whether there is room is not known, as you may not read all Pods; beside the Pods that you may read: " + answer.Message
		answer.Fits, answer.FitsAfterPreemption = false, false
	}
	return answer
}

// place plans a gang on the nodes beside the given Pods. `preempts` reports whether the gang may preempt others.
func place(s *Snapshot, all map[dialect.Key]*gang, g *gang, pods []*corev1.Pod, preempts bool) answers.Simulation {
	answer := answers.Simulation{Members: len(g.waiting)}
	least, _ := g.minima()
	answer.Needed = least
	switch {
	case s.NoPods:
		answer.Message = "whether there is room is not known, as the gang's Pods may not be read"
		return answer
	case g.group.IsHalted():
		answer.Message = g.group.Spec.Halt.Message
		return answer
	case !g.isComplete():
		answer.Message = incomplete(g)
		return answer
	case len(g.waiting) == 0:
		answer.Fits, answer.Message = true, "no member waits for a place"
		return answer
	}
	if s.NoNodes {
		answer.Message = "whether there is room is not known, as nodes may not be read"
		return answer
	}
	found, err := newSurvey(s.Nodes, pods, g)
	if err != nil {
		answer.Message = err.Error()
		return answer
	}
	answer.Unknown = append(unchecked(found.classes), s.LacksOf[g.group.Key]...)
	plan, fits, breaks := found.plan(g)
	switch {
	case fits:
		answer.Fits = true
		found.tell(&answer, plan)
		return answer
	case breaks:
		answer.Message = "there is room for the members, but no placement meets their affinity and anti-affinity to each other"
		return answer
	}
	short := planner.Explain(found.world, found.gang)
	answer.Needed, answer.Room = short.Needed, short.Placed
	answer.Obstacle = found.obstacle(short)
	lasting := slices.DeleteFunc(slices.Clone(pods), func(pod *corev1.Pod) bool { return !ends.WithNode(pod) })
	answer.Obstacle.TooLarge = found.tooLarge(short.Role, lasting)
	answer.Obstacle.RoomIfEmpty = found.roomIn(found.worldWith(append(lasting, g.placedPods()...)), short.Needed)
	answer.Message = describe(&answer)
	if preempts {
		preempt(found, s, all, g, pods, &answer)
	}
	return answer
}

// tell adds a plan to an answer.
func (s *survey) tell(answer *answers.Simulation, plan planner.Plan) {
	total := 0
	byPlace := make(map[answers.Placement]int)
	for _, a := range plan.Assignments {
		total += a.Count
		byPlace[answers.Placement{Node: s.nodes[a.Node].Name, Role: s.classes[a.Class].role}] += a.Count
	}
	placements := make([]answers.Placement, 0, len(byPlace))
	nodes := make(map[string]bool)
	for p, count := range byPlace {
		p.Count = count
		placements, nodes[p.Node] = append(placements, p), true
	}
	slices.SortFunc(placements, func(a, b answers.Placement) int {
		return cmp.Or(cmp.Compare(a.Role, b.Role), cmp.Compare(len(a.Node), len(b.Node)), cmp.Compare(a.Node, b.Node))
	})
	most := min(len(placements), answers.MaxPlacements)
	answer.Placements, answer.MorePlacements = placements[:most], len(placements)-most
	answer.Room = min(total, max(answer.Needed, 0))
	answer.Message = fmt.Sprintf("%d of %d members have room, on %s", total, answer.Members, text.Counted(len(nodes), "node"))
}

// obstacle returns why the planner has no plan.
func (s *survey) obstacle(short planner.Shortfall) *answers.Obstacle {
	o := &answers.Obstacle{Role: short.Role, Nodes: len(s.nodes), Resource: short.Resource}
	if short.Domain != "" {
		o.Domain = short.Key + "=" + short.Domain
	}
	if short.NoDomain {
		o.MissingLabel = short.Key
	}
	if short.Resource != "" {
		o.Missing = amount(short.Resource, short.Missing)
	}
	c := s.scarcest(short.Role)
	if c < 0 {
		return o
	}
	for n, node := range s.nodes {
		if !s.gang.Classes[c].Eligible[n] {
			continue
		}
		o.Eligible++
		if q, has := node.Status.Allocatable[corev1.ResourceName(short.Resource)]; has && !q.IsZero() {
			o.Offering++
		}
	}
	reasons := slices.Sorted(maps.Keys(s.reasons[c]))
	slices.SortStableFunc(reasons, func(a, b string) int { return -cmp.Compare(s.reasons[c][a], s.reasons[c][b]) })
	for _, reason := range reasons[:min(len(reasons), answers.MaxReasons)] {
		o.Reasons = append(o.Reasons, answers.NodesReason{Nodes: s.reasons[c][reason], Reason: reason})
	}
	return o
}

// tooLarge returns a class of a role whose members are too large for every node, even if only the Pods in `lasting` are
// there. It returns nil if there is no such class.
func (s *survey) tooLarge(role string, lasting []*corev1.Pod) *answers.TooLarge {
	empty := s.worldWith(lasting)
	for c := range s.classes {
		class := &s.gang.Classes[c]
		if class.Role != role || !slices.Contains(class.Eligible, true) {
			continue
		}
		most, fits := make([]int64, len(s.resources)), false
		for n, node := range empty.Nodes {
			if !class.Eligible[n] {
				continue
			}
			holds := true
			for r, request := range class.Request {
				most[r] = max(most[r], node.Free[r])
				holds = holds && request <= node.Free[r]
			}
			fits = fits || holds
		}
		if fits {
			continue
		}
		large := &answers.TooLarge{Role: role}
		for r, request := range class.Request {
			if request > most[r] {
				name := string(s.resources[r])
				large.Resource, large.Requested, large.Largest = name, amount(name, request), amount(name, most[r])
				break
			}
		}
		return large
	}
	return nil
}

// roomIn returns how many of the needed members find a place in a world.
func (s *survey) roomIn(world *planner.World, needed int) int {
	for range planner.Plans(world, s.gang) {
		return needed
	}
	return planner.Explain(world, s.gang).Placed
}

// scarcest returns the index of the class of a role that the fewest nodes may hold, -1 if the role has no members.
func (s *survey) scarcest(role string) int {
	best, fewest := -1, 0
	for c := range s.classes {
		n := 0
		for _, ok := range s.gang.Classes[c].Eligible {
			if ok {
				n++
			}
		}
		if s.classes[c].role == role && (best < 0 || n < fewest) {
			best, fewest = c, n
		}
	}
	return best
}

// describe returns a line on why a gang has no room.
func describe(answer *answers.Simulation) string {
	var b strings.Builder
	fmt.Fprintf(&b, "there is room for %d of the %d members that are needed", answer.Room, answer.Needed)
	o := answer.Obstacle
	if o.Domain != "" {
		fmt.Fprintf(&b, " in the best domain, %s", o.Domain)
	}
	switch {
	case o.MissingLabel != "":
		fmt.Fprintf(&b, "; no node that may hold them has the label %s", o.MissingLabel)
	case o.Eligible == 0 && len(o.Reasons) > 0:
		fmt.Fprintf(&b, "; none of %s may hold them: %s", text.Counted(o.Nodes, "node"), o.Reasons[0].Reason)
	case o.Nodes == 0:
		b.WriteString("; there are no nodes")
	case o.Resource != "" && o.Offering == 0:
		fmt.Fprintf(&b, "; they need %s more %s, and no node that may hold them has any", o.Missing, o.Resource)
	case o.TooLarge != nil:
		b.WriteString("; " + tooLarge(o.TooLarge))
	case o.Resource != "":
		fmt.Fprintf(&b, "; they need %s more %s", o.Missing, o.Resource)
		if o.Offering < o.Nodes {
			fmt.Fprintf(&b, ", and only %d of %s %s any", o.Offering, text.Counted(o.Nodes, "node"), text.Form(o.Offering, "has", "have"))
		}
	}
	if isFutile(answer) && o.TooLarge == nil && o.Offering > 0 {
		fmt.Fprintf(&b, "; if nothing else ran, there would be room for %d", o.RoomIfEmpty)
	}
	return b.String()
}

// tooLarge returns a line on a class that is too large for every node.
func tooLarge(large *answers.TooLarge) string {
	member := "a member"
	if large.Role != "" {
		member += " of role " + large.Role
	}
	says := "no node is large enough for " + member
	if large.Resource != "" {
		says = fmt.Sprintf("no node is large enough: %s asks for %s %s", member, large.Requested, large.Resource)
	}
	if large.Largest != "" {
		says += ", and a node has at most " + large.Largest
	}
	return says
}

// isFutile reports whether a gang would have no room even if other work ended.
func isFutile(answer *answers.Simulation) bool {
	return answer.Obstacle != nil && answer.Obstacle.RoomIfEmpty < answer.Needed
}

// incomplete returns a line on how many members a gang lacks.
func incomplete(g *gang) string {
	least, roles := g.minima()
	have := make(map[string]int)
	for _, pod := range g.waiting {
		have[g.group.Key.RoleOf(pod)]++
	}
	if len(g.waiting) >= least {
		for _, role := range slices.Sorted(maps.Keys(roles)) {
			if have[role] < roles[role] {
				return fmt.Sprintf("%d of the %d members of role %s that are needed exist%s", have[role], roles[role], role, gates(g))
			}
		}
	}
	return fmt.Sprintf("%d of the %d members that are needed exist%s", len(g.waiting), least, gates(g))
}

// gates returns the end of a message: how many members are ending, wait for scheduling gates, or wait for another
// scheduler.
func gates(g *gang) string {
	var others string
	if n := len(g.ending); n > 0 {
		others = fmt.Sprintf("; %d more %s ending", n, text.Form(n, "is", "are"))
	}
	if len(g.gated) > 0 {
		others += fmt.Sprintf("; %d more wait for their scheduling gates", len(g.gated))
	}
	if len(g.unserved) > 0 {
		others += fmt.Sprintf("; %d more wait for another scheduler", len(g.unserved))
	}
	return others
}
