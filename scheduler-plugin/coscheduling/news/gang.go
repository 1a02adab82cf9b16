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
	// Group is nil while no PodGroup with the name exists, and Missing is since when. Unread is why PodGroups can't be
	// read: the API server serves none, or does not allow listing; empty if they can be read.
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
	// Unserved counts, by scheduler name, the members with a scheduler name that is not served here, if members are
	// missing.
	Unserved map[string]int

	// Ordinary are the Pods of a loose group (its Pods are placed one by one) that also name other groups. They need
	// not wait.
	Ordinary []Pod

	// Refusal is why the gang found no place, nil if the gang has not been refused since it had one.
	Refusal *queue.Refusal
	// Kept is why room is reserved for the gang, Preempting or Reserved; empty if no room is.
	Kept string
	// Preempted reports that the gang was preempted as a whole, and its minimum was not bound since.
	Preempted bool
	// Unbound is why a member could not be bound; empty if the members were bound since.
	Unbound string
	// Slow are the members that have waited for long to be bound, in order. NextSlow is when the next member will have
	// waited for long, zero for none.
	Slow     []SlowMember
	NextSlow time.Time
	// Assumed reports that this scheduler has placed the gang before.
	Assumed bool

	// Highest is the highest priority among the members. Class is the priority that the group asks for, mostly the
	// value of its PriorityClass. Both are nil if there is none.
	Highest, Class *int32

	// For a group of another API: Census counts its Pods by phase. Member is one of these Pods, nil if there is none.
	// Theirs reports that another scheduler reports on the gang, because no Pod names a scheduler that is served here.
	Census dialect.Census
	Member *corev1.Pod
	Theirs bool
	// Schedulers are the scheduler names of these Pods, each once, in no order.
	Schedulers []string

	// BackOff is the end of the gang's back-off. Zero or past: the gang is in no back-off.
	BackOff time.Time

	// Foreign reports that another program has changed the phase since this scheduler wrote it. YieldsUntil is until
	// when this scheduler leaves the group's status to that program.
	Foreign     bool
	YieldsUntil time.Time
	// Minima are the different minima that members ask for, ascending; none if a PodGroup has the minimum.
	Minima []int32

	// Record is what was last written about the gang.
	Record Record
}

// SlowMember is a member that has a place and has not been bound since a time.
type SlowMember struct {
	Pod   *corev1.Pod
	Node  string
	Since time.Time
}

// Pod is a Pod that waits for a place.
type Pod struct {
	Pod *corev1.Pod
	// Stranger reports that the Pod is no member of the group that it names, and would wait for a place if it were a
	// member. The group has an owner then.
	Stranger bool
	// Since is since when the Pod is a stranger, or is seen as a member.
	Since time.Time
	// Ignored are the other gangs that the Pod names, which count for nothing.
	Ignored []dialect.Key
	// Nominee is the node where the Pod goes once Pods that end soon are gone, "" if no room is reserved for the Pod.
	Nominee string
}

// Record is what was written about a gang.
type Record struct {
	// Version is the group's resource version after the last write.
	Version string
	// Conditions are the last written ones, nil if none, and At is when. Repairs is how often they were written again
	// because another client had changed them.
	Conditions []schedulingv1alpha1.PodGroupCondition
	At         time.Time
	Repairs    int
	// Status is the last written status of a group of another API, nil if none. StatusAt is when the API server
	// answered.
	Status   *dialect.Status
	StatusAt time.Time
	// YieldTold is the YieldsUntil that was last logged.
	YieldTold time.Time
	// warned has the warnings that were recorded.
	warned map[warned]bool
	// Renominated is when it was last decided to change or remove nominations of Pods.
	Renominated time.Time
}

// StatusOf returns the status of a group of another API, as far as this scheduler knows: the last written one if the
// watch has not shown it yet, else the group's. The group's status may be missing, as after a replacement of the
// object. foreign means that another program has changed the status since.
func (r *Record) StatusOf(group *dialect.Group, foreign bool) *dialect.Status {
	if r.Status != nil && !foreign && r.IsAhead(group) {
		return r.Status
	}
	return group.Status
}

// IsAhead reports whether the last write is newer than what the watch has shown of a group.
func (r *Record) IsAhead(group *dialect.Group) bool {
	order, err := resourceversion.CompareResourceVersion(r.Version, group.ResourceVersion)
	return err == nil && order > 0
}

// ForgetStatus drops the written status, so that what the watch shows counts. After etcd is restored from a backup, the
// version of a write may be higher than all versions.
func (r *Record) ForgetStatus() {
	r.Status, r.Version = nil, ""
}

// ConditionsOf returns the conditions that this scheduler last reported about a group or, without any, those that the
// group has.
func (r *Record) ConditionsOf(group *dialect.Group) []schedulingv1alpha1.PodGroupCondition {
	if r.Conditions != nil {
		return r.Conditions
	}
	return group.Conditions
}

// standing returns the conditions that a group has as far as this scheduler knows. For Lockstep's own groups these are
// what the watch shows, unless the last write is newer: another client may have written since, such as a former leader.
// For other APIs they are the last reported ones.
func (r *Record) standing(group *dialect.Group) []schedulingv1alpha1.PodGroupCondition {
	if group.Key.Dialect != dialect.Own || group.ResourceVersion == "" || r.IsAhead(group) {
		return r.ConditionsOf(group)
	}
	return group.Conditions
}

// minRepair is how long after its last write a scheduler repairs a change by another client. Each repair waits twice as
// long, up to maxRepair: two conflicting schedulers would otherwise write for ever.
const minRepair, maxRepair = time.Second, 10 * time.Minute

// repairIn returns after what time earlier conditions are written again; 0 or less for now.
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

// VersionOf returns the newest resource version of a group that this scheduler knows: that of its own last write, or
// that shown by the watch.
func (r *Record) VersionOf(group *dialect.Group) string {
	if r.IsAhead(group) {
		return r.Version
	}
	return group.ResourceVersion
}
