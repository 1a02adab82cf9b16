// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/lockstep-k8s/lockstep/internal/times"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/ends"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/gangs"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/kube"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/maintenance"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/place"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/provision"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/queue"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/room"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/status"
)

// gangView is a gang as its scheduling cycle sees it.
type gangView struct {
	place.Gang
	// shape is the gang's Shape; see place.Gang.Shape.
	shape string
	// runs is how long the gang runs, 0 if unknown. gap is up to which run time a gang that is otherwise equal has another shape.
	runs, gap time.Duration
	// began is when the cycle began, and deadline when it has to end.
	began, deadline time.Time
	// own is the gang's reservation, nil if none.
	own *room.Reservation
	// pauses means that the API server has refused the gang's bindings, so that room would be of no use. The gang preempts no Pods
	// and has no reservation in time until View.PausesUntil.
	pauses bool
}

// runCycle runs the scheduling cycle of one gang, on the scheduler's only scheduling goroutine.
//
//	outcome        when                                               what follows
//	alike          a gang of the same shape was refused, and nothing  the gang waits with that one, for the same reason
//	               that may help has happened since
//	placed         places were found that keep the minimum, and the   these members are assumed and bound; the rest is
//	               gang has not changed                               refused
//	changed        places were found, but members have changed        nothing is assumed; the gang backs off, and keeps its
//	               reservation
//	refused        there is no place                                  the gang backs off until an event may help
//	  preempting   ..., and evicting Pods of lower rank makes room    these Pods are evicted, and their room is reserved
//	  in time      ..., and the gang is the first that waits          room is reserved for when enough work has ended
//	given up       the cycle took longer than cycleTimeout            the namespace gets only a share of the time
//	failed         a plugin or the API server failed                  as refused
func (e *engine) runCycle(view gangView) {
	ctx := klog.NewContext(e.ctx, klog.LoggerWithValues(klog.FromContext(e.ctx), "podGroup", klog.KRef(view.Key.Namespace, view.Key.Name)))
	e.freer.cycle.Lock()
	defer e.freer.cycle.Unlock()
	e.keeper.prune(ctx)
	e.prepare(&view)
	if e.refuseAlike(&view) {
		e.observe(ctx, &view, place.Outcome{}, nil)
		return
	}
	view.own = e.remain(ctx, e.room.Of(view.Key))
	out, err := e.decide(ctx, &view)
	if err == nil {
		out, err = e.commit(ctx, &view, out)
	}
	switch {
	case err != nil:
		out = place.Unsought(&view.Gang, view.own, place.Shortfall{Message: fmt.Sprintf("planning failed: %v", err)})
		out.Reservation, out.Again = view.own, time.Now().Add(retryFailed)
	case view.pauses && len(out.Placements) == 0:
		out.Shortfall.Message += fmt.Sprintf("; the bindings of its last placements were refused, so before %s it preempts no Pods, and nothing is reserved for it",
			view.PausesUntil.UTC().Format(time.RFC3339))
		out.Again, out.Helpless = times.Sooner(out.Again, view.PausesUntil), place.Helpless
	}
	e.observe(ctx, &view, out, err)
	e.apply(ctx, view, out)
}

// decide plans a gang. If there is no place for all waiting members, decide plans only a part of them, and limits view
// to that part: the members for which spec.provision asked when the gang started. See planWithinAnnounced.
func (e *engine) decide(ctx context.Context, view *gangView) (place.Outcome, error) {
	out, err := e.plan(ctx, view, view.Broken())
	if err == nil && len(out.Placements) == 0 && !out.Shortfall.Overdue {
		out, err = e.planWithinAnnounced(ctx, view, out)
	}
	return out, err
}

// observe records the metrics of a cycle, and logs its outcome.
func (e *engine) observe(ctx context.Context, view *gangView, out place.Outcome, err error) {
	result, took, placed := status.Unschedulable, time.Since(view.began), len(out.Placements)
	switch {
	case err != nil:
		result = status.Failed
		klog.FromContext(ctx).Error(err, "Planning a pod group failed")
	case placed > 0:
		result = status.Placed
	}
	e.metrics.ObserveCycle(result, took, placed)
	if placed == 0 {
		kube.ObserveFailed(e.pluginOf(view).handle, err != nil, took)
	}
	reason := ""
	if out.Shortfall != nil {
		reason = out.Shortfall.Message
	}
	klog.FromContext(ctx).V(2).Info("Planned a pod group", "result", result, "members", placed, "of", len(view.Waiting), "reason", reason, "took", took)
}

