// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/podgroup"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/news"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/place"
)

// memberState is what a member means to its gang.
type memberState int

const (
	// memberOut neither waits nor is placed: it failed, is being deleted or
	// preempted, has scheduling gates or another scheduler, or is a stranger.
	// Exits: it is replaced, its gates go, its preemption fails, it or the group
	// gets another controller.
	memberOut memberState = iota
	// memberWaiting is to be placed by this scheduler. Exits: assumed in a gang
	// cycle, bound by someone else, deleted.
	memberWaiting
	// memberPlaced is assumed on a node, bound to one, or has succeeded. It counts
	// towards the minimum. Exits: its binding fails, it fails, it is deleted.
	memberPlaced
)

// member is a Pod that names a gang's group, and a member of it unless it is a
// stranger.
type member struct {
	pod *corev1.Pod
	// assumed is the node of a member whose binding is not seen yet, else empty.
	assumed string
	// placement is the number of the placement that assumed it last.
	placement int
	// leaving says that the member is being preempted. It does not count from the
	// moment that this is decided: a sibling placed while the victims go one by one
	// would be all that is left of the gang.
	leaving bool
	// strangerSince is when the Pod was found to be a stranger; see stranger.go.
	// Zero for a member.
	strangerSince time.Time
	// seen is when the Pod was first seen as one that names the group.
	seen time.Time
	// class is the Pod's class key, empty while nobody has asked for it.
	class string
}

// classKey is the key of the member's class.
func (m *member) classKey() string {
	if m.class == "" {
		m.class = place.ClassKey(m.pod)
	}
	return m.class
}

// node is where the member is or is about to be, or empty.
func (m *member) node() string {
	return cmp.Or(m.pod.Spec.NodeName, m.assumed)
}

// bound says whether the API server knows a place of the member, or it has
// succeeded.
func (m *member) bound() bool {
	if m.isStranger() {
		return false
	}
	return m.pod.Status.Phase == corev1.PodSucceeded ||
		m.pod.Spec.NodeName != "" && m.pod.Status.Phase != corev1.PodFailed && m.pod.DeletionTimestamp == nil && !m.leaving
}

// gang is a PodGroup with its members. It is not safe for concurrent use: the
// tracker's lock guards it.
//
// Invariant: waiting, placed and bound count the members by their state, priorities
// those that wait or are placed, and strangers the Pods that are no members.
type gang struct {
	key types.NamespacedName
	// group is nil while the PodGroup is not seen, and groupless is since when.
	group     *schedulingv1alpha1.PodGroup
	groupless time.Time
	// members are the Pods that name the group, strangers among them.
	members map[types.UID]*member

	waiting, placed, bound podgroup.Tally
	// priorities counts the members of each priority that wait or are placed.
	priorities map[int32]int
	strangers  int
	// failedMembers and deletedMembers were placed once; they tell a group that
	// lost members from one that never had them.
	failedMembers, deletedMembers int

	bindings bindings
	held     held
	// brokenUp is since when the gang is not complete any more; zero if it never was, or is.
	brokenUp time.Time
	record   news.Record // what was written of it
}

func newGang(key types.NamespacedName) *gang {
	return &gang{key: key, members: make(map[types.UID]*member), priorities: make(map[int32]int)}
}

// complete says whether the gang's minimum could hold if all that waits were
// placed, and something waits.
func (g *gang) complete() bool {
	return g.group != nil && g.waiting.Total > 0 &&
		podgroup.Holds(&g.group.Spec, g.placed.Plus(g.waiting))
}

// lacksMinimum says whether fewer are placed than the minimum.
func (g *gang) lacksMinimum() bool {
	return g.group != nil && !podgroup.Holds(&g.group.Spec, g.placed)
}

// scheduled says whether the minimum is bound.
func (g *gang) scheduled() bool {
	return g.group != nil && podgroup.Holds(&g.group.Spec, g.bound)
}

// state is what a member counts as. ours says which scheduler names are served
// by this plugin.
func state(m *member, ours func(schedulerName string) bool) memberState {
	pod := m.pod
	switch {
	case m.isStranger():
		return memberOut
	case pod.Status.Phase == corev1.PodSucceeded:
		return memberPlaced
	case pod.Status.Phase == corev1.PodFailed, pod.DeletionTimestamp != nil, m.leaving:
		return memberOut
	case m.node() != "":
		return memberPlaced
	case len(pod.Spec.SchedulingGates) > 0, !ours(pod.Spec.SchedulerName):
		return memberOut
	default:
		return memberWaiting
	}
}

// count adds or, with sign -1, takes away a member, or a stranger.
func (g *gang) count(m *member, s memberState, sign int32) {
	if m.isStranger() {
		g.strangers += int(sign)
		return
	}
	if s != memberOut {
		g.countPriority(m.pod, int(sign))
	}
	switch s {
	case memberWaiting:
		g.waiting.Add(podgroup.RoleOf(m.pod), sign)
	case memberPlaced:
		g.placed.Add(podgroup.RoleOf(m.pod), sign)
	}
	if m.bound() {
		g.bound.Add(podgroup.RoleOf(m.pod), sign)
	}
}

// compareMembers orders members: by priority, then by name. The order is total
// and does not change in the life of a Pod.
func compareMembers(a, b *corev1.Pod) int {
	return cmp.Or(
		-cmp.Compare(corev1helpers.PodPriority(a), corev1helpers.PodPriority(b)),
		compareNames(a.Name, b.Name),
		cmp.Compare(a.UID, b.UID),
	)
}

// compareNames puts worker-9 before worker-10: shorter first.
func compareNames(a, b string) int {
	return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b))
}

// sortMembers orders members in place.
func sortMembers(pods []*corev1.Pod) {
	slices.SortFunc(pods, compareMembers)
}
