// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package news

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

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
