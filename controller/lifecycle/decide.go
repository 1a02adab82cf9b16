// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"fmt"
	"slices"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	"github.com/lockstep-k8s/lockstep/controller/engine/plan"
	"github.com/lockstep-k8s/lockstep/internal/text"
)

// Decide plans one round for one Framework. now is the current time. Times in the status are cut to whole seconds,
// because the API stores no more; so a decision is the same before and after a restart of the controller.
func Decide(snapshot Snapshot, now time.Time, entropy plan.Entropy) Plan {
	d := newDecision(snapshot, now, entropy)
	d.run()
	return d.finish()
}

// stages are the steps of a round, in order. Each step reports whether the round continues. A step ends the round if
// the status has to be written before a later step may act on it.
var stages = []struct {
	name string
	run  func(*decision) (goOn bool)
}{
	{"first status", (*decision).initialize},
	{"outcomes of the last actions", (*decision).foldOutcomes},
	{"a Completed Framework is left alone", (*decision).stillAlive},
	{"whether the attempt is a gang", (*decision).decideGang},
	{"scale of the spec", (*decision).rescale},
	{"removal of deleted tasks", (*decision).compactTasks},
	{"PodGroup", (*decision).observePodGroup},
	{"ConfigMap", (*decision).followConfigMap},
	{"retry of the attempt", (*decision).retryAttempt},
	{"a stop by the user", (*decision).stop},
	{"an admission that is withdrawn", (*decision).giveWay},
	{"tasks and their Pods", (*decision).followTasks},
	{"completion policy", (*decision).applyCompletionPolicy},
	{"whether the gang was placed", (*decision).followPlacement},
	{"members that the gang has lost", (*decision).followRecovery},
	{"time-outs of the gang", (*decision).applyGangTimeouts},
	{"times of the gang", (*decision).persistGangTimes},
	{"limit of the run time", (*decision).applyRuntimeLimit},
	{"ends of tasks", (*decision).persistEnds},
	{"first running task", (*decision).noteRunning},
}

func (d *decision) run() {
	for _, stage := range stages {
		if !stage.run(d) {
			return
		}
	}
}

// pauseUntilWritten ends the round: nothing more is decided, and nothing is done,
// before the status is written.
func (d *decision) pauseUntilWritten() (goOn bool) {
	d.Persist(plan.PersistNow)
	d.pause = true
	return false
}

// stillAlive ends the round of a Framework that is Completed.
func (d *decision) stillAlive() (goOn bool) {
	return d.next.State != frameworkv1.FrameworkCompleted
}

// stop ends the attempt if the user asks for that.
func (d *decision) stop() (goOn bool) {
	if d.stopRequested() && !d.completing() {
		d.attemptBecomesDeletionPending(attemptCompletion(frameworkv1.CodeStopFrameworkRequested,
			"User has requested to stop the Framework"))
	}
	return true
}

// followTasks brings all tasks in line with the Pods.
func (d *decision) followTasks() (goOn bool) {
	d.eachTask(cursor.follow)
	return true
}

// noteRunning makes the attempt run with the first running task.
func (d *decision) noteRunning() (goOn bool) {
	if d.next.State == frameworkv1.FrameworkAttemptPreparing && d.anyTaskRunning() {
		d.attemptBecomesRunning()
	}
	return true
}

// decision is one round in the making.
type decision struct {
	Snapshot
	plan.Draft[frameworkv1.FrameworkStatus]
	plan.Entropy
	// clock is the caller's time; now is the same cut to seconds.
	clock time.Time
	now   metav1.Time
	// next is the status that this round makes. It shares with the present status all tasks that have not changed.
	next *frameworkv1.FrameworkStatus
	// specRoles and persistedRoles are roles by name.
	specRoles      map[string]*frameworkv1.TaskRoleSpec
	persistedRoles map[string]*frameworkv1.TaskRoleStatus
	// specTasks is how many tasks the spec has.
	specTasks int
	// noConfigMap and noPod (by name) report that a live read in the previous round did not find the object.
	noConfigMap bool
	noPod       map[string]bool
	// podsListed reports that the previous round has listed all Pods of the attempt from the API server.
	podsListed bool
	// listsPods says that Pods are to be listed in this round.
	listsPods bool
	// adopted holds the UIDs of Pods that were adopted in this round.
	adopted map[types.UID]bool
	// recorded is how many of the cached Pods are those of tasks.
	recorded int
	// waitsForMembers says that the gang waits for lost members.
	waitsForMembers bool
	// podBuilders are by role.
	podBuilders map[string]func() (*podBuilder, error)
	// pause means that nothing may be done before the status is written. A stage sets it.
	pause bool
	// broken is set by giveUp.
	broken       bool
	taskFailures taskFailures
	history      []History
}

