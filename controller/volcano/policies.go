// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package volcano

import (
	"fmt"
	"slices"
	"time"

	batchv1alpha1 "github.com/lockstep-k8s/lockstep/apis/batch/v1alpha1"
	busv1alpha1 "github.com/lockstep-k8s/lockstep/apis/bus/v1alpha1"
	"github.com/lockstep-k8s/lockstep/controller/engine/plan"
)

// policy is a policy that matches an event.
type policy struct {
	*batchv1alpha1.LifecyclePolicy
	// delay is how long after the event its action is taken.
	delay time.Duration
}

// policyFor returns the policy for an event: the task's first policy that matches, else the Job's first; nil if none
// matches.
func (d *decision) policyFor(h happening) *policy {
	var lists [2][]batchv1alpha1.LifecyclePolicy
	if h.task != nil {
		lists[0] = h.task.spec.Policies
	}
	lists[1] = d.spec.Policies
	for _, list := range lists {
		for i := range list {
			if p := (policy{&list[i], delayOf(&list[i])}); p.matches(h) {
				return &p
			}
		}
	}
	return nil
}

func (p policy) matches(h happening) bool {
	if h.event == busv1alpha1.EventPodPending && p.Timeout == nil {
		return false
	}
	if p.ExitCode != nil {
		return h.event == busv1alpha1.EventPodFailed && slices.Contains(h.codes, *p.ExitCode)
	}
	named := func(event busv1alpha1.Event) bool { return event == h.event || event == busv1alpha1.EventAny }
	return named(p.Event) || slices.ContainsFunc(p.Events, named)
}

// delayOf returns the timeout of a policy; 0 if it is invalid, which validation reports.
func delayOf(p *batchv1alpha1.LifecyclePolicy) time.Duration {
	if p.Timeout == nil {
		return 0
	}
	delay, err := time.ParseDuration(string(*p.Timeout))
	if err != nil {
		return 0
	}
	return max(0, delay)
}

// consequence is an event and the deciding policy.
type consequence struct {
	happening
	policy *policy
	due    time.Time
}

// applyPolicies executes the first action that is due. If that is the restart of a part while a restart is under way,
// it joins that restart, and so do all other due restarts of parts.
func (d *decision) applyPolicies() (goOn bool) {
	if !isOpen(d.next.State.Phase) || d.unclear {
		return true
	}
	joined, parts := chorus{}, []target{}
	for _, c := range d.dueConsequences() {
		target, _ := c.target(c.policy.Action)
		switch reactionTo(d.next.State.Phase, c.policy.Action) {
		case marksTarget:
			if d.isLastRestart() {
				continue // The Job is about to fail, and what has ended counts.
			}
			parts = append(parts, target)
			joined.add(string(c.policy.Action), c.happening)
		case changesPhase:
			d.execute(c.policy.Action, target, string(c.event), c.what)
			if d.next.State.Phase == batchv1alpha1.JobRestarting {
				d.rememberDelays(d.happenings()) // The Pods of the other events may be gone by the next round.
			}
			d.Tell(false, ReasonExecuteAction, "%s: %s", c.policy.Action, c.what)
			return false
		}
	}
	for _, part := range parts { // Unless the Job stops: then what has ended counts.
		d.join(part)
	}
	d.tellChorus(joined)
	return true
}

// dueConsequences returns the actions that are due, the first one first. For an action that is due later, it records an
// event for the user, and has the Job looked at again at that time.
func (d *decision) dueConsequences() []consequence {
	var due []consequence
	all := d.happenings()
	d.rememberDelays(all)
	told := chorus{}
	for _, h := range all {
		p := d.policyFor(h)
		if p == nil || reactionTo(d.next.State.Phase, p.Action) == ignores {
			continue
		}
		c := consequence{happening: h, policy: p, due: h.at.Add(p.delay)}
		if p.delay > 0 && d.clock.Before(c.due) {
			d.WakeAt(c.due)
			told.add(fmt.Sprintf("%s in %s", p.Action, p.delay), h)
			continue
		}
		if _, hasTarget := c.target(p.Action); isRestartOfPart(p.Action) && !hasTarget {
			d.WarnOnce(ReasonNoTarget, "%s: %s has nothing to restart on the event %s", h.what, p.Action, h.event)
			continue
		}
		if h.event == busv1alpha1.EventPodEvicted && h.member == nil && !d.confirmGone(h) {
			continue
		}
		due = append(due, c)
	}
	d.tellChorus(told)
	slices.SortStableFunc(due, func(a, b consequence) int { return a.due.Compare(b.due) })
	return due
}

// confirmGone reports whether a Pod is certainly gone. If it is not certain, confirmGone plans a read from the API
// server: the Pod may have lost a label, or the cache may be behind.
func (d *decision) confirmGone(h happening) bool {
	name := podName(d.Job.Name, h.task.spec.Name, h.index)
	if d.wasNotFound(name) {
		return true
	}
	d.confirming[name] = true
	return false
}

// wasNotFound reports whether a live read in the previous round found no Pod with a name.
func (d *decision) wasNotFound(name string) bool {
	if d.notFound == nil {
		d.notFound = map[string]bool{}
		for _, outcome := range d.Outcomes {
			if a := outcome.Action; a.Verb == plan.ConfirmNo && a.Kind == KindPod {
				d.notFound[a.Name] = true
			}
		}
	}
	return d.notFound[name]
}

// execute does what an action asks for in the present phase.
func (d *decision) execute(action busv1alpha1.Action, part target, reason, why string) {
	if action == busv1alpha1.ActionRestartJob || action == busv1alpha1.ActionResumeJob || isRestartOfPart(action) {
		head := string(action)
		if isRestartOfPart(action) {
			head = part.String()
		} else {
			part = wholeJob
		}
		d.jobBecomesRestarting(action, part, reason, head+": "+why)
		return
	}
	d.jobStops(action, reason, fmt.Sprintf("%s: %s", action, why))
}

// join adds the restart of a part to the current restart. From then on the status records the restarted part, and no
// longer the event that caused its restart.
func (d *decision) join(part target) {
	if d.joined[part] {
		return // Thousands of Pods may ask for the same.
	}
	d.joined[part] = true
	d.noteMissing(part, true)
	t := d.taskOf(part.task)
	first, end := part.span(t)
	for index := max(0, first); index < min(end, t.record.reach()); index++ {
		t.record.forget(index)
		t.record.joined.Set(index, true)
	}
	d.Persist(plan.PersistSoon)
}

// targetOnRecord returns the target of the current restart, as read from the message of the Job's state; false if the
// message names none.
func (d *decision) targetOnRecord() (target, bool) {
	if known := &d.onRecord; known.message != d.next.State.Message {
		known.message = d.next.State.Message
		known.target, known.found = readTarget(known.message)
	}
	return d.onRecord.target, d.onRecord.found
}

// isTarget reports whether the current restart restarts a Pod. If the Pod was created after the restart, the status is
// out of date, and the Pod is no target.
func (d *decision) isTarget(m *member) bool {
	if d.next.State.Phase != batchv1alpha1.JobRestarting || m.version != d.next.Version || m.retries >= d.next.RetryCount {
		return false
	}
	t, ok := d.targetOnRecord()
	return ok && t.isOf(m) || m.task.record.joined.Has(m.index)
}

// unmarkedTargets returns the Pods that are to be restarted and have no mark yet.
func (d *decision) unmarkedTargets() []*member {
	var unmarked []*member
	d.eachMember(func(m *member) {
		if !m.isMarked() && d.isTarget(m) {
			unmarked = append(unmarked, m)
		}
	})
	return unmarked
}