// prepare fills in what the cycle has to know beside the gang: the deadline, whether the gang may preempt or reserve
// room if it finds no place, and the gang's shape.
func (e *engine) prepare(view *gangView) {
	view.began = time.Now()
	view.deadline = view.began.Add(e.pluginOf(view).args.CycleTimeout.Duration)
	view.pauses = view.began.Before(view.PausesUntil)
	view.MayPreempt = !view.pauses && mayPreempt(&view.View, e.classes)
	if view.Terms = &e.reservations.MembersToCome; !view.Terms.Enables(view.Key.Namespace) {
		view.ToCome = nil
	}
	own := e.room.Of(view.Key)
	view.First = !view.pauses && (own != nil && own.Reason == room.InTime ||
		view.IsFirst && room.MayBegin(view.Group.Spec.Runtime.Expected, view.began.Sub(view.Since)))
	if view.shape = view.Shape(); view.shape != "" {
		e.completeShape(view)
	}
}

// completeShape adds to the shape what the gang has to respect at present: reservations of other gangs, maintenance of nodes, and its own
// pause. A gang that ends before reserved room is needed, or before maintenance begins, may use the room or the node.
//
// Numbers suffice. Gangs with equally many reservations ahead have the same ones ahead, as these come in the order of the queue, and
// among the same reservations a gang that ends earlier respects fewer. So it is with maintenance.
func (e *engine) completeShape(view *gangView) {
	end := e.endOf(view)
	if !end.IsZero() {
		view.runs = end.Sub(view.began)
	}
	closed, last := e.windows.Closed(end)
	taker, ahead, kept := room.GangTaker(view.Rank, false, end), e.room.KeptFrom(room.GangTaker(view.Rank, false, time.Time{})), 0
	for _, r := range ahead {
		if r.IsKeptFrom(taker) {
			kept++
			last = times.Later(last, r.From)
		}
	}
	view.gap = max(0, last.Sub(view.began))
	view.shape += fmt.Sprint("-", len(ahead), "-", kept, "-", closed, "-", view.pauses)
}

// takerOf returns a Taker for the gang. incomplete reports that the gang runs and itself waits for more members; see
// room.GangTaker.
func (e *engine) takerOf(view *gangView, incomplete bool) room.Taker {
	return room.GangTaker(view.Rank, incomplete, e.endOf(view))
}

// endOf returns when a gang ends if started now, zero if unknown.
func (e *engine) endOf(view *gangView) time.Time {
	runs := ends.OfGang(view.Group.Spec.Runtime, int(view.Group.Spec.Minimum.Members), view.Waiting, time.Now())
	return runs.Until(e.estimates)
}

// endOfPod returns when a Pod that runs will end, zero if nobody knows.
func (e *engine) endOfPod(pod *corev1.Pod) time.Time {
	now := time.Now()
	if key, named := e.gangs.KeyOf(pod); named {
		if group := e.reader.Group(key); group != nil && group.HasMember(pod) {
			return ends.OfGang(group.Spec.Runtime, 1, []*corev1.Pod{pod}, now).Until(e.estimates)
		}
	}
	if !ends.ByItself(pod) {
		return time.Time{}
	}
	return ends.OfPod(pod, now).Until(e.estimates)
}

// mayPreempt reports whether neither a member nor the group's PriorityClass has the preemptionPolicy Never.
func mayPreempt(view *gangs.View, classes classes) bool {
	for _, pod := range view.Waiting {
		if policy := pod.Spec.PreemptionPolicy; policy != nil && *policy == corev1.PreemptNever {
			return false
		}
	}
	return !view.Group.Spec.PreemptsNobody && classes.mayPreempt(view.Group.Spec.PriorityClassName)
}

// pluginOf returns the plugin in the profile of a gang's first member; all members have the same profile.
func (e *engine) pluginOf(view *gangView) *Coscheduling {
	return e.plugins[view.Waiting[0].Spec.SchedulerName]
}

// refuseAlike refuses a gang without planning it if a gang of the same shape was just refused, and reports whether it
// has done so. A gang that may have a reservation, or has one, is always planned.
func (e *engine) refuseAlike(view *gangView) bool {
	if view.First || e.room.Of(view.Key) != nil {
		return false
	}
	return e.cycles.RefuseAlike(view.Key, view.shape, view.runs)
}