func newDecision(snapshot Snapshot, now time.Time, entropy plan.Entropy) *decision {
	d := &decision{
		Snapshot:    snapshot,
		Entropy:     entropy,
		clock:       now,
		now:         metav1.NewTime(now.Truncate(time.Second)),
		specRoles:   make(map[string]*frameworkv1.TaskRoleSpec, len(snapshot.Framework.Spec.TaskRoles)),
		podBuilders: map[string]func() (*podBuilder, error){},
	}
	d.Draft = plan.NewDraft(&d.Known, nil, now)
	for i := range snapshot.Framework.Spec.TaskRoles {
		role := &snapshot.Framework.Spec.TaskRoles[i]
		d.specRoles[role.Name] = role
		d.specTasks += int(role.TaskNumber)
	}
	if snapshot.Persisted != nil {
		d.persistedRoles = rolesByName(snapshot.Persisted.AttemptStatus.TaskRoleStatuses)
	}
	if snapshot.Status != nil {
		d.next = frameworkv1.ShareTasks(snapshot.Status)
	}
	return d
}

// finish turns the decision into a plan.
func (d *decision) finish() Plan {
	if d.broken {
		return Plan{Plan: plan.Plan[frameworkv1.FrameworkStatus]{Status: d.Status, Err: d.Plan.Err}}
	}
	d.next.ObservedGeneration = d.Framework.Generation
	d.next.Tasks = countTasks(d.next.AttemptStatus.TaskRoleStatuses)
	d.next.Waiting = countWaiting(d.next.AttemptStatus.TaskRoleStatuses)
	d.setConditions()
	if !d.pause {
		d.planActions()
	}
	d.noteTaskFailures()
	d.Settle(d.next, sameStatus)
	return Plan{d.Plan, d.history}
}

// sameStatus reports whether two statuses of one Framework are equal. sameStatus does not compare the content of tasks
// that both share.
func sameStatus(a, b *frameworkv1.FrameworkStatus) bool {
	rolesA, rolesB := a.AttemptStatus.TaskRoleStatuses, b.AttemptStatus.TaskRoleStatuses
	sameRole := func(a, b *frameworkv1.TaskRoleStatus) bool {
		return a.Name == b.Name && a.InstanceUID == b.InstanceUID &&
			apiequality.Semantic.DeepEqual(a.PodGracefulDeletionTimeoutSec, b.PodGracefulDeletionTimeoutSec) &&
			slices.EqualFunc(a.TaskStatuses, b.TaskStatuses, func(a, b *frameworkv1.TaskStatus) bool {
				return a == b || apiequality.Semantic.DeepEqual(a, b)
			})
	}
	if !slices.EqualFunc(rolesA, rolesB, sameRole) {
		return false
	}
	withoutTasksA, withoutTasksB := *a, *b
	withoutTasksA.AttemptStatus.TaskRoleStatuses = nil
	withoutTasksB.AttemptStatus.TaskRoleStatuses = nil
	return apiequality.Semantic.DeepEqual(withoutTasksA, withoutTasksB)
}

// giveUp gives the decision up: the status, or this package, makes no sense.
func (d *decision) giveUp(err error) {
	d.broken = true
	d.Fail(err)
}

// describe returns a completion status in a few words.
func describe(status frameworkv1.CompletionStatus) string {
	const most = 512
	return fmt.Sprintf("code %d, %s: %s", status.Code, status.Phrase, text.Shorten(status.Diagnostics, most))
}
