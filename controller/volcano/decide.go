// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package volcano

import (
	"cmp"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	batchv1alpha1 "github.com/lockstep-k8s/lockstep/apis/batch/v1alpha1"
	"github.com/lockstep-k8s/lockstep/controller/engine/plan"
)

// Decide plans one round for one Job. now is the current time; times in the status are cut to whole seconds, because
// the API stores no more. The returned Memory is an input of the next call.
func Decide(snapshot Snapshot, now time.Time) (plan.Plan[batchv1alpha1.JobStatus], Memory) {
	d := newDecision(snapshot, now)
	d.run()
	p := d.finish()
	d.memory.Told = d.Told
	if d.leave || d.awaiting || d.hold || d.outdated || d.pause {
		last := -1
		if d.leave {
			last = d.Stage
		}
		d.memory = d.memory.with(snapshot.Memory, last) // Not all of it was looked at.
	}
	return p, d.memory
}

// stages are the steps of a round, in order. Each step reports whether the round continues. A step ends the round if
// the status has to be written before a later step may act on it.
var stages = []struct {
	name string
	run  func(*decision) (goOn bool)
}{
	{"whose Job it is", (*decision).checkOwnership},
	{"a Job that is being deleted is left alone", (*decision).stillWanted},
	{"first status", (*decision).initialize},
	{"a step that is not written yet", (*decision).awaitWrite},
	{"Pods by task and index", (*decision).gatherMembers},
	{"validation of the spec", (*decision).checkSpec},
	{"what is there and what has ended", (*decision).followRecords},
	{"Pods that may be out of sight", (*decision).lookForMissing},
	{"the Command that was executed last", (*decision).finishCommand},
	{"Commands", (*decision).followCommands},
	{"events and policies", (*decision).applyPolicies},
	{"limit of the run time", (*decision).applyRuntimeLimit},
	{"phase", (*decision).followPhase},
}

func (d *decision) run() {
	for i, stage := range stages {
		d.Stage = i
		if !stage.run(d) {
			return
		}
	}
	d.Stage = len(stages)
}

// stillWanted ends the round if the Job is being deleted. The garbage collector then deletes the Job's objects, and
// their ends trigger no policy.
func (d *decision) stillWanted() (goOn bool) {
	d.leave = d.Job.DeletionTimestamp != nil
	return !d.leave
}

// initialize makes the first status. Nothing is created before the first status is written.
func (d *decision) initialize() (goOn bool) {
	switch phase := d.next.State.Phase; {
	case phase == "":
		d.enter(batchv1alpha1.JobPending, "", "")
		d.recordHash()
	case !isKnown(phase):
		d.Fail(fmt.Errorf("the Job has the phase %q, which does not exist", phase))
		d.leave = true
	}
	return !d.pause && !d.leave
}

// awaitWrite ends the round if a step of the phase is not written yet.
func (d *decision) awaitWrite() (goOn bool) {
	if d.Persisted == nil || d.Persisted.State.Phase != d.next.State.Phase ||
		d.Persisted.Version != d.next.Version || d.Persisted.RetryCount != d.next.RetryCount {
		d.awaiting = true
		d.pauseUntilWritten()
	}
	return !d.pause
}

// decision is one round in the making.
type decision struct {
	Snapshot
	plan.Draft[batchv1alpha1.JobStatus]
	// clock is the caller's time; now is the same cut to seconds.
	clock time.Time
	now   metav1.Time
	*reading
	// tasks are the tasks of the spec, in order, followed by tasks that are no longer in the spec.
	tasks []*task
	// unclear means that the spec can't be used to judge the Job, because it is invalid or has lost tasks. Then no
	// policy acts, a rescale creates and removes no Pod, and the recorded state stays.
	unclear bool
	// next is the status in the making.
	next   *batchv1alpha1.JobStatus
	memory Memory
	// joined are the restarts of parts that have joined the current restart in this round.
	joined map[target]bool
	// onRecord is what readTarget says of a message.
	onRecord struct {
		message string
		target  target
		found   bool
	}
	// confirming are names of Pods that may still exist. notFound are names of Pods that a live read in the previous
	// round has not found. Both are nil before their first use.
	confirming, notFound map[string]bool
	// listsPods says that the Job's Pods are listed live.
	listsPods bool
	// obstacle is why no Pods are created at present. Its reason is empty if Pods can be created.
	obstacle obstacle
	// leave means that this round does nothing at all. awaiting means that the status in the Snapshot is written
	// unchanged. hold means that the status is not written.
	leave, awaiting, hold bool
	// outdated is set if an object shows that the status is an old one.
	outdated bool
	// pause means that nothing may be done before the status is written. A stage sets it.
	pause bool
}

func newDecision(snapshot Snapshot, now time.Time) *decision {
	d := &decision{
		Snapshot:   snapshot,
		clock:      now,
		now:        metav1.NewTime(now.Truncate(time.Second)),
		reading:    snapshot.Memory.read(snapshot.Job, snapshot.Unreadable, snapshot.Options),
		next:       &batchv1alpha1.JobStatus{},
		confirming: map[string]bool{},
		joined:     map[target]bool{},
	}
	d.Draft = plan.NewDraft(&d.Known, snapshot.Memory.Told, now)
	d.memory.reading = d.reading
	if known := cmp.Or(snapshot.Status, snapshot.Persisted); known != nil {
		d.next = known.DeepCopy()
	}
	d.gatherTasks()
	return d
}

// finish turns the decision into a plan.
func (d *decision) finish() plan.Plan[batchv1alpha1.JobStatus] {
	switch {
	case d.leave:
		d.Plan.Status = d.Persisted
		return d.Plan
	case d.awaiting:
		d.Plan.Status = d.Status
		return d.Plan
	case d.hold, d.outdated:
		d.Plan.Status = d.Status
		if !d.outdated {
			clear(d.confirming) // What a look would find could not be put on record.
			d.planActions()
		}
		d.Plan.Persist = plan.PersistNone
		d.PlanCheck(d.Job)
		return d.Plan
	}
	if d.pause {
		d.Plan.Actions = nil
	} else {
		d.planActions()
		d.PlanCheck(d.Job)
	}
	d.explain()
	d.writeRecords()
	d.writeResources()
	d.writeCounts()
	d.settle()
	return d.Plan
}

// settle compares the status with the known statuses.
func (d *decision) settle() {
	d.Settle(d.next, plan.Same)
	c, all := d.counts(), d.replicas()
	d.Plan.Starting = hasPods(d.next.State.Phase) && c.pending > 0
	d.Plan.Settled = all > 0 && d.next.Running == all && (d.Persisted == nil || d.Persisted.Running != all)
}
