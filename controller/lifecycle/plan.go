// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/controller/engine/plan"
)

// Plan is a decision, as data.
type Plan struct {
	// Status is the next Snapshot.Status. It is the very value of the Snapshot
	// if nothing changed: Persisted if it says the same, else Status.
	Status *frameworkv1.FrameworkStatus
	// Persist says whether and how soon Status has to be written.
	Persist Persist
	// Actions are what the persisted status allows now, in no particular order.
	Actions []Action
	// History are objects to be logged before Status is written: they are about
	// to be overwritten.
	History []History
	// Events are to be told to the user after Status was written.
	Events []Event
	// WakeAt is when time alone may change the decision. Zero if it never does.
	WakeAt time.Time
	// Err is what makes no sense. If it is the persisted status, nothing is
	// decided: Status is the Snapshot's, and there are no actions. If it is a
	// Pod, all else is.
	Err error
}

// Persist is how soon a status has to be written.
type Persist = plan.Persist

// How soon: see package plan.
const (
	PersistNone  = plan.PersistNone
	PersistLater = plan.PersistLater
	PersistSoon  = plan.PersistSoon
	PersistNow   = plan.PersistNow
)

// ActionKind is what an Action does.
type ActionKind string

// Kinds of actions. All deletions are by UID, so that they never hit a successor.
const (
	// CreateConfigMap creates Action.ConfigMap. Its outcome has the UID.
	CreateConfigMap ActionKind = "CreateConfigMap"
	// DeleteConfigMap deletes a ConfigMap in the foreground.
	DeleteConfigMap ActionKind = "DeleteConfigMap"
	// ConfirmNoConfigMap looks live whether the Framework controls a ConfigMap of the
	// name. It has an outcome only if there is none; one that is there is in the
	// Snapshot from then on, as if the cache held it.
	ConfirmNoConfigMap ActionKind = "ConfirmNoConfigMap"
	// CreatePodGroup creates Action.PodGroup.
	CreatePodGroup ActionKind = "CreatePodGroup"
	// UpdatePodGroup writes the minimums in the spec of Action.PodGroup.
	UpdatePodGroup ActionKind = "UpdatePodGroup"
	// CreatePod creates what Action.Pod builds. Its outcome has the UID, or says why
	// the Pod is refused for good. It has none if a Pod of the name is there that
	// Action.Owner controls: that is in the Snapshot from then on. A Pod may be there
	// although it is refused, because its creation is judged before its name is looked
	// at, and the answer to an earlier one may have been lost.
	CreatePod ActionKind = "CreatePod"
	// DeletePod deletes a Pod with its own grace period.
	DeletePod ActionKind = "DeletePod"
	// ForceDeletePod deletes a Pod at once, whether or not its node agrees. It
	// has an outcome only when the Pod is gone, by a live look.
	ForceDeletePod ActionKind = "ForceDeletePod"
	// ConfirmNoPod looks live whether the ConfigMap controls a Pod of the name. It has
	// an outcome only if there is none; one that is there is in the Snapshot from then
	// on, as if the cache held it.
	ConfirmNoPod ActionKind = "ConfirmNoPod"
	// DeleteFramework deletes the Framework in the foreground.
	DeleteFramework ActionKind = "DeleteFramework"
	// LookForConfigMap and LookForPod look whether an object that has left the cache is
	// gone. One that is gone is in Snapshot.Gone from then on, one that is not is in
	// the Snapshot as if the cache held it, and so is another one of its name that
	// Action.Owner controls. They have no outcome.
	LookForConfigMap ActionKind = "LookForConfigMap"
	LookForPod       ActionKind = "LookForPod"
	// ListPods looks live at all Pods that the ConfigMap Action.Owner controls. They are
	// in the Snapshot from then on, as if the cache held them. It has an outcome.
	ListPods ActionKind = "ListPods"
	// CheckStatus compares Persisted with what the API server holds. If they are the
	// same, Snapshot.Current is true from then on, and Action.Seen are in
	// Snapshot.Checked; else all that is known of the Framework is dropped and read
	// again. It has no outcome.
	CheckStatus ActionKind = "CheckStatus"
)

