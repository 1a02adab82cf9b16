// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package kubeflow

import (
	"hash/fnv"
	"maps"
	"time"

	kubeflowv1 "github.com/lockstep-k8s/lockstep/apis/kubeflow/v1"
	"github.com/lockstep-k8s/lockstep/controller/engine/plan"
	"github.com/lockstep-k8s/lockstep/controller/jobpods"
)

// reconciler schedules lists of the Pods and Services of a v1alpha2 job from the API server, to find changes without an
// event. Each period without changes is twice as long as the last. A change, or a new controller, sets the period back
// to the first.
type reconciler struct {
	// period is the present period; zero if this controller has not seen the job before.
	period time.Duration
	// due is when its turn is.
	due time.Time
	// seen is a digest of what the job had at the last decision.
	seen uint64
	// listed are the kinds that were listed in this turn.
	listed map[string]bool
}

// reconciledKinds are the kinds of objects that are listed in a turn.
var reconciledKinds = []string{KindPod, KindService}

// followReconciler requests the lists when they are due, and records in the status when they were made.
func (d *decision) followReconciler() {
	r := d.nextTurn()
	if !d.clock.Before(r.due) {
		r.listed = maps.Clone(r.listed)
		for _, kind := range reconciledKinds {
			if d.WasListed(kind) {
				r.listed = with(r.listed, kind)
			}
			if !r.listed[kind] {
				d.lists = append(d.lists, kind)
			}
		}
		if len(d.lists) == 0 {
			d.next.LastReconcileTime = &d.now
			d.Persist(plan.PersistNow) // Users read from it how often the job is looked at.
			r.listed, r.period = nil, min(2*r.period, max(d.basePeriod(), maxReconcilePeriod))
			r.due = d.turnAfter(d.now.Time, r.period)
		}
	}
	if d.clock.Before(r.due) {
		d.WakeAt(r.due)
	}
	d.memory.reconciler = r
}

// nextTurn returns the reconciler after the changes since the last decision. If the lists of many jobs became due while
// no controller ran, they are not all made at the same time.
func (d *decision) nextTurn() reconciler {
	r, base, seen := d.Memory.reconciler, d.basePeriod(), d.seen()
	last := d.next.LastReconcileTime
	if last == nil {
		last = d.next.StartTime
	}
	switch soon := d.turnAfter(last.Time, base); {
	case r.period == 0 && !d.clock.Before(soon):
		r.period, r.due = base, d.clock.Add(d.between(0, base))
	case r.period == 0:
		r.period, r.due = base, soon
	case seen != r.seen && soon.Before(r.due):
		r.period, r.due = base, soon
	case seen != r.seen:
		r.period = base
	}
	r.seen = seen
	return r
}

// basePeriod returns the shortest period. Times in the status are whole seconds.
func (d *decision) basePeriod() time.Duration {
	if d.Options.ReconcilePeriod <= 0 {
		return DefaultReconcilePeriod
	}
	return max(d.Options.ReconcilePeriod, time.Second)
}

// turnAfter returns a time about a period after the last turn. The time varies, so that jobs that were created together
// drift apart.
func (d *decision) turnAfter(last time.Time, period time.Duration) time.Time {
	return last.Add(period + d.between(0, period/10))
}

func (d *decision) between(least, most time.Duration) time.Duration {
	return time.Duration(d.entropy.Between(int64(least), int64(most)))
}

// planLists lists the job's objects of the kinds that are due.
func (d *decision) planLists() {
	for _, kind := range d.lists {
		d.list(kind)
	}
}

// list lists live what the job has of a kind.
func (d *decision) list(kind string) {
	d.Act(plan.Action{
		Verb: plan.List, Kind: kind, Name: d.Job.Name, Owner: d.Job.UID, Selector: kubeflowv1.KeyJobName + "=" + d.Job.Name,
	})
}

// seen returns a digest of what the job has.
func (d *decision) seen() uint64 {
	digest := fnv.New64a()
	add := func(texts ...string) {
		for _, t := range texts {
			digest.Write([]byte(t))
			digest.Write([]byte{0})
		}
	}
	for _, name := range jobpods.SortedKeys(d.Pods) {
		add(name, string(d.Pods[name].UID), d.Pods[name].ResourceVersion)
	}
	for _, name := range jobpods.SortedKeys(d.Services) {
		add(name, string(d.Services[name].GetUID()), d.Services[name].GetResourceVersion())
	}
	return digest.Sum64()
}

// with returns a set with a member, for sets that may be nil.
func with(set map[string]bool, member string) map[string]bool {
	if set == nil {
		set = map[string]bool{}
	}
	set[member] = true
	return set
}