// plan seeks a place for a gang in the present cluster. incomplete reports that the gang runs and itself waits for more
// members; see room.GangTaker.
func (e *engine) plan(ctx context.Context, view *gangView, incomplete bool) (place.Outcome, error) {
	if e.freer.hinders(view.Key) {
		return place.Postponed(&view.Gang, view.own, whileFreeing), nil
	}
	for _, pod := range view.Waiting {
		// A nominated member takes room from its siblings on the node.
		if pod.Status.NominatedNodeName != "" {
			e.sched.Denominate(pod)
		}
	}
	if err := e.sched.UpdateSnapshot(klog.FromContext(ctx)); err != nil {
		return place.Outcome{}, fmt.Errorf("taking a snapshot of the cluster: %w", err)
	}
	return place.Place(ctx, view.Gang, e.cluster(view, incomplete))
}

// cluster returns what package place has to know beside the gang. The caller has updated the snapshot.
func (e *engine) cluster(view *gangView, incomplete bool) place.Cluster {
	profiles := make(map[string]framework.Framework, len(e.plugins))
	for name, plugin := range e.plugins {
		profiles[name] = plugin.handle
	}
	timeout := e.pluginOf(view).args.CycleTimeout.Duration
	cluster := place.Cluster{
		KeyOf:        e.gangs.KeyOf,
		End:          e.endOf(view),
		EndOf:        e.endOfPod,
		MayBeMember:  e.gangs.MayBeMember,
		Snapshot:     e.snapshot,
		Profiles:     profiles,
		Plugin:       Name,
		Extenders:    e.sched,
		Own:          view.own,
		Ahead:        e.room.KeptFrom(e.takerOf(view, incomplete)),
		Nominated:    e.queue.Nominated(),
		Standings:    e.reader.Standings,
		LowestPlaced: e.reader.LowestPlaced,
		Evictions:    &e.evictions,
		Passes:       &e.passes,
		Tried:        &e.tried,
		Now:          time.Now,
		Deadline:     view.deadline,
		CycleTimeout: timeout,
		IdleOwed:     e.idle.Owed(time.Now()),
		MaxPercent:   int64(*e.reservations.MaxPercent),
		Estimates:    e.estimates,

		PreemptOverrun: *e.pluginOf(view).args.Backfill.PreemptOverrun,
	}
	if cluster.Deadline.IsZero() { // without a deadline of a cycle, the time counts from now
		cluster.Deadline = time.Now().Add(timeout)
	}
	least := *e.pluginOf(view).args.Preemption.MinRuntimeSeconds
	cluster.MinRuntime = func(pod *corev1.Pod) time.Duration { return e.classes.minRuntime(pod, least) }
	if e.windows.Any() {
		cluster.IsClosed = func(node string) bool {
			info, err := e.snapshot.Get(node)
			return err == nil && maintenance.Closes(info.Node(), cluster.End)
		}
	}
	if view.First || !view.ToCome.IsZero() {
		cluster.Reserved = e.room.TakenAhead(view.Rank)
		cluster.ToCome, cluster.AllToCome = e.room.ToCome(view.Key)
	}
	return cluster
}

// apply carries out the outcome of a gang's cycle.
func (e *engine) apply(ctx context.Context, view gangView, out place.Outcome) {
	e.keeper.become(ctx, view.own, out.Reservation)
	if r := out.Reservation; r != nil && r != view.own && r.Reason.IsCapped() {
		e.idle.Charge(r, *e.reservations.IdlePercent, func() provision.Amounts { return place.ShareOf(e.snapshot, 100) }, time.Now())
		e.keeper.limit(ctx, r, place.ShareOf(e.snapshot, int64(*e.reservations.MaxPercent)))
	}
	if len(out.Victims) > 0 {
		e.evictor.evict(ctx, &view.View, out.Victims)
	}
	if r := out.Reservation; r == nil || r.Nominees() == nil { // nominated members may have devices of their nodes already
		e.freer.free(ctx, view.Key, out.Unplaced(view.Waiting))
	}
	if out.Shortfall != nil {
		e.refuse(&view, out)
	}
	terms := e.terms(&view)
	kube.ShareClaims(out.Placements)
	for _, p := range out.Placements {
		e.queue.Forget(p.Pod)
		go e.binder.bind(ctx, p, &view.View, terms)
	}
}

