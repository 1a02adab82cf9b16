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

// Gang is a gang that waits, as it is when its cycle begins. At least one member waits.
type Gang struct {
	// View is what is known of it. Its members' ClassKeys are by ClassKey.
	gangs.View
	// MayPreempt says that no member, nor the group's PriorityClass, forbids it to
	// preempt.
	MayPreempt bool
	// First says that the gang has the right to be helped: it is the first one in the queue that waits, or has a reservation in time.
	First bool

	// Terms are those of members to come. ToCome is nothing where none are considered.
	Terms *configv1alpha1.MembersToCome

	// needsAll says that all that waits has to have a place, and not just the minimum, and virtual which of Waiting are
	// no Pods; see tocome.go.
	needsAll bool
	virtual  sets.Set[types.UID]
}

// schedulerName is the scheduler of the gang's first member, which speaks for
// all of them.
func (g *Gang) schedulerName() string {
	return g.Waiting[0].Spec.SchedulerName
}

// Cluster is what a gang finds, and who may be asked about it.
type Cluster struct {
	// Snapshot is up to date. Place changes it and leaves it as it was.
	Snapshot kube.Snapshot
	// Profiles are those of the members' schedulers, by scheduler name.
	Profiles map[string]framework.Framework
	// Plugin is the name of the plugin that places gangs. It is not asked whether members
	// may be scheduled, and work in parallel is counted as its own.
	Plugin    string
	Extenders Extenders
	// Own is the reservation of the gang, nil if it has none. Ahead are those of others that it has to leave alone, in
	// their order.
	Own   *room.Reservation
	Ahead []*room.Reservation
	// Reserved is how much room is reserved for gangs ahead, for whatever reason, and MaxPercent how much of each resource
	// of the cluster may be.
	Reserved   provision.Amounts
	MaxPercent int64
	// ToCome is how much is reserved for members to come of other gangs in the namespace, and AllToCome for how many members
	// of other gangs in all namespaces.
	ToCome    provision.Amounts
	AllToCome int
	// Nominated are the Pods that are nominated for nodes, by node.
	Nominated map[string][]fwk.PodInfo
	// Standings are the gangs that have members placed. It is asked once at most, and only
	// when others may have to end for the gang: there may be many of them.
	Standings func() map[dialect.Key]*gangs.Standing
	// KeyOf is the gang that a Pod names, false if it names none.
	KeyOf func(pod *corev1.Pod) (dialect.Key, bool)
	// MayBeMember says of a Pod of no gang that is known whether it may be one of a gang all the same. Then it is
	// left alone.
	MayBeMember func(pod *corev1.Pod) bool
	Evictions   Evictions
	// Passes are shared by gangs that are planned one after the other.
	Passes *Passes
	// Tried is what was tried in turns before.
	Tried *Tried
	// Now is what time it is. Deadline is when the cycle has to end, zero for never, and
	// CycleTimeout how long it may take; that is for the message.
	Now          func() time.Time
	Deadline     time.Time
	CycleTimeout time.Duration
	// MinRuntime is for how long a Pod runs before it is preempted, if others can be preempted instead. Nil: no time.
	MinRuntime func(pod *corev1.Pod) time.Duration
	// IsClosed says whether the gang may not start on a node, as that is to be maintained before the gang ends. Nil: it may on all.
	IsClosed func(node string) bool
	// PreemptOverrun says that work on the nodes of a reservation in time may be preempted that runs longer than its estimate.
	PreemptOverrun bool
	// Estimates says that the scheduler counts on what is known of run times and nothing enforces.
	Estimates bool
}

// Extenders say whether a Pod that all plugins accept may be on a node.
type Extenders interface {
	// HaveFilter says whether there are any.
	HaveFilter() bool
	PassExtenders(ctx context.Context, pod *corev1.Pod, node fwk.NodeInfo) *fwk.Status
}

// Evictions know which Pods are ending, and which can't be had end; see room.Evictions.
type Evictions interface {
	// IsLeaving says whether a Pod is expected to be gone soon.
	IsLeaving(pod *corev1.Pod, now time.Time) bool
	// IsRefused says whether a Pod can't be evicted for now.
	IsRefused(pod *corev1.Pod, now time.Time) bool
	// GoneBy is when Pods that are leaving are expected to be gone.
	GoneBy(leaving []fwk.PodInfo, now time.Time) time.Time
}

var _ Evictions = &room.Evictions{}
