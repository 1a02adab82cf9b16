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
	"k8s.io/utils/ptr"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/podgroup"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/provision"
)

// Group is what the scheduler knows of a PodGroup of any API. A Group is immutable.
type Group struct {
	Key Key
	// UID and ResourceVersion are the object's. Generation counts the changes of its spec.
	UID             types.UID
	ResourceVersion string
	Generation      int64
	// Version is the version of the object's kind, empty for the default version of its API.
	Version string
	// Created is when the object was created.
	Created time.Time
	// Owner is the object for which the group and its Pods were made. Only Pods that the Owner controls are members.
	// Nil: each Pod that names the group is a member.
	Owner *metav1.OwnerReference
	// MemberLabels are the labels that make a Pod a member, for a PodGroup of Lockstep. Nil: members name the group.
	MemberLabels map[string]string
	// Policy is the schedulingPolicy of a group of Own.
	Policy schedulingv1alpha1.SchedulingPolicy
	// MadeFor is the kind of the group's first owner, for which a tool has made the group; MadeForUID is the owner's
	// UID. Both are empty for a group without an owner, and for a PodGroup of Lockstep without MemberLabels. Unlike
	// Owner, they do not decide membership.
	MadeFor    string
	MadeForUID types.UID
	// Spec is what the group asks for.
	Spec Spec
	// Conditions are the object's conditions: whether the gang is placed, and why not. If the API has no conditions,
	// they are derived from the status.
	Conditions []schedulingv1alpha1.PodGroupCondition
	// ExpectedStart is the expected start that was last written to a PodGroup of Lockstep, nil if none.
	ExpectedStart *schedulingv1alpha1.ExpectedStart
	// Status is the status of an object of another API, nil for Lockstep's own. PhaseBy is the field manager that wrote
	// the object's phase, empty if none did.
	Status  *Status
	PhaseBy string
	// Warnings are what the creator of the group has to know, as events.
	Warnings []Warning
	// Asked is the minimum as the object has it, from which the phase follows.
	Asked int32
}

// Kind returns the kind of the object, with its version.
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
	// PriorityClassName gives the group its priority, which is never higher than the highest priority among the
	// members. If PriorityClassName is empty, that highest priority is the group's priority.
	PriorityClassName string
	// Priority is the value that the PriorityClass had when the group was created. Nil: the class's current value
	// counts.
	Priority *int32
	// PreemptsNobody makes the group wait where it would otherwise evict other Pods.
	PreemptsNobody bool
	// Topology says how close together the members are to be, widest domain first.
	Topology []schedulingv1alpha1.TopologyConstraint
	// DisruptionMode is what preemption may take of the group once the group is placed.
	DisruptionMode schedulingv1alpha1.DisruptionMode
	// Loose reports that the members are scheduled as ordinary Pods, each on its own, once the group exists.
	Loose bool
	// Halt is why no member is placed at present.
	Halt Halt
	// Provision is how much room the group asks to reserve for members that are still to come.
	Provision Provision
	// Runtime is how long the gang runs, as far as that is known.
	Runtime Runtime
	// Staged means that the minimum counts members which only come after others have run.
	Staged bool
}

// Warning is an event on a group, reported once.
type Warning struct {
	Reason, Message string
	// Always means that the event is also reported for groups of other schedulers.
	Always bool
}

// Provision is the room that a group asks to reserve for members that are still to come; see package provision.
type Provision struct {
	// Resources are the resources of all members together. Names that can't be resources of a node (see provision.Of)
	// are left out. Nil if the group asks for none.
	Resources provision.Amounts
	// Members is the total number of members that the gang is to have, 0 if unknown.
	Members int
	// Timeout is how long to reserve the room while no further member comes. 0: the group does not say.
	Timeout time.Duration
}

// haltOfDeleted is the Halt of a group that is being deleted. With foreground deletion, the garbage collector deletes
// the group's Pods first, so a member that was placed now would be deleted at once.
var haltOfDeleted = Halt{Reason: ReasonDeleted, Message: "the PodGroup is being deleted: no more of its Pods are placed"}

// Halt is the reason why the scheduler places no member of a group, whatever room there is. The zero value means that
// members may be placed.
type Halt struct {
	// Reason is one of the words below. Message says what can be done.
	Reason, Message string
}

// The reasons for which no member of a group is placed.
const (
	// ReasonDeleted: the group is being deleted.
	ReasonDeleted = "PodGroupDeleted"
	// ReasonNotSupported: the group asks for something that this scheduler can't do.
	ReasonNotSupported = "NotSupported"
)

// Equal reports whether two specs ask for the same.
func (s *Spec) Equal(other *Spec) bool {
	return s.Minimum.Members == other.Minimum.Members && maps.Equal(s.Minimum.Roles, other.Minimum.Roles) &&
		s.PriorityClassName == other.PriorityClassName && slices.Equal(s.Topology, other.Topology) &&
		s.DisruptionMode == other.DisruptionMode && s.Staged == other.Staged && s.Loose == other.Loose && s.Runtime == other.Runtime && s.Halt == other.Halt &&
		s.PreemptsNobody == other.PreemptsNobody && ptr.Equal(s.Priority, other.Priority) && s.Provision.equal(&other.Provision)
}

// Resource returns the resource of the object.
func (g *Group) Resource() schema.GroupVersionResource {
	return g.Kind().GroupVersion().WithResource(schedulingv1alpha1.PodGroupPlural)
}

// IsHalted reports whether the group's members are not to be placed.
func (g *Group) IsHalted() bool {
	return g.Spec.Halt != Halt{}
}

func (p *Provision) equal(other *Provision) bool {
	return p.Members == other.Members && p.Timeout == other.Timeout && p.Resources.Equal(other.Resources)
}

// Renewed returns another state of the group, with the minimum of this one.
func (g *Group) Renewed(as *Group) *Group {
	renewed := *as
	renewed.Spec.Minimum = g.Spec.Minimum
	return &renewed
}

// HeldBy reports whether members reach the group's minimum.
func (g *Group) HeldBy(members ...podgroup.Tally) bool {
	return g.Spec.Minimum.HeldBy(members...)
}

// HasMember reports whether a Pod that names the group is a member. See podgroup.IsMember.
func (g *Group) HasMember(pod *corev1.Pod) bool {
	return podgroup.IsMemberUnder(g.Owner, pod) && (g.Key.Dialect != Own || podgroup.IsLinked(g.MemberLabels, pod))
}

// IsFor reports whether the group was made for an object.
func (g *Group) IsFor(uid types.UID) bool {
	return g.Owner != nil && g.Owner.UID == uid || g.MadeForUID != "" && g.MadeForUID == uid
}

// Object returns an object with only the group's kind, name and UID, for instance for an event recorder.
func (g *Group) Object() *metav1.PartialObjectMetadata {
	object := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Namespace: g.Key.Namespace, Name: g.Key.Name, UID: g.UID, ResourceVersion: g.ResourceVersion,
	}}
	object.SetGroupVersionKind(g.Kind())
	return object
}

// IsImplied reports whether the group has no object.
func (g *Group) IsImplied() bool {
	return g.UID == ImpliedUID
}
