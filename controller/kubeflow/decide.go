// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package kubeflow

import (
	"errors"
	"fmt"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	kubeflowv1 "github.com/lockstep-k8s/lockstep/apis/kubeflow/v1"
	"github.com/lockstep-k8s/lockstep/controller/engine/plan"
	"github.com/lockstep-k8s/lockstep/controller/jobpods"
	"github.com/lockstep-k8s/lockstep/internal/text"
)

// Decide plans one round for one job. now is the caller's clock; times in the status are cut
// to whole seconds, as they are on the wire. What it wants to know again is in the Memory.
func Decide(snapshot Snapshot, now time.Time, entropy plan.Entropy) (plan.Plan[kubeflowv1.JobStatus], Memory) {
	d := newDecision(snapshot, now, entropy)
	d.run()
	p := d.finish()
	if d.leave || d.outdated {
		d.memory = d.memory.with(snapshot.Memory, d.stage) // Not all of it was looked at.
	}
	return p, d.memory
}

// stages are the steps of a round, in order. Each says whether the round goes on.
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
		d.stage = i
		if !stage.run(d) {
			return
		}
	}
	d.stage = len(stages)
}

// stillWanted ends the round of a job that is being deleted: the garbage collector deletes
// all that it owns.
func (d *decision) stillWanted() (goOn bool) {
	d.leave = d.Job.DeletionTimestamp != nil
	return !d.leave
}

// read finds the rules by which the job lives, and what its spec means by them.
func (d *decision) read() (goOn bool) {
	createdAs := d.Job.Spec.CreatedAs
	if version := d.recordedVersion(); version == kubeflowv1.CreatedAsV1alpha2 {
		createdAs = kubeflowv1.CreatedAsV1alpha2
	} else if version != "" {
		createdAs = ""
	}
	d.kind = kindOf(d.Job, createdAs)
	if d.kind == nil {
		d.fail(fmt.Errorf("nothing is known of the kind %q", d.Job.Kind))
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
		d.once(w.Warning, w.Reason, "%s", w.Message)
	}
	if d.invalid != "" {
		d.warnOnce(d.kind.reason("Invalid"), "%s", d.invalid)
	}
	return true
}