// Action is one thing to do at the API server, in the Framework's namespace.
type Action struct {
	Kind ActionKind
	// Name of the object.
	Name string
	// UID of the object, a precondition if set.
	UID types.UID
	// Seen are UIDs of objects that were known when CheckStatus was planned.
	Seen []types.UID
	// Role and Index are the task of CreatePod, ConfirmNoPod, and of the DeletePod
	// that ends a task's attempt.
	Role  string
	Index int32
	// Owner is who has to be the controller of an object of that name for it to be the
	// Framework's, in creations, in looks and in ListPods.
	Owner types.UID
	// ConfigMap is the object of CreateConfigMap.
	ConfigMap *corev1.ConfigMap
	// PodGroup is the object of CreatePodGroup and UpdatePodGroup.
	PodGroup *schedulingv1alpha1.PodGroup
	// Pod builds the object of CreatePod. An error says what is wrong with the
	// template: the Pod is refused for good. Several goroutines may call it.
	Pod func() (*corev1.Pod, error)
}

// String shows the action in a trace: what, of which object.
func (a Action) String() string {
	shown := string(a.Kind) + " " + a.Name
	if detail := a.Detail(); detail != "" {
		shown += " " + detail
	}
	return shown
}

// Detail says what UpdatePodGroup writes. It is empty for all others.
func (a Action) Detail() string {
	if a.Kind != UpdatePodGroup {
		return ""
	}
	return fmt.Sprintf("minMember=%d", a.PodGroup.Spec.MinMember)
}

// Outcome is what became of an action that went through. One that failed for
// now has none: it is planned again.
type Outcome struct {
	Action Action
	// UID of the created object.
	UID types.UID
	// Refused says why the API server will never take a Pod. Nil if it did.
	Refused *frameworkv1.CompletionStatus
}

// History is an object about to be overwritten or deleted, and why.
type History struct {
	Trigger HistoryTrigger
	// Framework with the status to log.
	Framework *frameworkv1.Framework
	// TaskRole and Task are set if a task is the object.
	TaskRole *frameworkv1.TaskRoleStatus
	Task     *frameworkv1.TaskStatus
}

// HistoryTrigger is why an object is logged.
type HistoryTrigger string

// Triggers, as they appear in the log.
const (
	OnFrameworkRetry    HistoryTrigger = "OnFrameworkRetry"
	OnFrameworkDeletion HistoryTrigger = "OnFrameworkDeletion"
	OnTaskRetry         HistoryTrigger = "OnTaskRetry"
	OnTaskDeletion      HistoryTrigger = "OnTaskDeletion"
)

// Event tells the user of a change.
type Event = plan.Event

// Reasons of events.
const (
	// ReasonAttemptStarted: an attempt has begun, and its objects are about to be made.
	ReasonAttemptStarted = "AttemptStarted"
	// ReasonAttemptRunning: a task of the attempt runs.
	ReasonAttemptRunning = "AttemptRunning"
	// ReasonAttemptCompleted: the attempt is over, and the message says with which code.
	ReasonAttemptCompleted = "AttemptCompleted"
	// ReasonRetryScheduled: another attempt follows, and the message says when.
	ReasonRetryScheduled = "RetryScheduled"
	// ReasonCompleted: the Framework is over. No attempt follows.
	ReasonCompleted = "Completed"
	// ReasonTaskFailed: an attempt of a task has failed, and the message says how.
	ReasonTaskFailed = "TaskFailed"
	// ReasonRescaled: tasks were added, or are to be deleted.
	ReasonRescaled = "Rescaled"
	// ReasonLowerPriorityClass: the template of a role names a lower PriorityClass
	// than the gang does.
	ReasonLowerPriorityClass = "LowerPriorityClass"
	// ReasonNotAdmissible: the Framework can't be in its queue of Kueue, and the message says why.
	ReasonNotAdmissible = "NotAdmissible"
)

// String shows the plan in a few lines.
func (p Plan) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s", p.Persist)
	for _, action := range p.Actions {
		fmt.Fprintf(&b, "\n%s", action)
	}
	if !p.WakeAt.IsZero() {
		fmt.Fprintf(&b, "\nwake at %s", p.WakeAt.UTC().Format(time.RFC3339))
	}
	if p.Err != nil {
		fmt.Fprintf(&b, "\nerror: %v", p.Err)
	}
	return b.String()
}
