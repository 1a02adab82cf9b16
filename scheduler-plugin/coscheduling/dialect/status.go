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

// Writer is the field manager under which this scheduler writes the status of groups.
const Writer = "lockstep-scheduler"

// Status is what an object of another API says of its gang.
type Status struct {
	Phase                      string
	Running, Succeeded, Failed int32
	// OccupiedBy is a field of scheduler-plugins' PodGroups only.
	OccupiedBy string
	// Conditions are set for APIs that have conditions.
	Conditions []schedulingv1alpha1.PodGroupCondition
	// Native is the status of Kubernetes' PodGroup, nil for other APIs.
	Native *NativeStatus
}

// SaysTheSameAs reports whether two statuses are equal, apart from the conditions' transition times.
func (s *Status) SaysTheSameAs(other *Status) bool {
	return s.Phase == other.Phase && s.Running == other.Running && s.Succeeded == other.Succeeded && s.Failed == other.Failed &&
		s.OccupiedBy == other.OccupiedBy && slices.EqualFunc(s.Conditions, other.Conditions, sayTheSame) &&
		s.Native.saysSame(other.Native)
}

func sayTheSame(a, b schedulingv1alpha1.PodGroupCondition) bool {
	return a.Type == b.Type && a.Status == b.Status && a.Reason == b.Reason && a.Message == b.Message
}

// Facts is what the next status of a group follows from, in addition to its present status.
type Facts struct {
	// Pods counts the Pods that name the group. Member is one of the Pods, nil if there is none.
	Pods   Census
	Member *corev1.Pod
	// Conditions say whether the gang is placed, and why not.
	Conditions []schedulingv1alpha1.PodGroupCondition
	// Lacks reports that, in the present state, the gang is known not to have its minimum. Undecided reports that
	// nothing is known: the gang is about to be planned or bound, or is ending. Conditions may then be out of date, or
	// from another scheduler.
	Lacks, Undecided bool
	// Preempted reports that the gang was preempted as a whole, and its minimum was not bound since. Placed reports
	// that the minimum is bound. Right after its start the scheduler may know neither.
	Preempted, Placed bool
	// Now is the time.
	Now time.Time
}

// Census counts the existing Pods of a group, in all and by state.
type Census struct {
	Exist int32
	// Running, Succeeded and Failed count Pods by phase. Ending counts Pods in phase Running that are being deleted.
	Running, Ending, Succeeded, Failed int32
	// Placed counts Pods that have a node or have ended.
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

// NextStatus returns the next status of a group of another API, given its present status.
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

// IsAwaited reports whether a change of the group's status has to be written at once, because a tool waits for it: for
// Volcano's groups, tools create the Pods once the phase is no longer Pending.
func (g *Group) IsAwaited() bool {
	return g.Key.Dialect == Volcano && (g.Status.Phase == "" || g.Status.Phase == PhasePending)
}

// KeepsConditions reports whether groups of the API have conditions. The scheduler reports on other groups only by
// events.
func (d Dialect) KeepsConditions() bool {
	return d == Own || d == Native || d == Volcano
}

// MayLackStatus reports whether some releases of the API's CRD have no status subresource. For such groups the
// scheduler does not use server-side apply: applied to the object itself, it would recreate a deleted group.
func (d Dialect) MayLackStatus() bool {
	return d == Volcano
}

// LeavesPhase reports whether another program writes the phase. The scheduler then leaves the phase alone, and only
// sends events.
func (g *Group) LeavesPhase() bool {
	return g.Key.Dialect != Volcano && g.PhaseBy != "" && g.PhaseBy != Writer
}

// Write is a request that sets the status of a group.
type Write struct {
	Type types.PatchType
	// Force makes a server-side apply take fields from other managers.
	Force *bool
	Body  []byte
}

// WriteOf returns the request that sets the status of a group. version is the resource version of the group from which
// the status was computed.
func (g *Group) WriteOf(status *Status, version string) (Write, error) {
	// The API server refuses the request if the group has changed since. So the list of conditions, which is written as
	// a whole, never overwrites a change by others; and a scheduler with a late watch, newly elected or no longer the
	// leader, neither repeats another one's write nor takes back a final phase.
	if g.Key.Dialect == Native {
		body, err := status.Native.apply(g, version).MarshalJSON()
		return Write{Type: types.ApplyPatchType, Force: new(true), Body: body}, err
	}
	write := Write{Type: types.MergePatchType}
	// Readers drop counts of 0, but writing 0 is needed: the count may have been another before.
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

// phaseBy returns the field manager that last wrote the phase of an object, "" if there is none or the managed fields
// can't be read.
func phaseBy(object *unstructured.Unstructured) string {
	for _, entry := range object.GetManagedFields() {
		if writesPhase(&entry) {
			return entry.Manager
		}
	}
	return ""
}

// writesPhase reports whether an entry of an object's managed fields contains the phase. In Kubernetes' PodGroup a
// condition takes the place of the phase.
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

// Reduce changes an object to save memory: it removes the managed fields, except for the entry of the program that
// writes the phase.
func Reduce(object *unstructured.Unstructured) {
	var kept []metav1.ManagedFieldsEntry
	for _, entry := range object.GetManagedFields() {
		if writesPhase(&entry) {
			kept = append(kept, entry)
		}
	}
	object.SetManagedFields(kept)
}

// IsFinal reports whether groups of an API keep the phase for good.
func (s *Status) IsFinal(of Dialect) bool {
	return of == SchedulerPlugins && (s.Phase == PhaseFinished || s.Phase == PhaseFailed)
}
