// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/podgroup"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/provision"
)

// Group is what the scheduler knows of a PodGroup of any dialect. Nobody changes it.
type Group struct {
	Key Key
	// UID and ResourceVersion are those of the object, and Generation counts the changes of
	// its spec.
	UID             types.UID
	ResourceVersion string
	Generation      int64
	// Version is that of the object's kind, empty for the one that its dialect has.
	Version string
	// Created is when the object was created.
	Created time.Time
	// Owner is what the group was made for, with Pods of its own: then only the Pods that it
	// controls are members. Nil if the link alone makes a member.
	Owner *metav1.OwnerReference
	// MemberLabels are the labels by which Pods are members of a group of Own. Nil: they name it.
	MemberLabels map[string]string
	// Policy is the schedulingPolicy of a group of Own.
	Policy schedulingv1alpha1.SchedulingPolicy
	// MadeFor is the kind of the first owner of the object, for which a tool has made the group. Empty
	// for groups of Own without MemberLabels, and if there is no owner. Other than Owner, it says nothing of members. MadeForUID is the
	// UID of that owner.
	MadeFor    string
	MadeForUID types.UID
	// Spec is what is asked for.
	Spec Spec
	// Conditions are what the object says of the gang: whether it is placed, and why not. Of
	// dialects without conditions they say what is known from the status.
	Conditions []schedulingv1alpha1.PodGroupCondition
	// ExpectedStart is when a group of Own was told last that it will start, nil if it was not.
	ExpectedStart *schedulingv1alpha1.ExpectedStart
	// Status is what it says in the words of another dialect, nil for Own, and PhaseBy the
	// field manager that has written the phase of that, empty if nobody has.
	Status  *Status
	PhaseBy string
	// Warnings are what whoever made the group is to be told of it.
	Warnings []Warning
	// Asked is the minimum as the object has it, by which its phase is told.
	Asked int32
}

// Kind is the kind of the object, with its version.
func (g *Group) Kind() schema.GroupVersionKind {
	kind := g.Key.Dialect.Kind()
	if g.Version != "" {
		kind.Version = g.Version
	}
	return kind
}

// Spec is what a group asks for.
type Spec struct {
	// Minimum is how many members are to be placed together.
	Minimum podgroup.Minimum
	// PriorityClassName ranks the group, as far as its members have that priority. Empty for
	// the highest priority among them.
	PriorityClassName string
	// Priority is what that PriorityClass was worth when the group was created, nil if the class
	// says so itself.
	Priority *int32
	// PreemptsNobody has the group wait where it would evict others.
	PreemptsNobody bool
	// Topology says how close together the members are to be, widest domain first.
	Topology []schedulingv1alpha1.TopologyConstraint
	// DisruptionMode is what preemption may take of the group once it is placed.
	DisruptionMode schedulingv1alpha1.DisruptionMode
	// Loose has the members be ordinary Pods, each placed for itself, once the group is there.
	Loose bool
	// Halt is why no member is placed, as long as that is so.
	Halt Halt
	// Provision is what room is to be kept for members that are still to come.
	Provision Provision
	// Runtime is how long the gang runs, as far as that is known.
	Runtime Runtime
	// Staged says that the minimum counts members which only come after others have run.
	Staged bool
}

// Warning is what an event on a group tells, once.
type Warning struct {
	Reason, Message string
	// Always says that it is told of groups of other schedulers, too.
	Always bool
}

// Provision is what a group asks to have kept for members that are still to come; see package
// provision.
type Provision struct {
	// Resources are those of all members together, as far as nodes can have them; nil if the
	// group asks for none.
	Resources provision.Amounts
	// Members is how many members there are to be in all, 0 if that is not known.
	Members int
	// Timeout is how long the room is to be kept at most without a member that comes. 0: the
	// group does not say.
	Timeout time.Duration
}

// haltOfDeleted is that of a group that is being deleted, in the foreground say: the garbage collector deletes its Pods
// first, so that each one that is placed would be deleted.
var haltOfDeleted = Halt{Reason: ReasonDeleted, Message: "the PodGroup is being deleted: no more of its Pods are placed"}

// Halt is why no member of a group is placed, whatever room there is. The zero value is for
// groups of which members are.
type Halt struct {
	// Reason is a word for it, one of those below, and Message says what can be done.
	Reason, Message string
}

// The reasons for which no member of a group is placed.
const (
	// ReasonDeleted: the group is being deleted.
	ReasonDeleted = "PodGroupDeleted"
	// ReasonNotSupported: it asks for what this scheduler can't do.
	ReasonNotSupported = "NotSupported"
)

// Equal says whether two specs ask for the same.
func (s *Spec) Equal(other *Spec) bool {
	return s.Minimum.Members == other.Minimum.Members && maps.Equal(s.Minimum.Roles, other.Minimum.Roles) &&
		s.PriorityClassName == other.PriorityClassName && slices.Equal(s.Topology, other.Topology) &&
		s.DisruptionMode == other.DisruptionMode && s.Staged == other.Staged && s.Loose == other.Loose && s.Runtime == other.Runtime && s.Halt == other.Halt &&
		s.PreemptsNobody == other.PreemptsNobody && isSame(s.Priority, other.Priority) && s.Provision.equal(&other.Provision)
}

// Resource is the resource of the object.
func (g *Group) Resource() schema.GroupVersionResource {
	return g.Kind().GroupVersion().WithResource(schedulingv1alpha1.PodGroupPlural)
}

// IsHalted says whether no member is placed.
func (g *Group) IsHalted() bool {
	return g.Spec.Halt != Halt{}
}

// isSame says whether two priorities are the same, or there is none.
func isSame(a, b *int32) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}

func (p *Provision) equal(other *Provision) bool {
	return p.Members == other.Members && p.Timeout == other.Timeout && p.Resources.Equal(other.Resources)
}

// Renewed is another state of the group, with the minimum of this one.
func (g *Group) Renewed(as *Group) *Group {
	renewed := *as
	renewed.Spec.Minimum = g.Spec.Minimum
	return &renewed
}

// HeldBy says whether members reach the group's minimum.
func (g *Group) HeldBy(members ...podgroup.Tally) bool {
	return g.Spec.Minimum.HeldBy(members...)
}

// HasMember says whether a Pod that names the group is a member of it. See podgroup.IsMember.
func (g *Group) HasMember(pod *corev1.Pod) bool {
	return podgroup.IsMemberUnder(g.Owner, pod) && (g.Key.Dialect != Own || podgroup.IsLinked(g.MemberLabels, pod))
}

// IsFor says whether the group was made for an object.
func (g *Group) IsFor(uid types.UID) bool {
	return g.Owner != nil && g.Owner.UID == uid || g.MadeForUID != "" && g.MadeForUID == uid
}

// Object is the group for whoever needs no more than its kind, its name and its UID, such as a
// recorder of events.
func (g *Group) Object() *metav1.PartialObjectMetadata {
	object := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Namespace: g.Key.Namespace, Name: g.Key.Name, UID: g.UID, ResourceVersion: g.ResourceVersion,
	}}
	object.SetGroupVersionKind(g.Kind())
	return object
}

// IsImplied says whether the group has no object.
func (g *Group) IsImplied() bool {
	return g.UID == ImpliedUID
}
