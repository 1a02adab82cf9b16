// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"github.com/lockstep-k8s/lockstep/controller/engine/plan"
	"github.com/lockstep-k8s/lockstep/controller/pacing"
	"github.com/lockstep-k8s/lockstep/internal/text"
)

// act runs those actions of the last plan that may be tried now, and keeps the results for the next plan. act reports
// whether any action ran. If the turn ends first, the next sync runs what is left. An action that fails is tried again
// when its cause is due, and does not delay other actions.
func (p *pass[O, S]) act(ctx context.Context, actions []plan.Action) (bool, error) {
	p.blocksChanged = false
	looks, creations, rest := sortActions(p.admitted(p.withoutUnknownFields(actions)))
	acted, unseen, err := p.look(ctx, looks)
	if err != nil {
		return acted, err
	}
	m := p.memory
	tally := p.runBatch(ctx, rest, cmp.Or(p.pace.Parallel, p.owners.batchSize))
	// An API server that refuses objects of a group is not asked in vain a thousand times.
	created := p.runBatch(ctx, creations, cmp.Or(p.pace.Parallel, 1))
	m.left = slices.Concat(unseen, tally.left, created.left)
	tally.add(created)
	p.tellFailures(ctx, tally.failures, tally.untold)
	return acted || tally.done > 0 || len(unseen) > 0 || p.blocksChanged, nil
}

// sortActions splits actions by how they are run: reads that take more than one request, creations of groups, and the
// rest.
func sortActions(actions []plan.Action) (looks, creations, rest []plan.Action) {
	many := lookForMany(actions)
	for _, action := range actions {
		switch {
		case action.Verb == plan.CheckStatus, action.Verb == plan.List, many[action.Does()]:
			looks = append(looks, action)
		case action.Group != "":
			creations = append(creations, action)
		default:
			rest = append(rest, action)
		}
	}
	return looks, creations, rest
}

// tally is what came of actions.
type tally struct {
	done     int
	failures []error
	// untold is the reason of the event that reports failures which no condition shows. If there are several reasons,
	// it is the first. Empty if there are no such failures.
	untold string
	left   []plan.Action
}

func (t *tally) add(other tally) {
	t.done += other.done
	t.failures = append(t.failures, other.failures...)
	t.untold = cmp.Or(t.untold, other.untold)
}

// runBatch runs actions beside each other, as many at first as `begin` says.
func (p *pass[O, S]) runBatch(ctx context.Context, actions []plan.Action, begin int) tally {
	var t tally
	if len(actions) == 0 {
		return t
	}
	c, begun, answered := p.owners, p.now(), 0
	e := &executor[O, S]{owners: c, owner: p.entry.owner, taken: p.memory.taken()}
	failedNow := map[cause]bool{}
	b := batch{
		begin:  begin,
		most:   func() int { return pacing.Share(c.batchSize, p.turn.inFlight()) },
		enough: p.spent,
		do:     func(action plan.Action) result { return e.do(ctx, action) },
		skip:   func(action plan.Action) bool { return len(failedNow) > 0 && failedNow[causesOf(action)[0]] },
		begun:  func() { p.turn.requests++ },
		learn: func(r result) {
			answered++
			c.metrics.action(r.action.Does(), r.err)
			if r.err != nil {
				failedNow[causeOf(r.action, r.err)] = true
				t.failures = append(t.failures, fmt.Errorf("%s: %w", r.action, r.err))
				if _, told := blockOf(r.action, r.err); !told {
					t.untold = cmp.Or(t.untold, r.action.Complaint, ReasonActionFailed)
				}
				p.refuse(r.action, r.err)
				return
			}
			t.done++
			p.grant(r.action)
			p.memory.remember(r)
			p.noteLook(r)
			p.noteRepeat(r)
		},
	}
	t.left = b.run(actions)
	switch {
	case len(t.failures) > 0:
		p.pace.Parallel = 0
	case answered > 1:
		p.pace.Parallel = pacing.Parallel(answered, p.now().Sub(begun), c.batchSize)
	}
	return t
}

// tellFailures logs all failures in one line. If untold is not empty, no condition shows the failures, and an event
// with that reason reports them once. Failures because the controller is being stopped are not reported.
func (p *pass[O, S]) tellFailures(ctx context.Context, failures []error, untold string) {
	if len(failures) == 0 {
		return
	}
	err := summarize(failures)
	p.owners.metrics.syncErrors.Inc()
	klog.FromContext(ctx).Error(err, "Requests failed, will be tried again")
	isStopped := slices.ContainsFunc(failures, func(err error) bool { return errors.Is(err, context.Canceled) })
	if untold != "" && !isStopped && p.memory.complaint != ReasonActionFailed {
		p.memory.complaint = ReasonActionFailed
		p.owners.events.Event(p.owners.reference(p.entry.owner), corev1.EventTypeWarning, untold, err.Error())
	}
}

// maxSummary limits the length of a report of failures, in bytes. An error may quote a long text of a user.
const maxSummary = 4096

// summarize keeps an error that a thousand objects have in common short.
func summarize(errs []error) error {
	const told = 3
	summary := errors.Join(errs[:min(told, len(errs))]...).Error()
	if more := len(errs) - told; more > 0 {
		summary += fmt.Sprintf(" (and %d more errors)", more)
	}
	return errors.New(text.Shorten(summary, maxSummary))
}
