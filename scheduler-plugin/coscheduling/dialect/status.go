// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"encoding/json"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
)

// Writer is the name under which this scheduler writes the status of groups.
const Writer = "lockstep-scheduler"

// Status is what the object of another dialect says of its gang, in the words of that.
type Status struct {
	Phase                      string
	Running, Succeeded, Failed int32
	// OccupiedBy is of scheduler-plugins alone.
	OccupiedBy string
	// Conditions are of the dialects that have some.
	Conditions []schedulingv1alpha1.PodGroupCondition
	// Native is all that a PodGroup of Kubernetes says, nil for others.
	Native *NativeStatus
}

// SaysTheSameAs says whether two statuses say the same. Since when a condition has its status makes no
// difference.
func (s *Status) SaysTheSameAs(other *Status) bool {
	return s.Phase == other.Phase && s.Running == other.Running && s.Succeeded == other.Succeeded && s.Failed == other.Failed &&
		s.OccupiedBy == other.OccupiedBy && slices.EqualFunc(s.Conditions, other.Conditions, sayTheSame) &&
		s.Native.saysSame(other.Native)
}

func sayTheSame(a, b schedulingv1alpha1.PodGroupCondition) bool {
	return a.Type == b.Type && a.Status == b.Status && a.Reason == b.Reason && a.Message == b.Message
}

// Facts are what the status of a group follows from, beside what it was.
type Facts struct {
	// Pods counts the Pods that name the group, and Member is one of them, nil if there is none.
	Pods   Census
	Member *corev1.Pod
	// Conditions are what there is to say of the gang: whether it is placed, and why not.
	Conditions []schedulingv1alpha1.PodGroupCondition
	// Lacks says that the gang is found now not to have its minimum, and Undecided that nothing is found: it is
	// about to be planned or bound, or is ending. The conditions may be of before that, also of another
	// scheduler.
	Lacks, Undecided bool
	// Preempted says that the gang was preempted as a whole and its minimum was not bound since,
	// and Placed that it is bound. A scheduler that was started since may know neither.
	Preempted, Placed bool
	// Now is what time it is.
	Now time.Time
}

// Census counts the Pods of a group that exist, and some of them.
type Census struct {
	Exist int32
	// Running, Succeeded and Failed are those in a phase. Ending are those in phase Running
	// that are being deleted.
	Running, Ending, Succeeded, Failed int32
	// Placed have a node, or have ended.
	Placed int32
}

// Add counts one more Pod.
func (c *Census) Add(pod *corev1.Pod) {
	c.Exist++
	switch pod.Status.Phase {
	case corev1.PodRunning:
		c.Running++
		if pod.DeletionTimestamp != nil {
			c.Ending++
		}
	case corev1.PodSucceeded:
		c.Succeeded++
	case corev1.PodFailed:
		c.Failed++
	}
	if pod.Spec.NodeName != "" || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		c.Placed++
	}
}

// NextStatus is the status of a group of another dialect that follows from the present one.
func (g *Group) NextStatus(now Status, facts Facts) Status {
	switch g.Key.Dialect {
	case SchedulerPlugins:
		return nextOfSchedulerPlugins(now, g.Asked, facts)
	case Volcano:
		return nextOfVolcano(now, g.Asked, facts)
	case Native:
		next := now.Native.next(g, facts)
		return Status{Native: &next}
	default:
		return now
	}
}

// IsAwaited says whether somebody waits for the group's status to change, so that it is to be
// written at once: the Pods of a group of Volcano's are created when its phase is no longer Pending.
func (g *Group) IsAwaited() bool {
	return g.Key.Dialect == Volcano && (g.Status.Phase == "" || g.Status.Phase == PhasePending)
}

// KeepsConditions says whether groups of the dialect have conditions. Those that have none are
// told of by events alone.
func (d Dialect) KeepsConditions() bool {
	return d == Own || d == Native || d == Volcano
}

// MayLackStatus says whether there are releases of the dialect's kind without a subresource for
// the status. Its groups are not written by server-side apply: on the object itself, that would create a group which was
// deleted.
func (d Dialect) MayLackStatus() bool {
	return d == Volcano
}

// LeavesPhase says whether the phase of the group is left to whoever writes it, so that events alone
// tell of the gang.
func (g *Group) LeavesPhase() bool {
	return g.Key.Dialect != Volcano && g.PhaseBy != "" && g.PhaseBy != Writer
}

// Write is a request that has a group say a status.
type Write struct {
	Type types.PatchType
	// Force has a server-side apply take fields from other managers.
	Force *bool
	Body  []byte
}

// WriteOf is the request that has the group say a status of its dialect. The status follows from
// the group as it was at a resource version.
func (g *Group) WriteOf(status *Status, version string) (Write, error) {
	// The request is refused if the group has changed since. So the list of conditions, which is
	// written as a whole, is not one that somebody else has changed. And a scheduler whose watch is
	// late, as it was elected just now or is not the leader any more, neither repeats what another one
	// wrote nor takes back a phase that is final.
	if g.Key.Dialect == Native {
		body, err := status.Native.apply(g, version).MarshalJSON()
		return Write{Type: types.ApplyPatchType, Force: new(true), Body: body}, err
	}
	write := Write{Type: types.MergePatchType}
	// Counts of 0 are left out of objects by those who read them, and are written all the same:
	// they may have been others.
	fields := map[string]any{"phase": status.Phase, "running": status.Running, "succeeded": status.Succeeded, "failed": status.Failed}
	object := map[string]any{"uid": g.UID, "resourceVersion": version}
	if status.OccupiedBy != "" {
		fields["occupiedBy"] = status.OccupiedBy
	}
	if g.Key.Dialect == Volcano {
		fields["conditions"] = conditionsOfVolcano(status.Conditions)
	}
	var err error
	write.Body, err = json.Marshal(map[string]any{"metadata": object, "status": fields})
	return write, err
}

// phaseBy is the field manager that has written the phase of an object last, empty if nobody
// has or that can't be read.
func phaseBy(object *unstructured.Unstructured) string {
	for _, entry := range object.GetManagedFields() {
		if writesPhase(&entry) {
			return entry.Manager
		}
	}
	return ""
}

// writesPhase says whether an entry of managed fields has the phase or, of a PodGroup of
// Kubernetes, the condition that stands for it.
func writesPhase(entry *metav1.ManagedFieldsEntry) bool {
	var fields struct {
		Status struct {
			Phase      *struct{}           `json:"f:phase"`
			Conditions map[string]struct{} `json:"f:conditions"`
		} `json:"f:status"`
	}
	if entry.FieldsV1 == nil || json.Unmarshal(entry.FieldsV1.GetRawBytes(), &fields) != nil {
		return false
	}
	_, beta := fields.Status.Conditions[`k:{"type":"`+nativeScheduled+`"}`]
	_, alpha := fields.Status.Conditions[`k:{"type":"`+nativeAlphaScheduled+`"}`]
	return fields.Status.Phase != nil || beta || alpha
}

// Reduce has an object keep of its managed fields just who has written its phase, which saves
// memory. It changes the object.
func Reduce(object *unstructured.Unstructured) {
	var kept []metav1.ManagedFieldsEntry
	for _, entry := range object.GetManagedFields() {
		if writesPhase(&entry) {
			kept = append(kept, entry)
		}
	}
	object.SetManagedFields(kept)
}

// IsFinal reports whether the phase is one that a group of an API keeps for good.
func (s *Status) IsFinal(of Dialect) bool {
	return of == SchedulerPlugins && (s.Phase == PhaseFinished || s.Phase == PhaseFailed)
}
