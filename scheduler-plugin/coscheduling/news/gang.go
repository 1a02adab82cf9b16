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

// Gang is what is known of a gang at one time, as the input for all reports.
type Gang struct {
	Key dialect.Key
	// Group is nil while no PodGroup with the name exists; Missing is the time from which on none has existed. Unread
	// is why PodGroups can't be read: the API server serves none, or does not allow listing. It is empty if they can be
	// read.
	Group   *dialect.Group
	Missing time.Time
	Unread  string
	// Seen is when this scheduler first saw the group, or a Pod that names it.
	Seen time.Time
	// GroupSeen is when this scheduler first saw this PodGroup.
	GroupSeen time.Time

	// Waiting, Placed and Bound count the members.
	Waiting, Placed, Bound podgroup.Tally
	// Failed and Deleted are how many bound members have failed and were deleted.
	Failed, Deleted int
	// Pods are the waiting members, in no order.
	Pods []Pod
	// Unserved counts the members with a scheduler name that this program does not serve, by that name. It is set only
	// if members are missing.
	Unserved map[string]int

	// Ordinary are Pods that name a loose group and other groups, too. A loose group's Pods are placed one by one, so
	// these Pods need not wait.
	Ordinary []Pod

	// Refusal is why the gang found no place. It is nil if the gang has not been refused since it last had a place.
	Refusal *queue.Refusal
	// Kept is why room is reserved for the gang, Preempting or Reserved. It is empty if no room is reserved.
	Kept string
	// Preempted reports that the gang was preempted as a whole, and its minimum has not been bound since.
	Preempted bool
	// Unbound is why a member could not be bound. It is empty if the members have been bound since.
	Unbound string
	// Slow are the members that have had a place for long and are not bound, in order. NextSlow is when one more member
	// is to be added, zero for none.
	Slow     []SlowMember
	NextSlow time.Time
	// Assumed reports that this scheduler has placed the gang before.
	Assumed bool

	// Highest is the highest priority among the members. Class is the priority that the group asks for, usually that of
	// its PriorityClass. Each is nil if there is none.
	Highest, Class *int32

	// Census, Member and Theirs are for a group of another API. Census counts its Pods by phase. Member is one of these
	// Pods, nil if there is none. Theirs reports that this scheduler leaves reports on the gang to another one, because
	// no Pod has a scheduler name that is served here.
	Census dialect.Census
	Member *corev1.Pod
	Theirs bool

	// BackOff is the end of the gang's back-off. Zero or past: the gang is in no back-off.
	BackOff time.Time

	// Foreign reports that another program has changed the phase since this scheduler wrote it. Until YieldsUntil, this
	// scheduler leaves the group's status to that program.
	Foreign     bool
	YieldsUntil time.Time
	// Minima are the different minima that members of an implicit gang state, ascending. There are none if a PodGroup
	// states the minimum.
	Minima []int32

	// Record is what was last written about the gang.
	Record Record
}

// SlowMember is a member that has a place and has not been bound since it got the place.
type SlowMember struct {
	Pod   *corev1.Pod
	Node  string
	Since time.Time
}

// Pod is a Pod that waits for a place.
type Pod struct {
	Pod *corev1.Pod
	// Stranger reports that the Pod names the group, but is not a member: the group takes only Pods of its owner, or
	// Pods with its labels. If the Pod were a member, it would wait for a place.
	Stranger bool
	// Since is when the Pod was first seen as a member or, if Stranger is set, as no member.
	Since time.Time
	// Ignored are the other gangs that the Pod names, which count for nothing.
	Ignored []dialect.Key
	// Nominee is the node for which the Pod is to be nominated: the Pod goes there once Pods that are ending are gone.
	// "" if no room is reserved for the Pod.
	Nominee string
}

// Record is what was written about a gang.
type Record struct {
	// Version is the group's resource version after the last write.
	Version string
	// Conditions are the conditions that this scheduler wrote last, nil if none; At is when. Repairs is how often it
	// wrote the same conditions again because another client had changed them.
	Conditions []schedulingv1alpha1.PodGroupCondition
	At         time.Time
	Repairs    int
	// Status is the status that this scheduler wrote last to a group of another API, nil if none. StatusAt is when the
	// API server answered.
	Status   *dialect.Status
	StatusAt time.Time
	// YieldTold is the YieldsUntil that was last logged.
	YieldTold time.Time
	// warned has the warnings that were recorded.
	warned map[warned]bool
	// Renominated is when it was last decided to change or remove nominations of Pods.
	Renominated time.Time
}

// StatusOf returns the newest status of a group of another API that this scheduler knows: the last written one if the
// watch has not shown that yet, else the group's. The group's status may be missing, for instance after the object was
// replaced. `foreign` reports that another program has changed the status since the write.
func (r *Record) StatusOf(group *dialect.Group, foreign bool) *dialect.Status {
	if r.Status != nil && !foreign && r.IsAhead(group) {
		return r.Status
	}
	return group.Status
}

// IsAhead reports whether this scheduler's last write is newer than the group as the watch has shown it.
func (r *Record) IsAhead(group *dialect.Group) bool {
	order, err := resourceversion.CompareResourceVersion(r.Version, group.ResourceVersion)
	return err == nil && order > 0
}

// ForgetStatus drops the record of the last written status, so that the status from the watch counts. This is needed
// after etcd is restored from a backup: the version of the last write may then be higher than those of all objects.
func (r *Record) ForgetStatus() {
	r.Status, r.Version = nil, ""
}

// ConditionsOf returns the conditions that this scheduler last reported about a group or, if there are none, those of
// the group.
func (r *Record) ConditionsOf(group *dialect.Group) []schedulingv1alpha1.PodGroupCondition {
	if r.Conditions != nil {
		return r.Conditions
	}
	return group.Conditions
}

// standing returns the conditions that a group now has, as far as this scheduler knows. For Lockstep's own groups these
// are the last written ones until the watch has shown them. After that they are what the watch shows, because another
// client, such as a former leader, may have written later. For other APIs they are the last reported ones.
func (r *Record) standing(group *dialect.Group) []schedulingv1alpha1.PodGroupCondition {
	if group.Key.Dialect != dialect.Own || group.ResourceVersion == "" || r.IsAhead(group) {
		return r.ConditionsOf(group)
	}
	return group.Conditions
}

// minRepair is how long after its last write the scheduler undoes a change of the conditions by another client. The
// time doubles with each such repair, up to maxRepair. Otherwise two conflicting schedulers would write all the time.
const minRepair, maxRepair = time.Second, 10 * time.Minute

// repairIn returns the time after which the last conditions are to be written again; 0 or less means now.
func (r *Record) repairIn(now time.Time) time.Duration {
	return min(minRepair<<min(r.Repairs, 20), maxRepair) - now.Sub(r.At)
}

// Wrote records written conditions, and the resulting version of a group of Lockstep.
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

// VersionOf returns the newest resource version of a group that this scheduler knows, from its own last write or from
// the watch.
func (r *Record) VersionOf(group *dialect.Group) string {
	if r.IsAhead(group) {
		return r.Version
	}
	return group.ResourceVersion
}
