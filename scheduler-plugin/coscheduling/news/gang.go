// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package news

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/podgroup"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/queue"
)

// Gang is what is known of a gang at one time, as far as it decides on what is told. All
// that is told follows from it and the time.
type Gang struct {
	Key dialect.Key
	// Group is nil while there is no PodGroup of the name, and Missing is since when.
	// Unread is why none can be seen, as the API server serves no PodGroups or does not let them be
	// listed; empty if they can.
	Group   *dialect.Group
	Missing time.Time
	Unread  string
	// Seen is when this scheduler has first seen the group, or a Pod that names it.
	Seen time.Time
	// GroupSeen is when this scheduler has first seen this PodGroup.
	GroupSeen time.Time

	// Waiting, Placed and Bound count the members.
	Waiting, Placed, Bound podgroup.Tally
	// Failed and Deleted are how many members have failed and were deleted that had been
	// bound.
	Failed, Deleted int
	// Pods are those that wait for a place, in no order.
	Pods []Pod
	// Unserved counts the members that name a scheduler which is not served here, by its name, if others are missing.
	Unserved map[string]int

	// Ordinary are those of a group whose Pods are placed by themselves that name other groups, too. They
	// need not wait.
	Ordinary []Pod

	// Refusal is what the gang was told when it found no place, nil if it has not been
	// refused since it had one.
	Refusal *queue.Refusal
	// Kept is for what room is kept for the gang, Preempting or Reserved; empty if none is.
	Kept string
	// Preempted says that the gang was preempted as a whole, and its minimum was not bound since.
	Preempted bool
	// Unbound says why a member could not be bound; empty if the members were bound since.
	Unbound string
	// Slow are the members that have waited for long to be bound to the nodes where they have their places, in their order.
	// NextSlow is when the next member will have waited for long, zero for none.
	Slow     []SlowMember
	NextSlow time.Time
	// Assumed says that this scheduler has placed the gang before.
	Assumed bool

	// Highest is the highest priority among the members, and Class the priority that the group
	// asks for, mostly the value of its PriorityClass. Both are nil if there is none.
	Highest, Class *int32

	// Of a group of another dialect: Census counts its Pods by their phases, Member is one of
	// them, nil if there is none, and Theirs says that somebody else is to tell of it: none of
	// them names a scheduler that is served here.
	Census dialect.Census
	Member *corev1.Pod
	Theirs bool
	// Schedulers are the scheduler names of those Pods, each once, in no order.
	Schedulers []string

	// BackOff is the end of the gang's back-off. Zero or past: the gang is in none.
	BackOff time.Time

	// Foreign says that another program has changed the phase since this scheduler wrote it, and
	// YieldsUntil until when the group's status is left to that, as it has done so before.
	Foreign     bool
	YieldsUntil time.Time
	// Minima are what the members say that the gang's minimum is, ascending; none if a PodGroup
	// says it.
	Minima []int32

	// Record is what was written of the gang last.
	Record Record
}

// SlowMember is a member that has a place and is not bound to its node since a time.
type SlowMember struct {
	Pod   *corev1.Pod
	Node  string
	Since time.Time
}

// Pod is one that waits for a place.
type Pod struct {
	Pod *corev1.Pod
	// Stranger says that the Pod is no member of the group that it names, and would wait
	// for a place if it were one. The group has an owner then.
	Stranger bool
	// Since is since when the Pod is a stranger, or is seen as a member.
	Since time.Time
	// Ignored are the gangs that the Pod names beside this one, and which count for nothing.
	Ignored []dialect.Key
	// Nominee is the node where the Pod goes when Pods have gone that end soon, empty if no
	// room is kept for it there.
	Nominee string
}

// Record is what was written of a gang.
type Record struct {
	// Version is the resource version that the group has got by the last write.
	Version string
	// Conditions are those that were written last, nil if none were, and At is when. Repairs is how often they were
	// written again, as somebody else had changed them.
	Conditions []schedulingv1alpha1.PodGroupCondition
	At         time.Time
	Repairs    int
	// Status is what was written last of a group of another dialect, nil if nothing was. StatusAt is
	// when the API server answered.
	Status   *dialect.Status
	StatusAt time.Time
	// YieldTold is the YieldsUntil of which the log tells.
	YieldTold time.Time
	// warned are the warnings whose events were recorded.
	warned map[warned]bool
	// Renominated is when it was last decided that Pods which are nominated be so for another
	// node, or for none.
	Renominated time.Time
}

// StatusOf is the status that a group of another dialect has as far as this scheduler knows: the one that was
// written last while the watch has not shown it yet, else what the group says. That may be less: a program
// which replaces the object leaves the status out. Foreign says that another program has changed it since.
func (r *Record) StatusOf(group *dialect.Group, foreign bool) *dialect.Status {
	if r.Status != nil && !foreign && r.IsAhead(group) {
		return r.Status
	}
	return group.Status
}

// IsAhead says whether the last write is newer than what the watch has shown of a group.
func (r *Record) IsAhead(group *dialect.Group) bool {
	order, err := resourceversion.CompareResourceVersion(r.Version, group.ResourceVersion)
	return err == nil && order > 0
}

// ForgetStatus has what the watch shows of a group count, and not what was written. When etcd is restored, the
// version that a write has got may be above all that there are.
func (r *Record) ForgetStatus() {
	r.Status, r.Version = nil, ""
}

// ConditionsOf are those that this scheduler has said of a group last or, if it has said nothing yet, that the group has.
func (r *Record) ConditionsOf(group *dialect.Group) []schedulingv1alpha1.PodGroupCondition {
	if r.Conditions != nil {
		return r.Conditions
	}
	return group.Conditions
}

// standing are the conditions that a group has as far as this scheduler knows: what the watch shows of one of Lockstep's,
// unless the last write is newer. Somebody may have written since: a scheduler that led before, and is late. Of another
// dialect they are what was said last.
func (r *Record) standing(group *dialect.Group) []schedulingv1alpha1.PodGroupCondition {
	if group.Key.Dialect != dialect.Own || group.ResourceVersion == "" || r.IsAhead(group) {
		return r.ConditionsOf(group)
	}
	return group.Conditions
}

// minRepair is how long after its last write a scheduler puts right what somebody else has made of it. Each time it
// waits twice as long, up to maxRepair, until that is over: two schedulers that fight would write for ever.
const minRepair, maxRepair = time.Second, 10 * time.Minute

// repairIn is in what time conditions that were written before are written again; 0 or less for now.
func (r *Record) repairIn(now time.Time) time.Duration {
	return min(minRepair<<min(r.Repairs, 20), maxRepair) - now.Sub(r.At)
}

// Wrote notes conditions that were written, and the version that the group has got by that if it is of Lockstep's.
func (r *Record) Wrote(conditions []schedulingv1alpha1.PodGroupCondition, version string, now time.Time) {
	switch {
	case now.Sub(r.At) > 2*maxRepair:
		r.Repairs = 0
	case Same(r.Conditions, conditions):
		r.Repairs++
	}
	r.Conditions, r.At = conditions, now
	if version != "" {
		r.Version = version
	}
}

// VersionOf is the newest resource version of a group that this scheduler knows: the one of its own
// last write, which the watch may not have shown yet, or the one that the watch has shown.
func (r *Record) VersionOf(group *dialect.Group) string {
	if r.IsAhead(group) {
		return r.Version
	}
	return group.ResourceVersion
}
