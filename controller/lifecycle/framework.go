// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	configv1alpha1 "github.com/lockstep-k8s/lockstep/apis/config/v1alpha1"
	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	"github.com/lockstep-k8s/lockstep/controller/engine/plan"
)

// initialize creates the first status, in which all roles and tasks of the spec wait to be created. The status is
// written before anything else is done.
func (d *decision) initialize() (goOn bool) {
	if d.Status != nil {
		return true
	}
	d.next = &frameworkv1.FrameworkStatus{
		StartTime:      d.now,
		State:          frameworkv1.FrameworkAttemptCreationPending,
		TransitionTime: d.now,
		AttemptStatus:  d.newAttempt(0),
	}
	return d.pauseUntilWritten()
}

// newAttempt returns an attempt that has not begun, made from the present spec.
func (d *decision) newAttempt(id int32) frameworkv1.FrameworkAttemptStatus {
	attempt := frameworkv1.FrameworkAttemptStatus{
		ID:               id,
		StartTime:        d.now,
		ConfigMapName:    frameworkv1.AttemptName(d.Framework.Name),
		TaskRoleStatuses: []*frameworkv1.TaskRoleStatus{},
	}
	if d.mayBegin() {
		attempt.Gang = d.gangOfSpec()
	}
	for i := range d.Framework.Spec.TaskRoles {
		attempt.TaskRoleStatuses = append(attempt.TaskRoleStatuses, d.newTaskRole(&d.Framework.Spec.TaskRoles[i]))
	}
	return attempt
}

// instanceUID names one instance of an attempt.
func instanceUID(attemptID int32, object types.UID) *types.UID {
	uid := types.UID(fmt.Sprintf("%d_%s", attemptID, object))
	return &uid
}

func (d *decision) stopRequested() bool {
	return d.Framework.Spec.ExecutionType == frameworkv1.ExecutionStop
}

// completing reports whether the attempt's end is decided while the ConfigMap still exists.
func (d *decision) completing() bool {
	switch d.next.State {
	case frameworkv1.FrameworkAttemptDeletionPending,
		frameworkv1.FrameworkAttemptDeletionRequested,
		frameworkv1.FrameworkAttemptDeleting:
		return true
	default:
		return false
	}
}

// hasInstance reports whether the attempt's ConfigMap was seen and is not gone yet. Tasks have Pods only during that
// time.
func (d *decision) hasInstance() bool {
	switch d.next.State {
	case frameworkv1.FrameworkAttemptPreparing, frameworkv1.FrameworkAttemptRunning:
		return true
	default:
		return d.completing()
	}
}

// ownConfigMap reports whether the cached ConfigMap is the one of this attempt.
func (d *decision) ownConfigMap() bool {
	uid := d.next.AttemptStatus.ConfigMapUID
	return d.ConfigMap != nil && uid != nil && d.ConfigMap.UID == *uid
}

// creationTimedOut reports whether the created ConfigMap should have been seen by now. If not, `at` is the time by
// which it should be seen.
func (d *decision) creationTimedOut() (timedOut bool, at time.Time) {
	return d.over(d.next.TransitionTime, d.Options.CreationTimeout)
}

// followConfigMap brings the Framework's state in line with the ConfigMap.
func (d *decision) followConfigMap() (goOn bool) {
	switch d.next.State {
	case frameworkv1.FrameworkAttemptCreationPending:
		d.adoptConfigMap()
		if d.next.State == frameworkv1.FrameworkAttemptCreationRequested {
			d.awaitConfigMap()
		} else if d.stopRequested() && d.noConfigMap && len(d.Pods) == 0 {
			d.attemptBecomesAttemptCompleted(attemptCompletion(frameworkv1.CodeStopFrameworkRequested,
				"User has requested to stop the Framework"))
		}
	case frameworkv1.FrameworkAttemptCreationRequested:
		d.awaitConfigMap()
	case frameworkv1.FrameworkAttemptPreparing,
		frameworkv1.FrameworkAttemptRunning,
		frameworkv1.FrameworkAttemptDeletionPending,
		frameworkv1.FrameworkAttemptDeletionRequested,
		frameworkv1.FrameworkAttemptDeleting:
		switch {
		case d.configMapIsOutOfSight():
			// planLook does that. Until the fate of the ConfigMap is known, the attempt goes on.
		case d.ownConfigMap():
			if d.ConfigMap.DeletionTimestamp != nil && d.next.State != frameworkv1.FrameworkAttemptDeleting {
				d.attemptBecomesDeleting()
			}
		case d.anythingSeen(), d.mayHaveUnseenPods():
			if d.next.State != frameworkv1.FrameworkAttemptDeleting {
				d.attemptBecomesDeleting()
			}
		default:
			d.attemptBecomesAttemptCompleted(configMapDeleted())
		}
	case frameworkv1.FrameworkAttemptCompleted, frameworkv1.FrameworkCompleted:
	default:
		d.giveUp(fmt.Errorf("status.state %q is unknown", d.next.State))
	}
	return true
}

// configMapIsOutOfSight reports whether the attempt's ConfigMap has left the cache and may still exist, for instance
// without its label. The API server may have an older or newer ConfigMap with that name than the cache had.
func (d *decision) configMapIsOutOfSight() bool {
	uid := d.next.AttemptStatus.ConfigMapUID
	return d.hasInstance() && !d.ownConfigMap() && uid != nil && !d.Gone[*uid]
}

