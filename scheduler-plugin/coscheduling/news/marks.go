// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package news

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/internal/times"
	"github.com/lockstep-k8s/lockstep/podgroup"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
)

// A Pod that waits is told why, once. A member that waits for room has the mark that
// cluster autoscalers look for. A Pod that waits in vain, because its PodGroup does not
// exist or it is no member of it, is told so, unless that is over soon: Pods and groups
// may come in any order.

// The reasons of PodScheduled=False of a Pod that waits for something else than room. A
// cluster autoscaler looks for none of them: more nodes would not help.
const (
	// ReasonNotAMember: the Pod is no member of the group that it names.
	ReasonNotAMember = "NotAMemberOfPodGroup"
	// ReasonNoGroup: there is no such group.
	ReasonNoGroup = "PodGroupNotFound"
	// ReasonNotServed: there can't be any, or none can be seen.
	ReasonNotServed = "PodGroupsNotServed"
	// ReasonIncomplete: the group has come, or the Pod has become a member, and the group
	// lacks members.
	ReasonIncomplete = "PodGroupIncomplete"
	// ReasonSeveralGroups: the Pod names several groups, and is a member of one of them.
	ReasonSeveralGroups = "SeveralPodGroups"
	// ReasonSlowBinding: the Pod has a place, and is not bound to its node yet.
	ReasonSlowBinding = "WaitingForBinding"
)

const (
	// strangerGrace is how long a Pod is a stranger before it is told so. Most are
	// strangers only until their own PodGroup is seen.
	strangerGrace = 5 * time.Second
	// groupGrace is how long a PodGroup is missing, and a Pod waits for it, before the
	// Pod is told so. Whoever makes both makes either first.
	groupGrace = 3 * time.Second
)

// Mark is what the condition PodScheduled=False says of a Pod that waits.
type Mark struct {
	Reason, Message string
	// Event says that an event says the same.
	Event bool
	// Due is when the Pod is told at the earliest; zero for at once.
	Due time.Time
}

// MarkOf is what a Pod of the gang is to be told, false for nothing.
func (g *Gang) MarkOf(p Pod) (Mark, bool) {
	switch {
	case p.Stranger:
		return Mark{Reason: ReasonNotAMember, Message: strangerMessage(g.Group), Event: true, Due: p.Since.Add(strangerGrace)}, true
	case g.Group == nil:
		return g.grouplessMark(p), true
	case g.Group.IsHalted():
		return Mark{Reason: g.Group.Spec.Halt.Reason, Event: true,
			Message: fmt.Sprintf("PodGroup %s: %s", g.Key.Name, g.Group.Spec.Halt.Message)}, true
	case !g.complete():
		// Its conditions say so. Only who was told something else is told.
		if !IsMarked(p.Pod, ReasonNoGroup) && !IsMarked(p.Pod, ReasonNotServed) && !IsMarked(p.Pod, ReasonNotAMember) {
			return Mark{}, false
		}
		return Mark{Reason: ReasonIncomplete, Message: fmt.Sprintf("%s lacks members; %s say how many", g.called(), g.tellers())}, true
	case g.Refusal != nil && !g.Refusal.Unready && g.Group.HeldBy(g.Placed):
		return Mark{Reason: corev1.PodReasonUnschedulable, Event: true,
			Message: fmt.Sprintf("%s has its minimum, and there is no room for this member: %s", g.called(), g.Refusal.Message)}, true
	case g.Refusal != nil && !g.Refusal.Unready:
		return Mark{Reason: corev1.PodReasonUnschedulable, Event: true,
			Message: fmt.Sprintf("there is no room for all of %s; %s say what is missing", g.called(), g.tellers())}, true
	}
	return Mark{}, false
}

// Unmarked are the Pods that are to be told something now, and have not been told it yet, or
// are to be nominated for another node, or for none. again is in what time to ask again, 0
// for not before something changes.
func (g *Gang) Unmarked(now time.Time) (unmarked []types.UID, again time.Duration) {
	for _, p := range g.Pods {
		due, ok := g.due(p)
		if !ok {
			continue
		}
		left := due.Sub(now)
		if left <= 0 {
			unmarked = append(unmarked, p.Pod.UID)
		} else if again == 0 || left < again {
			again = left
		}
	}
	return unmarked, again
}

// due is when a Pod is to be told something or its nomination is to be changed, false for
// never.
func (g *Gang) due(p Pod) (time.Time, bool) {
	mark, tells := g.MarkOf(p)
	if tells && !IsMarked(p.Pod, mark.Reason) {
		return mark.Due, true
	}
	_, changes := g.Nomination(p)
	due := mark.Due
	if at := g.nominationDue(p); at.After(due) {
		due = at
	}
	return due, changes
}

// IsMarked says whether a Pod was told that it waits, for this reason.
func IsMarked(pod *corev1.Pod, reason string) bool {
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Type == corev1.PodScheduled {
			return c.Status == corev1.ConditionFalse && c.Reason == reason
		}
	}
	return false
}

