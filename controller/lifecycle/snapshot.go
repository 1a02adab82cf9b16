// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/controller/engine/plan"
)

// Snapshot is all that a decision about one Framework sees. Decide changes
// nothing in it.
type Snapshot struct {
	// Framework gives metadata and spec. Its status is not looked at.
	Framework *frameworkv1.Framework
	// Persisted is the status that the API server is known to hold, decompressed.
	// Nil before the first write.
	Persisted *frameworkv1.FrameworkStatus
	// Status is the last Plan's: Persisted and what is not yet written. Nil
	// before the first Plan.
	Status *frameworkv1.FrameworkStatus

	// ConfigMap is the cached one with the attempt's name, if the Framework
	// controls it.
	ConfigMap *metav1.ObjectMeta
	// PodGroup is the cached one with the name of the Framework's PodGroups, if
	// ConfigMap controls it. A caller that knows of a newer one from its own write puts it here.
	PodGroup *schedulingv1alpha1.PodGroup
	// Pods are the Framework's, by name: those that its ConfigMap controls, the cached
	// one or that of the status, and those that carry the Framework's UID in an
	// annotation.
	Pods map[string]*corev1.Pod
	// Gone holds the UIDs of objects that are certainly gone. An object that is
	// neither in the caches nor here may only have lost a label: a live look tells.
	Gone map[types.UID]bool
	// Terminating is since when, by the controller's own clock, Pods have been seen to
	// be deleted.
	Terminating map[types.UID]time.Time
	// TakenOver is what was found when this controller first saw the Framework.
	TakenOver TakenOver
	// Blocked are creations that are refused for now and will be tried again.
	Blocked []Block
	// Current says that Persisted is what the API server holds, or once did since this
	// controller began: it was written by it, or compared with a live look. Before,
	// nothing is created. Another controller may have written since.
	Current bool
	// Checked holds the UIDs of objects that were known when Persisted was last found, by
	// a live look, to be what the API server holds. Whatever an object is created for is
	// persisted before, so what nobody waits for then is a leftover, and stays one.
	Checked map[types.UID]bool
	// PriorityOf is the value of a PriorityClass, false if there is none of that name.
	// Nil if it is not known which there are.
	PriorityOf func(class string) (int32, bool)

	// Deleted holds the UIDs of objects whose deletion the API server accepted,
	// so that it is not asked for again while the cache is behind. It may be
	// forgotten: deletion is idempotent.
	Deleted map[types.UID]bool
	// Forced holds the UIDs of Pods that were deleted by force and are gone,
	// while the cache may still show them. It may be forgotten too.
	Forced map[types.UID]bool
	// Outcomes are what became of the last Plan's actions. Each is given once.
	Outcomes []Outcome
	// UnknownFields names, for people, the fields in the Pod templates that the API server does not know, as far as it was asked.
	// FieldsKnown says that it was about all of them, and could tell.
	UnknownFields string
	FieldsKnown   bool

	Options Options
}

// Block is a creation that the API server refuses for now.
type Block struct {
	// Role whose Pods are refused. Empty for the attempt's ConfigMap and PodGroup.
	Role string
	// Reason is one of the reasons of the condition TasksBlocked.
	Reason string
	// Message says, for people, what is refused and why.
	Message string
}

// Options are the controller's settings that decisions depend on.
type Options struct {
	// GangSchedulerName is the scheduler that places PodGroups.
	GangSchedulerName string
	// Queues says that Frameworks in queues of Kueue wait until they are admitted.
	Queues bool
	// CreationTimeout is how long a created ConfigMap or Pod may take to be seen.
	CreationTimeout time.Duration
	// CompletedRetention is how long a Completed Framework is kept.
	CompletedRetention time.Duration
	// HistoryLimit is how many attempts that are over status.history keeps.
	HistoryLimit int
	// MinConflictDelaySeconds and MaxConflictDelaySeconds bound, both inclusive,
	// the delay of a retry after a Transient failure by Conflict.
	MinConflictDelaySeconds int64
	MaxConflictDelaySeconds int64
	// PodFailures classifies failed Pods.
	PodFailures *PodFailureRules
}

// Entropy supplies what a decision may not invent.
type Entropy = plan.Entropy
