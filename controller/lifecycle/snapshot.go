// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/controller/engine/plan"
)

// Snapshot is the whole input of a decision about one Framework. Decide does not change it.
type Snapshot struct {
	// Framework gives metadata and spec. The status in there is ignored.
	Framework *frameworkv1.Framework
	plan.Known[frameworkv1.FrameworkStatus]

	// ConfigMap is the cached one with the attempt's name, if the Framework
	// controls it.
	ConfigMap *metav1.ObjectMeta
	// PodGroup is the cached PodGroup with the name that the Framework uses, if ConfigMap controls it. If a write has
	// returned a newer status, the caller puts that status into it.
	PodGroup *schedulingv1alpha1.PodGroup
	// Pods are the Framework's Pods by name. A Pod is the Framework's if the cached ConfigMap or the ConfigMap in the
	// status controls it, or if it has the Framework's UID in an annotation.
	Pods map[string]*corev1.Pod
	// TakenOver is what was found when this controller first saw the Framework.
	TakenOver TakenOver
	// PriorityOf returns the value of a PriorityClass; false if no class has that name. Nil if the classes are not
	// known.
	PriorityOf func(class string) (int32, bool)
	Options    Options
}

// Options are the controller's settings that decisions depend on.
type Options struct {
	// GangSchedulerName is the scheduler that places PodGroups.
	GangSchedulerName string
	// Queues says that Frameworks in queues of Kueue wait for admission.
	Queues bool
	// CreationTimeout is how long a created ConfigMap or Pod may take to be seen.
	CreationTimeout time.Duration
	// CompletedRetention is how long a Completed Framework is kept.
	CompletedRetention time.Duration
	// HistoryLimit is how many attempts that are over status.history keeps.
	HistoryLimit int
	// MinConflictDelaySeconds and MaxConflictDelaySeconds are the least and the largest delay of a retry after a
	// Transient failure by Conflict.
	MinConflictDelaySeconds int64
	MaxConflictDelaySeconds int64
	// PodFailures classifies failed Pods.
	PodFailures *PodFailureRules
}