// strangerMessage tells a stranger why it waits. The group has an owner, or labels of its members.
func strangerMessage(group *dialect.Group) string {
	owner := group.Owner
	if owner == nil {
		return fmt.Sprintf("no member of PodGroup %s, whose members are the Pods with the labels of its spec.memberLabels", group.Key.Name)
	}
	return fmt.Sprintf("no member of PodGroup %s, whose members are the Pods controlled by %s %s: "+
		"without the label %s the Pod is scheduled on its own", group.Key.Name, owner.Kind, owner.Name, schedulingv1alpha1.LabelPodGroup)
}

// grouplessMark tells a Pod for what it waits whose group is missing.
func (g *Gang) grouplessMark(p Pod) Mark {
	due := times.Later(p.Since, g.Missing).Add(groupGrace)
	if g.Unread != "" {
		return Mark{Reason: ReasonNotServed, Event: true, Due: due,
			Message: fmt.Sprintf("the Pod waits for PodGroup %s, and %s", g.Key.Name, g.Unread)}
	}
	if implicit, _ := podgroup.ImplicitOf(p.Pod); implicit != nil && g.Key.Dialect == dialect.Own && p.Pod.Labels[schedulingv1alpha1.LabelPodGroup] == "" {
		return Mark{Reason: ReasonNoGroup, Event: true, Due: due,
			Message: fmt.Sprintf("the Pod waits for PodGroup %s, which lockstep-controller makes for the owner of the Pod: "+
				"it is not there if lockstep-controller does not run, or there is no such owner", g.Key.Name)}
	}
	return Mark{Reason: ReasonNoGroup, Event: true, Due: due,
		Message: fmt.Sprintf("there is no PodGroup %s%s in the namespace %s, and the Pod waits for it", g.Key.Name, g.Key.Dialect.Of(), g.Key.Namespace)}
}

// called is what the gang is called.
func (g *Gang) called() string {
	if g.Group.IsImplied() {
		return "the gang " + g.Key.Name
	}
	return "PodGroup " + g.Key.Name
}

// tellers are what tells of the gang on its group.
func (g *Gang) tellers() string {
	if g.Key.Dialect.KeepsConditions() {
		return "its conditions"
	}
	if g.Group.IsImplied() {
		return "events of the first of its Pods"
	}
	return "its events"
}

// While room is being made for a gang, its members are nominated for the nodes where they
// are to go, as kube-scheduler nominates a Pod that preempts others. A cluster autoscaler
// adds no nodes for a Pod that is nominated, and takes the room there for used. When the room
// is not kept any more, the nominations end.
//
// A member is nominated with the mark that there is no room for it, or has that already: so
// whoever finds it later, perhaps the next scheduler, knows who has nominated it.
//
// For kube-scheduler itself the nominations of members mean nothing: what is kept for a gang
// is kept by package room.

// nominationPeriod is how long the nominations of a gang stay as they are at least after some
// were changed or taken back. A member that has none is nominated at once. So whatever happens
// to the room of a gang, a member's nomination is written twice in that time at most. It is
// how often a cluster autoscaler looks, by default.
const nominationPeriod = 10 * time.Second

// Nomination is for which node a Pod is to be nominated, empty for none. It is false if its
// Nomination is to stay as it is.
func (g *Gang) Nomination(p Pod) (node string, changes bool) {
	if p.Nominee == p.Pod.Status.NominatedNodeName {
		return "", false
	}
	mark, told := g.MarkOf(p)
	marked := IsMarked(p.Pod, corev1.PodReasonUnschedulable)
	switch {
	case p.Nominee != "" && (marked || told && mark.Reason == corev1.PodReasonUnschedulable):
		return p.Nominee, true
	case p.Nominee != "":
		return "", false // its gang is refused right now, or lacks a member since
	case g.Group != nil && !p.Stranger && g.complete() && g.Refusal == nil:
		return "", false // its gang is about to be planned
	}
	// One that was told nothing yet was nominated by others. That its binding has failed was
	// written over what it was told before.
	return "", told || marked || IsMarked(p.Pod, corev1.PodReasonSchedulerError)
}

// nominationDue is when a Pod's nomination may be changed; zero for at once.
func (g *Gang) nominationDue(p Pod) time.Time {
	if p.Pod.Status.NominatedNodeName == "" {
		return time.Time{}
	}
	return g.Record.Renominated.Add(nominationPeriod)
}

// Renominates says whether one of some Pods, by UID, is nominated, and is to be so for another
// node or for none.
func (g *Gang) Renominates(pods []types.UID) bool {
	some := make(map[types.UID]bool, len(pods))
	for _, uid := range pods {
		some[uid] = true
	}
	return g.Group != nil && slices.ContainsFunc(g.Pods, func(p Pod) bool {
		if p.Pod.Status.NominatedNodeName == "" || !some[p.Pod.UID] {
			return false
		}
		_, changes := g.Nomination(p)
		return changes
	})
}