// recordedVersion is the version by whose rules objects of the job were made. Names tell, which
// nobody can change; of a PodGroup, which comes before all others, an annotation. Empty if there
// are none.
func (d *decision) recordedVersion() string {
	isNamedBy := func(k *kind) bool {
		for name := range d.Services {
			if t, _ := k.placeNamed(d.Job, name); t != "" {
				return true
			}
		}
		for name := range d.Pods {
			if t, _ := k.placeNamed(d.Job, name); t != "" {
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

// initialize makes the first status. Nothing is made before it is written.
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

// named is the job as conditions call it: "TFJob default/mnist".
func (d *decision) named() string { return d.Job.Kind + " " + d.Job.Namespace + "/" + d.Job.Name }

// begin begins a start: what was before does not count.
func (d *decision) begin() {
	d.next.Starts++
	d.next.StartTime = &d.now
	d.noteServices()
	d.persist(plan.PersistNow)
}

// newestStart is the highest number that an object of the job carries, at least 1.
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
	// failure is why the job fails, and restarting why a Pod is made anew. Empty if not.
	failure, restarting string
	// evicted is which worker of MPI was evicted, which fails the job. Empty for none.
	evicted string
	// exited are the Pods that were found to have failed, by how they have.
	exited map[string][]string
	// refused says that an object can never be created.
	refused bool
	// stage is the one that runs, or is the last that did: an index of stages, or their number
	// when all have run.
	stage int
	// leave says that nothing is to be done at all, and outdated that an object tells that
	// the status is an old one.
	leave, outdated bool
	checksStatus    bool
	// lists are the kinds of which all is to be listed live.
	lists     []string
	unchecked []types.UID
	plan      plan.Plan[kubeflowv1.JobStatus]
}

func newDecision(snapshot Snapshot, now time.Time, entropy plan.Entropy) *decision {
	d := &decision{
		Snapshot: snapshot, clock: now, now: metav1.NewTime(now.Truncate(time.Second)), entropy: entropy,
		next: &kubeflowv1.JobStatus{}, exited: map[string][]string{},
	}
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
		d.plan.Status = d.Status
		d.planCheck()
		return d.plan
	case d.outdated:
		d.plan.Status, d.plan.Persist = d.Status, plan.PersistNone
		d.planCheck()
		return d.plan
	}
	d.writeCounts()
	if !d.awaitsWrite() {
		d.planActions()
	}
	d.explain()
	d.tellOfDeletions()
	d.planCheck()
	d.tellOfObjects()
	d.settle()
	return d.plan
}

// awaitsWrite says whether something is to be done only after the status is written: a
// beginning, a suspension, or an end.
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
		p.Services != "" && p.Services != n.Services
	if waits {
		d.persist(plan.PersistNow)
	}
	return waits
}

// settle compares the status with those that are known.
func (d *decision) settle() {
	d.plan.Status = d.next
	for _, known := range []*kubeflowv1.JobStatus{d.Status, d.Persisted} {
		if known != nil && sameStatus(known, d.next) {
			d.plan.Status = known
		}
	}
	running, all := int32(0), int32(0)
	for _, r := range d.replicas {
		running, all = running+r.counts.active, all+r.number
	}
	begun := !isFinished(d.next) && !is(d.next, kubeflowv1.JobConditionSuspended)
	d.plan.Starting = begun && running < all
	d.plan.Settled = begun && all > 0 && running == all && activeIn(d.kind.statusesOf(d.Persisted)) != all
	switch {
	case d.plan.Status == d.Persisted:
		d.plan.Persist = plan.PersistNone
	case d.plan.Persist == plan.PersistNone:
		d.plan.Persist = plan.PersistLater
	}
}

// activeIn is how many Pods run, by a status.
func activeIn(statuses map[string]kubeflowv1.ReplicaStatus) int32 {
	sum := int32(0)
	for _, s := range statuses {
		sum += s.Active
	}
	return sum
}

// sameStatus says whether two statuses say the same.
func sameStatus(a, b *kubeflowv1.JobStatus) bool {
	return a.Phase == b.Phase && a.Starts == b.Starts && a.Services == b.Services && sameConditions(a.Conditions, b.Conditions) &&
		maps.Equal(a.ReplicaStatuses, b.ReplicaStatuses) && maps.Equal(a.TFReplicaStatuses, b.TFReplicaStatuses) &&
		sameTime(a.StartTime, b.StartTime) && sameTime(a.CompletionTime, b.CompletionTime) &&
		sameTime(a.LastReconcileTime, b.LastReconcileTime)
}

// persist asks for the status to be written with at least this urgency.
func (d *decision) persist(urgency plan.Persist) { d.plan.Persist = max(d.plan.Persist, urgency) }

// wakeAt asks for another round at a time.
func (d *decision) wakeAt(at time.Time) {
	if d.plan.WakeAt.IsZero() || at.Before(d.plan.WakeAt) {
		d.plan.WakeAt = at
	}
}

// fail reports what makes no sense, while all else goes on.
func (d *decision) fail(err error) { d.plan.Err = errors.Join(d.plan.Err, err) }

func (d *decision) tell(warning bool, reason, format string, args ...any) {
	d.plan.Events = append(d.plan.Events, plan.Event{Warning: warning, Reason: reason, Message: cutMessage(fmt.Sprintf(format, args...))})
}

// warnOnce warns of something that may hold for longer: again only after it did not hold, or
// by another controller.
func (d *decision) warnOnce(reason, format string, args ...any) {
	d.once(true, reason, format, args...)
}

func (d *decision) once(warning bool, reason, format string, args ...any) {
	message := cutMessage(fmt.Sprintf(format, args...))
	if !d.Memory.Told.Has(d.stage, reason, message) && !d.memory.Told.Has(d.stage, reason, message) {
		d.tell(warning, reason, "%s", message)
	}
	d.memory.Told.Note(d.stage, reason, message)
}

// with is what both memories hold, if the round that left this one ended with a stage.
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

// maxMessage bounds what conditions and events say, in bytes.
const maxMessage = 1024

func cutMessage(message string) string { return text.Shorten(message, maxMessage) }
