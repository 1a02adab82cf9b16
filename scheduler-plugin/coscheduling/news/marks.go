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

// A waiting Pod gets a condition that says why, once. A member that waits for room gets the mark that cluster
// autoscalers look for. A Pod that waits in vain, because its PodGroup does not exist or the Pod is no member, gets the
// condition only after some seconds: Pods and groups may come in any order.

// Reasons of the condition PodScheduled=False of a Pod that waits for something other than room. Cluster autoscalers
// ignore Pods with these reasons, as more nodes would not help.
const (
	// ReasonNotAMember: the Pod is no member of the group that it names.
	ReasonNotAMember = "NotAMemberOfPodGroup"
	// ReasonNoGroup: there is no such group.
	ReasonNoGroup = "PodGroupNotFound"
	// ReasonNotServed: PodGroups are not served, or can't be read.
	ReasonNotServed = "PodGroupsNotServed"
	// ReasonIncomplete: the group was missing and now exists, or the Pod is now a member, but other members are
	// missing.
	ReasonIncomplete = "PodGroupIncomplete"
	// ReasonSeveralGroups: the Pod names several groups, and is a member of one.
	ReasonSeveralGroups = "SeveralPodGroups"
	// ReasonSlowBinding: the Pod has a place, and is not bound yet.
	ReasonSlowBinding = "WaitingForBinding"
)

const (
	// strangerGrace is how long a Pod must have been no member of the group that it names before its condition says so.
	// For most Pods this only lasts until the scheduler sees the PodGroup.
	strangerGrace = 5 * time.Second
	// groupGrace is how long a Pod waits for a missing PodGroup before its condition says so. A tool may create a Pod
	// before its PodGroup.
	groupGrace = 3 * time.Second
)

// Mark is the content of the condition PodScheduled=False of a waiting Pod.
type Mark struct {
	Reason, Message string
	// Event means that an event says the same.
	Event bool
	// Due is the earliest time to write the mark; zero for at once.
	Due time.Time
}

// MarkOf returns the mark that a Pod of the gang should have, false for none.
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
		// The PodGroup's conditions say so. Only a Pod with another mark gets a new one.
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

// Unmarked returns the Pods whose condition (Mark) or nominated node is to be written now. again is after how long to
// call Unmarked again; 0 means only after a change.
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

// due returns when a Pod's mark or nomination is to be written, false for never.
func (g *Gang) due(p Pod) (time.Time, bool) {
	mark, tells := g.MarkOf(p)
	if tells && !IsMarked(p.Pod, mark.Reason) {
		return mark.Due, true
	}
	_, changes := g.Nomination(p)
	return times.Later(mark.Due, g.nominationDue(p)), changes
}

// IsMarked reports whether a Pod has a condition that it waits, with this reason.
func IsMarked(pod *corev1.Pod, reason string) bool {
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Type == corev1.PodScheduled {
			return c.Status == corev1.ConditionFalse && c.Reason == reason
		}
	}
	return false
}

// strangerMessage returns why a Pod that names a group is not one of its members. The group has an owner, or labels
// that its members must have.
func strangerMessage(group *dialect.Group) string {
	owner := group.Owner
	if owner == nil {
		return fmt.Sprintf("no member of PodGroup %s, whose members are the Pods with the labels of its spec.memberLabels", group.Key.Name)
	}
	return fmt.Sprintf("no member of PodGroup %s, whose members are the Pods controlled by %s %s: "+
		"without the label %s the Pod is scheduled on its own", group.Key.Name, owner.Kind, owner.Name, schedulingv1alpha1.LabelPodGroup)
}

// grouplessMark returns the mark of a Pod without its group.
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

// called returns the gang's name for messages.
func (g *Gang) called() string {
	if g.Group.IsImplied() {
		return "the gang " + g.Key.Name
	}
	return "PodGroup " + g.Key.Name
}

// tellers returns what reports on the gang, for messages.
func (g *Gang) tellers() string {
	if g.Key.Dialect.KeepsConditions() {
		return "its conditions"
	}
	if g.Group.IsImplied() {
		return "events of the first of its Pods"
	}
	return "its events"
}

// While room is being made for a gang, its members are nominated for the nodes where they are to go, as kube-scheduler
// nominates a Pod that preempts others. A cluster autoscaler adds no nodes for a nominated Pod, and counts the room as
// used. When the reservation ends, so do the nominations.
//
// A member is nominated only together with the mark that there is no room, or after that mark. So a later scheduler
// knows which nominations are Lockstep's.
//
// kube-scheduler itself does not see the nominations of members: package room keeps the room.

// nominationPeriod is how long nominations stay unchanged after some were changed or removed. A member without a
// nomination is nominated at once. So in one period a nomination is removed and set again at most once. The period is
// that of cluster autoscalers, which by default look at Pods every 10 s.
const nominationPeriod = 10 * time.Second

// Nomination returns the node for which a Pod is to be nominated, "" for none. If changes is false, the Pod's
// nomination is to stay as it is.
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
	// A Pod without a mark was nominated by another program. A failed binding overwrites the mark, and so does the news that
	// the gang lacks members, which may be written before the nomination may change again.
	return "", told || marked || IsMarked(p.Pod, corev1.PodReasonSchedulerError) || IsMarked(p.Pod, ReasonIncomplete)
}

// nominationDue returns when a Pod's nomination may be changed; zero for at once.
func (g *Gang) nominationDue(p Pod) time.Time {
	if p.Pod.Status.NominatedNodeName == "" {
		return time.Time{}
	}
	return g.Record.Renominated.Add(nominationPeriod)
}

// Renominates reports whether one of the Pods, given by UID, is nominated and is now to get another nomination or none.
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
