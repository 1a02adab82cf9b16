// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package place

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	configv1alpha1 "github.com/lockstep-k8s/lockstep/apis/config/v1alpha1"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/gangs"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/kube"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/provision"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/room"
)

// Gang is a waiting gang when its scheduling cycle begins. At least one member waits.
type Gang struct {
	// View is what is known of the gang. ClassKeys holds the members' results of ClassKey.
	gangs.View
	// MayPreempt reports that neither a member nor the group's PriorityClass forbids preemption.
	MayPreempt bool
	// First reports that the gang has a right to a reservation: the gang is the first in the queue, or has a
	// reservation in time.
	First bool

	// Terms is the configuration for members to come. If that is turned off for the gang, ToCome is empty.
	Terms *configv1alpha1.MembersToCome

	// needsAll reports that all waiting members need a place, and not just the minimum. virtual are the UIDs of the
	// virtual members in Waiting: each stands for an announced member that does not exist yet; see tocome.go.
	needsAll bool
	virtual  sets.Set[types.UID]
}

// schedulerName returns the scheduler name of the gang's first member; all members have the same.
func (g *Gang) schedulerName() string {
	return g.Waiting[0].Spec.SchedulerName
}

// Cluster is what a gang's scheduling cycle sees of the cluster, with functions that answer questions about it.
type Cluster struct {
	// Snapshot is up to date. Place restores the snapshot after changing it.
	Snapshot kube.Snapshot
	// Profiles are the profiles of the members' schedulers, by scheduler name.
	Profiles map[string]framework.Framework
	// Plugin is the name of the plugin Coscheduling. Place does not ask this plugin whether members may be scheduled.
	// The name is also in metrics of parallel work.
	Plugin    string
	Extenders Extenders
	// Own is the gang's reservation, nil if none. Ahead are the reservations of other gangs that the gang has to leave
	// alone, in the order of the queue.
	Own   *room.Reservation
	Ahead []*room.Reservation
	ahead *ahead // what Place makes of them
	// Reserved is how much room is reserved for gangs ahead, for any reason. MaxPercent is the largest percentage of
	// each of the cluster's resources that may be reserved.
	Reserved   provision.Amounts
	MaxPercent int64
	// IdleOwed is how long a gang has no new reservation in time if nobody knows when it will have its place; see room.Idle.
	IdleOwed time.Duration
	// ToCome is how much room is reserved for members to come of the namespace's other gangs. AllToCome counts the
	// members to come of other gangs, in all namespaces, for which room is reserved.
	ToCome    provision.Amounts
	AllToCome int
	// Nominated are the Pods that are nominated for nodes, by node.
	Nominated map[string][]fwk.PodInfo
	// Standings returns the gangs that have placed members. As there may be many, Place calls it at most once, and only
	// if Pods have to end before the gang has room.
	Standings func() map[dialect.Key]*gangs.Standing
	// LowestPlaced returns the lowest priority of the gangs that have placed members, math.MaxInt32 if there are none.
	LowestPlaced func() int32
	// KeyOf returns the gang that a Pod names, false if none.
	KeyOf func(pod *corev1.Pod) (dialect.Key, bool)
	// End is when the gang ends if started now, zero if unknown.
	End time.Time
	// EndOf returns when a Pod that runs will end, zero if nobody knows.
	EndOf func(pod *corev1.Pod) time.Time
	// MayBeMember reports whether a Pod may be a member of a gang that the scheduler does not know yet. Such a Pod is
	// not preempted.
	MayBeMember func(pod *corev1.Pod) bool
	Evictions   Evictions
	// Passes are shared by gangs that are planned one after the other.
	Passes *Passes
	// Tried is what was tried in earlier cycles.
	Tried *Tried
	// Now returns the time. Deadline is when the cycle has to end, zero for never. CycleTimeout is how long a cycle may
	// take; searches for Pods to preempt may take a quarter of it beyond the deadline.
	Now          func() time.Time
	Deadline     time.Time
	CycleTimeout time.Duration
	// MinRuntime returns how long a Pod has to run before it may be preempted, if other Pods can be preempted instead.
	// Nil means 0 for every Pod.
	MinRuntime func(pod *corev1.Pod) time.Duration
	// IsClosed reports whether the gang may not start on a node, because the node is to be maintained before the gang
	// ends. Nil: no node is closed.
	IsClosed func(node string) bool
	// PreemptOverrun allows a gang with a reservation in time to preempt Pods on the reserved nodes that run longer
	// than their estimate.
	PreemptOverrun bool
	// Estimates reports that the scheduler also relies on run times that nothing enforces.
	Estimates bool
}

// Extenders say whether a Pod that all plugins accept may be on a node.
type Extenders interface {
	// HaveFilter reports whether there are any.
	HaveFilter() bool
	PassExtenders(ctx context.Context, pod *corev1.Pod, node fwk.NodeInfo) *fwk.Status
}

// Evictions says which Pods are ending, and which can't be evicted; see room.Evictions.
type Evictions interface {
	// IsLeaving reports whether a Pod is expected to be gone soon.
	IsLeaving(pod *corev1.Pod, now time.Time) bool
	// RefusedUntil returns until when a Pod can't be evicted, zero if it may be evicted now.
	RefusedUntil(pod *corev1.Pod, now time.Time) time.Time
	// GoneBy returns when Pods that are leaving are expected to be gone.
	GoneBy(leaving []fwk.PodInfo, now time.Time) time.Time
}

var _ Evictions = &room.Evictions{}
