// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package kubeflow

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kubeflowv1 "github.com/lockstep-k8s/lockstep/apis/kubeflow/v1"
	"github.com/lockstep-k8s/lockstep/controller/engine/plan"
	"github.com/lockstep-k8s/lockstep/controller/jobpods"
	"github.com/lockstep-k8s/lockstep/podgroup"
)

// Decide plans one round for one job. now is the current time; times in the status are cut to whole seconds, because
// the API stores no more. The returned Memory is an input of the next call.
func Decide(snapshot Snapshot, now time.Time, entropy plan.Entropy) (plan.Plan[kubeflowv1.JobStatus], Memory) {
	d := newDecision(snapshot, now, entropy)
	d.run()
	p := d.finish()
	d.memory.Told = d.Told
	if d.leave || d.outdated {
		d.memory = d.memory.with(snapshot.Memory, d.Stage) // Not all of it was looked at.
	}
	return p, d.memory
}

// stages are the steps of a round, in order. Each step reports whether the round continues.
var stages = []struct {
	name string
	run  func(*decision) (goOn bool)
}{
	{"whose job it is", (*decision).checkOwnership},
	{"a job that is being deleted is left alone", (*decision).stillWanted},
	{"that nobody else has begun it", (*decision).checkUnbegun},
	{"by which rules it lives", (*decision).read},
	{"first status", (*decision).initialize},
	{"Pods and Services by type and index", (*decision).gather},
	{"whether the API server remembers the job", (*decision).checkCRD},
	{"suspension", (*decision).followSuspension},
	{"what has become of the Pods", (*decision).follow},
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

// stillWanted ends the round of a job that is being deleted: the garbage collector deletes all objects of the job.
func (d *decision) stillWanted() (goOn bool) {
	d.leave = d.Job.DeletionTimestamp != nil
	return !d.leave
}

// read decides by which version's rules the job is run, and decodes the spec by these rules.
func (d *decision) read() (goOn bool) {
	createdAs := d.Job.Spec.CreatedAs
	if version := d.recordedVersion(); version == kubeflowv1.CreatedAsV1alpha2 {
		createdAs = kubeflowv1.CreatedAsV1alpha2
	} else if version != "" {
		createdAs = ""
	}
	d.kind = kindOf(d.Job, createdAs)
	if d.kind == nil {
		d.Fail(fmt.Errorf("nothing is known of the kind %q", d.Job.Kind))
		d.leave = true
		return false
	}
	options := d.Options
	options.GangAlways, options.Services = options.GangAlways || d.hasGroup(), d.servicesOfStart()
	d.reading = d.Memory.read(d.Job, d.kind, options)
	if d.mayChangeServices() {
		options.Services = wishedServices(d.Job, d.kind, d.Options)
		d.reading = d.Memory.read(d.Job, d.kind, options)
		d.noteServices()
	}
	d.memory.reading = d.reading
	for _, w := range d.warnings {
		d.Once(w.Warning, w.Reason, "%s", w.Message)
	}
	if d.invalid != "" {
		d.WarnOnce(d.kind.reason("Invalid"), "%s", d.invalid)
	}
	if _, problems := d.runtimes(); len(problems) > 0 {
		d.WarnOnce(podgroup.ReasonInvalidRuntime, "%s", strings.Join(problems, "; "))
	}
	d.followPriorityClass()
	return true
}

// recordedVersion returns the version by whose rules the job's objects were created; "" if there are no objects. The
// names of Pods and Services show the version, and names can't be changed. The PodGroup, which is created first, has
// the version in an annotation.
func (d *decision) recordedVersion() string {
	isNamedBy := func(k *kind) bool {
		for object := range d.podsAndServices() {
			if t, _ := k.placeNamed(d.Job, object.GetName()); t != "" {
				return true
			}
		}
		return false
	}
	switch {
	case d.Job.Kind != kubeflowv1.TFJobKind:
		return ""
	case isNamedBy(tfJobDesigned):
		return kubeflowv1.CreatedAsV1alpha2
	case isNamedBy(tfJob):
		return tfJob.versionName()
	}
	for _, name := range jobpods.SortedKeys(d.PodGroups) {
		if version := d.PodGroups[name].Annotations[KeyCreatedAs]; version != "" {
			return version
		}
	}
	return ""
}

// initialize makes the first status. Nothing is created before the first status is written.
func (d *decision) initialize() (goOn bool) {
	if d.next.Starts == 0 && d.next.StartTime != nil {
		d.next.Starts = d.newestStart() // Another's CRD has dropped the number.
		d.noteServices()
	}
	if !d.kind.designed {
		d.enter(kubeflowv1.JobConditionCreated, d.named()+" is created.")
	}
	switch failed := is(d.next, kubeflowv1.JobConditionFailed); {
	case d.next.Phase != "":
	case isFinished(d.next) && failed:
		d.next.Phase = kubeflowv1.JobFailed
	case isFinished(d.next):
		d.next.Phase = kubeflowv1.JobSucceeded
	default:
		d.next.Phase = kubeflowv1.JobPending
	}
	if d.next.StartTime == nil && !d.wantsSuspension() && !is(d.next, kubeflowv1.JobConditionSuspended) && !isFinished(d.next) {
		d.begin()
	}
	return true
}

// named returns the job's name in conditions: "TFJob default/mnist".
func (d *decision) named() string { return d.Job.Kind + " " + d.Job.Namespace + "/" + d.Job.Name }

// begin begins a start: what was before does not count.
func (d *decision) begin() {
	d.next.Starts++
	d.next.StartTime, d.next.RuntimeLimit = &d.now, nil
	d.noteServices()
	d.Persist(plan.PersistNow)
}

// newestStart returns the highest number of a start among the job's objects, at least 1.
func (d *decision) newestStart() int32 {
	newest := int32(1)
	for object := range d.objects() {
		newest = max(newest, startOf(object))
	}
	return newest
}

// follow brings status and records in line with what is there.
func (d *decision) follow() (goOn bool) {
	switch {
	case is(d.next, kubeflowv1.JobConditionSuspended):
	case isFinished(d.next):
		d.followRest()
	default:
		d.followPods()
		d.followReplacements()
		d.followRefusals()
		if d.kind.designed {
			d.followDesign()
		} else {
			d.followOutcome()
		}
		d.tellOfExits()
	}
	return true
}

// decision is one round in the making.
type decision struct {
	Snapshot
	plan.Draft[kubeflowv1.JobStatus]
	// clock is the caller's time; now is the same cut to seconds.
	clock   time.Time
	now     metav1.Time
	entropy plan.Entropy
	*reading
	kind     *kind
	replicas []*replicas
	// old are Pods of other starts.
	old []*corev1.Pod
	// next is the status in the making.
	next   *kubeflowv1.JobStatus
	memory Memory
	// failure is why the job fails, and restarting why a Pod is replaced; "" if neither happens.
	failure, restarting string
	// evicted is the MPI worker that was evicted, which fails the job; "" if none was.
	evicted string
	// exited are the Pods that were found to have failed, by the way.
	exited map[string][]string
	// refused says that an object can never be created.
	refused bool
	// leave means that this round does nothing at all. outdated means that an object shows that the known status is
	// old.
	leave, outdated bool
	// lists are the kinds to be listed live as a whole.
	lists []string
}

func newDecision(snapshot Snapshot, now time.Time, entropy plan.Entropy) *decision {
	d := &decision{
		Snapshot: snapshot, clock: now, now: metav1.NewTime(now.Truncate(time.Second)), entropy: entropy,
		next: &kubeflowv1.JobStatus{}, exited: map[string][]string{},
	}
	d.Draft = plan.NewDraft(&d.Known, snapshot.Memory.Told, now)
	if snapshot.Status == nil {
		d.Status = snapshot.Persisted
	}
	if d.Status != nil {
		d.next = d.Status.DeepCopy()
	}
	return d
}

// finish turns the decision into a plan.
func (d *decision) finish() plan.Plan[kubeflowv1.JobStatus] {
	switch {
	case d.leave:
		d.Plan.Status = d.Status
		d.PlanCheck(d.Job)
		return d.Plan
	case d.outdated:
		d.Plan.Status, d.Plan.Persist = d.Status, plan.PersistNone
		d.PlanCheck(d.Job)
		return d.Plan
	}
	d.writeCounts()
	if !d.awaitsWrite() {
		d.planActions()
	}
	d.explain()
	d.tellOfDeletions()
	d.PlanCheck(d.Job)
	d.tellOfObjects()
	d.settle()
	for i, action := range d.Plan.Actions {
		if action.Verb == plan.Delete || action.Verb == plan.ForceDelete {
			d.Plan.Actions[i].Complaint = "FailedDelete" + action.Kind // Users of the training operator know it.
		}
	}
	return d.Plan
}

// awaitsWrite reports whether the job begins, is suspended or ends, so that the status has to be written before
// anything is done.
func (d *decision) awaitsWrite() bool {
	p, n := d.Persisted, d.next
	starts := int32(0)
	if p != nil {
		starts = p.Starts
		if starts == 0 && p.StartTime != nil {
			starts = d.newestStart() // It was written, and another's CRD has dropped it.
		}
	}
	waits := p == nil || starts != n.Starts || isFinished(p) != isFinished(n) ||
		is(p, kubeflowv1.JobConditionSuspended) != is(n, kubeflowv1.JobConditionSuspended) ||
		p.Services != "" && p.Services != n.Services || !podgroup.SameLimit(p.RuntimeLimit, n.RuntimeLimit)
	if waits {
		d.Persist(plan.PersistNow)
	}
	return waits
}

// settle compares the status with the known statuses.
func (d *decision) settle() {
	d.Settle(d.next, plan.Same)
	running, all := int32(0), int32(0)
	for _, r := range d.replicas {
		running, all = running+r.counts.active, all+r.number
	}
	begun := !isFinished(d.next) && !is(d.next, kubeflowv1.JobConditionSuspended)
	d.Plan.Starting = begun && running < all
	d.Plan.Settled = begun && all > 0 && running == all && activeIn(d.kind.statusesOf(d.Persisted)) != all
}

// activeIn returns how many Pods run, by a status.
func activeIn(statuses map[string]kubeflowv1.ReplicaStatus) int32 {
	sum := int32(0)
	for _, s := range statuses {
		sum += s.Active
	}
	return sum
}

// with merges two memories of a job. `last` is the stage that ended the round which made m.
func (m Memory) with(other Memory, last int) Memory {
	merged := other
	merged.Told = m.Told.And(other.Told, last)
	merged.looked = merged.looked || m.looked
	if !m.crd.due.IsZero() {
		merged.crd = m.crd
	}
	if m.ahead != nil {
		merged.ahead = m.ahead
	}
	if m.reading != nil {
		merged.reading = m.reading
	}
	return merged
}