// anythingSeen reports whether an attempt without a ConfigMap has any object. There may be Pods, because a ConfigMap
// that is deleted in the background does not wait for them. There may also be leftovers, if a former leader wrote late
// and brought back an attempt that the new leader had begun again.
func (d *decision) anythingSeen() bool {
	left := len(d.Pods) > 0 || d.ConfigMap != nil && !d.Gone[d.ConfigMap.UID]
	d.eachTask(func(t cursor) {
		left = left || t.status().State.Associated() && !t.podIsGone()
	})
	return left
}

// mayHaveUnseenPods reports whether the attempt may have Pods that neither the status nor the cache shows. That is so
// if a Pod was created just before the controller crashed, lost the answer, or read the status again. A list from the
// API server shows such Pods.
func (d *decision) mayHaveUnseenPods() bool {
	may := false
	if !d.podsListed {
		d.eachTask(func(t cursor) { may = may || t.mayHaveUnseenPod() })
	}
	return may
}

func configMapDeleted() *frameworkv1.FrameworkAttemptCompletionStatus {
	return attemptCompletion(frameworkv1.CodeConfigMapExternalDeleted, "The ConfigMap of the attempt was deleted from outside")
}

// awaitConfigMap handles a ConfigMap that was created: the cache has it, the attempt no longer needs it, or the cache
// should have it and does not.
func (d *decision) awaitConfigMap() {
	switch timedOut, _ := d.creationTimedOut(); {
	case d.ownConfigMap() && d.ConfigMap.DeletionTimestamp != nil:
		d.attemptBecomesDeleting()
	case d.ownConfigMap():
		d.attemptBecomesPreparing()
	case !d.Gone[*d.next.AttemptStatus.ConfigMapUID]:
		// planActions does that.
	case d.anythingSeen():
		// The object existed, and a controller that died knew more about it.
		d.attemptBecomesDeleting()
	case d.mayHaveUnseenPods():
		// planActions does that.
	case d.stopRequested():
		d.attemptBecomesAttemptCompleted(attemptCompletion(frameworkv1.CodeStopFrameworkRequested,
			"User has requested to stop the Framework"))
	case timedOut:
		d.attemptBecomesAttemptCompleted(attemptCompletion(frameworkv1.CodeConfigMapCreationTimeout,
			fmt.Sprintf("The created ConfigMap was not seen within %v, and is gone", d.Options.CreationTimeout)))
	default:
		d.attemptBecomesAttemptCompleted(configMapDeleted())
	}
}

// retryAttempt decides whether another attempt follows, once AttemptCompleted is written, and begins it after the
// delay. If the Framework is to be stopped, there is no delay: the new attempt begins at once and is then stopped.
// Without a ConfigMap there are no tasks to decide on, so the round ends.
func (d *decision) retryAttempt() (goOn bool) {
	if d.next.State != frameworkv1.FrameworkAttemptCompleted {
		return d.hasInstance()
	}
	if d.Persisted == nil || d.Persisted.State != frameworkv1.FrameworkAttemptCompleted ||
		d.Persisted.AttemptStatus.ID != d.next.AttemptStatus.ID {
		d.Persist(plan.PersistNow)
		return false
	}
	retries := &d.next.RetryPolicyStatus
	decision := d.decideAttemptRetry()
	if retries.RetryDelaySec == nil {
		if !decision.retry {
			d.attemptBecomesCompleted()
			return false
		}
		delay := decision.delay.draw(d)
		retries.RetryDelaySec = &delay
		retries.BackoffSec = decision.backoffSec
		if delay > 0 {
			d.Tell(false, ReasonRetryScheduled, "Attempt %d will be retried in %d s", d.next.AttemptStatus.ID, delay)
		}
	}
	delay := configv1alpha1.Seconds(*retries.RetryDelaySec)
	if over, at := d.over(d.next.TransitionTime, delay); !over && !d.stopRequested() {
		d.WakeAt(at)
		d.Persist(plan.PersistNow)
		return false
	}
	if d.admissionIsUsedUp() && !d.stopRequested() {
		d.Persist(plan.PersistNow)
		return false
	}
	d.history = append(d.history, History{Trigger: OnFrameworkRetry, Framework: d.withPersistedStatus()})
	d.attemptBecomesCreationPending(decision.accountable)
	return false
}

// withPersistedStatus returns the Framework as the API server stores the Framework.
func (d *decision) withPersistedStatus() *frameworkv1.Framework {
	framework := *d.Framework
	framework.Status = d.Persisted
	return &framework
}

// backUpDeletionTimeouts copies each role's podGracefulDeletionTimeoutSec from the spec to the status, because a role
// may be removed from the spec. Deletions depend on the copy, so it has to be written first; see scalePersisted.
func (d *decision) backUpDeletionTimeouts() {
	for _, role := range d.next.AttemptStatus.TaskRoleStatuses {
		spec := d.specRoles[role.Name]
		if spec == nil {
			continue
		}
		if want := spec.Task.PodGracefulDeletionTimeoutSec; !ptr.Equal(want, role.PodGracefulDeletionTimeoutSec) {
			role.PodGracefulDeletionTimeoutSec = want
		}
	}
}