// A cycle of at least cycleTimeout / longCycle is long.
const longCycle = 10

// retryFailed is how long after a cycle that failed, or was given up, the gang is ready for another. A plugin or the API server
// may answer then, or answer sooner.
const retryFailed = time.Minute

// refuse records that a gang, or the rest of a gang, has no place, and why.
func (e *engine) refuse(view *gangView, out place.Outcome) {
	why := out.Shortfall
	refusal := queue.Refusal{Message: why.Message, Unready: why.Unready, Room: why.Room, Need: why.Need, Again: out.Again, Helpless: out.Helpless}
	if why.OfOthers {
		refusal.Shape, refusal.Runs, refusal.Gap = view.shape, view.runs, view.gap
	}
	timeout, took := e.pluginOf(view).args.CycleTimeout.Duration, time.Since(view.began)
	inVain := out.Reservation == nil && len(out.Placements) == 0
	if why.Overdue {
		e.metrics.Overdue.Inc()
		took = max(timeout, took) // a single step may exceed the time
		refusal.Again = times.Sooner(refusal.Again, time.Now().Add(retryFailed))
	}
	if why.Overdue || inVain && took > timeout/longCycle {
		refusal.Took = took
		// The search for work to preempt may take longer than a cycle.
		refusal.Overdue = why.Overdue || took > timeout
	}
	e.cycles.Refuse(view.Key, view.Group.UID, refusal, e.terms(view))
}

// terms returns the gang's back-off times.
func (e *engine) terms(view *gangView) queue.Terms {
	args := e.pluginOf(view).args
	return queue.Terms{Initial: args.InitialBackoff.Duration, Longest: args.MaxBackoff.Duration}
}

// commit assumes all placements or none, and returns the resulting outcome of the cycle.
func (e *engine) commit(ctx context.Context, view *gangView, out place.Outcome) (place.Outcome, error) {
	if len(out.Placements) == 0 {
		return out, nil
	}
	refusal, err := e.assume(ctx, view, out.Placements)
	if refusal != nil {
		return *refusal, nil
	}
	return out, err
}

// assume records placements in the scheduler's cache, which all later cycles see, and in package gangs. If a plugin or
// the gang refuses, it undoes everything and returns the refusal.
func (e *engine) assume(ctx context.Context, view *gangView, placements []*kube.Placement) (refusal *place.Outcome, err error) {
	nodes := make(map[types.UID]string, len(placements))
	for i, p := range placements {
		nodes[p.Pod.UID] = p.Node
		kube.Part(p)
		if err := e.sched.Assume(ctx, p); err != nil {
			e.release(ctx, placements, i)
			return nil, fmt.Errorf("assuming %s on %s: %w", klog.KObj(p.Pod), p.Node, err)
		}
		if permit := kube.Permit(ctx, p); !permit.IsSuccess() {
			e.release(ctx, placements, i+1)
			if permit.IsRejected() {
				why := place.Shortfall{Message: fmt.Sprintf("%s was not permitted on %s: %s", p.Pod.Name, p.Node, permit.Message())}
				return new(place.Unsought(&view.Gang, view.own, why)), nil
			}
			return nil, fmt.Errorf("permitting %s on %s: %w", klog.KObj(p.Pod), p.Node, permit.AsError())
		}
	}
	if !e.cycles.Assume(&view.View, nodes) {
		e.release(ctx, placements, len(placements))
		return new(place.Postponed(&view.Gang, view.own, "the group or its members have changed while it was planned")), nil
	}
	return nil, nil
}

// release undoes placements. The first n are assumed in the cache.
func (e *engine) release(ctx context.Context, placements []*kube.Placement, n int) {
	logger := klog.FromContext(ctx)
	for i, p := range slices.Backward(placements) {
		// A Permit plugin may hold the Pod.
		p.Profile.RejectWaitingPod(p.Pod.UID)
		kube.UndoReserve(ctx, p.Profile, p.State, p.Assumed.Pod, p.Node)
		if i >= n {
			continue
		}
		if err := e.sched.Forget(ctx, p); err != nil {
			logger.Error(err, "Forgetting a member that was assumed failed", "pod", klog.KObj(p.Pod))
		}
	}
}
