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

	// Terms is the configuration of members to come. ToCome is empty where none are considered.
	Terms *configv1alpha1.MembersToCome

	// needsAll means that all waiting members need a place, and not just the minimum. virtual is which of Waiting are
	// virtual members; see tocome.go.
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
	// Plugin is the name of the plugin that places gangs. Place does not ask this plugin whether members may be
	// scheduled; parallel work is counted under this name.
	Plugin    string
	Extenders Extenders
	// Own is the gang's reservation, nil if none. Ahead are the reservations of others that the gang has to leave
	// alone, in order.
	Own   *room.Reservation
	Ahead []*room.Reservation
	// Reserved is how much room is reserved for gangs ahead, for any reason. MaxPercent is the percentage of each of
	// the cluster's resources that may be reserved.
	Reserved   provision.Amounts
	MaxPercent int64
	// ToCome is how much is reserved for members to come of other gangs in the namespace. AllToCome is for how many
	// members of other gangs in all namespaces.
	ToCome    provision.Amounts
	AllToCome int
	// Nominated are the Pods that are nominated for nodes, by node.
	Nominated map[string][]fwk.PodInfo
	// Standings returns the gangs that have members placed. There may be many, so Place calls this at most once, and
	// only if other work may have to end for the gang.
	Standings func() map[dialect.Key]*gangs.Standing
	// KeyOf returns the gang that a Pod names, false if none.
	KeyOf func(pod *corev1.Pod) (dialect.Key, bool)
	// MayBeMember reports whether a Pod of no known gang may be a member of some gang. Such a Pod is left alone.
	MayBeMember func(pod *corev1.Pod) bool
	Evictions   Evictions
	// Passes are shared by gangs that are planned one after the other.
	Passes *Passes
	// Tried is what was tried in earlier cycles.
	Tried *Tried
	// Now returns the time. Deadline is when the cycle has to end, zero for never. CycleTimeout is how long a cycle may
	// take, for the message.
	Now          func() time.Time
	Deadline     time.Time
	CycleTimeout time.Duration
	// MinRuntime returns how long a Pod runs before it is preempted, if others can be preempted instead. Nil: no time.
	MinRuntime func(pod *corev1.Pod) time.Duration
	// IsClosed reports whether the gang may not start on a node, because the node is to be maintained before the gang
	// ends. Nil: no node is closed.
	IsClosed func(node string) bool
	// PreemptOverrun allows the gang to preempt work on the nodes of its reservation in time that runs longer than its
	// estimate.
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
	// IsRefused reports whether a Pod can't be evicted for now.
	IsRefused(pod *corev1.Pod, now time.Time) bool
	// GoneBy returns when Pods that are leaving are expected to be gone.
	GoneBy(leaving []fwk.PodInfo, now time.Time) time.Time
}

var _ Evictions = &room.Evictions{}
