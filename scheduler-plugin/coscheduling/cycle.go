// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/lockstep-k8s/lockstep/podgroup"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/kube"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/line"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/planner"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/room"
)

// maxPlans bounds how many plans of a gang are verified in one cycle. Plans
// differ in their topology domain; one that fails verification has members that
// constrain each other by affinity or spread, and each costs about as much as
// scheduling the members one by one.
const maxPlans = 32

// cycle is one gang cycle.
type cycle struct {
	*engine
	view gangView
	// deadline is when the turn has to end; see overdue.go.
	deadline time.Time
	classes  []*class
	// placements are the members placed so far, in order. They are assumed in
	// the snapshot and reserved.
	placements []*kube.Placement
	// provided are the extended resources that some node has and no class of devices
	// stands for.
	provided map[corev1.ResourceName]bool
	// groupState is what plugins share between the members, nil before the first
	// asks: a ResourceClaim that one is to have allocated, others may use.
	groupState *framework.CycleState
	// heldPods are members of others, assumed in the snapshot because room is held
	// for them, and ahead are the claims to it.
	heldPods []*corev1.Pod
	ahead    []room.Claim
	// shares says that the cycle may share a pass over all nodes with others, and recalled
	// is the one that it has from another, nil if it has its own.
	shares   bool
	recalled *pass
	// sought says that room was sought for the gang, to the end.
	sought bool
	// unlike says that what kept the gang out may be nothing to others of its shape.
	unlike bool
	// mightPreempt says that there is work which the gang may take, though not
	// enough.
	mightPreempt bool
	// rejections are what plugins said of members that had no place, with how
	// often they said it.
	rejections map[string]int
}

// runCycle plans a gang, places all of it that fits if that keeps its minimum,
// and otherwise records why not.
func (e *engine) runCycle(view gangView) {
	logger := klog.LoggerWithValues(klog.FromContext(e.ctx), "podGroup", klog.KRef(view.key.Namespace, view.key.Name))
	ctx := klog.NewContext(e.ctx, logger)
	start := time.Now()
	e.prepare(&view)
	c := &cycle{engine: e, view: view, deadline: start.Add(e.plugins[view.schedulerName()].args.TurnTimeout.Duration),
		rejections: make(map[string]int)}
	shape := view.shape()
	if !c.looksForItself() && e.tracker.alike(view.key, shape) {
		e.metrics.observeCycle(start, &shortfall{}, nil, 0)
		kube.ObserveFailed(e.plugins[view.schedulerName()].handle, false, time.Since(start))
		return
	}
	why, err := c.place(ctx)
	if err == nil && why == nil {
		why, err = c.commit(ctx)
	}
	if err == nil && why == nil && !e.tracker.assume(&view, c.nodes()) {
		c.release(ctx, len(c.placements))
		why = &shortfall{unready: true, message: "the group or its members have changed while it was planned"}
	}
	if why != nil && why.needed > 0 {
		err = c.giveUp(c.seekRoom(ctx, why), why)
		why.message += c.aheadMessage()
		why.need = c.need(why)
		if c.speaksForOthers(why) && len(c.view.waiting) == len(view.waiting) {
			why.shape = shape
		}
	}
	if errors.Is(err, errOverdue) {
		why, err = &shortfall{message: c.tooConstrained()}, nil
		_ = c.giveUp(errOverdue, why)
	}
	c.leaveHolds(ctx)
	e.metrics.observeCycle(start, why, err, len(c.placements))

	if why != nil || err != nil {
		kube.ObserveFailed(e.plugins[view.schedulerName()].handle, err != nil, time.Since(start))
	}
	if err != nil {
		logger.Error(err, "Planning a pod group failed")
		why = &shortfall{message: fmt.Sprintf("planning failed: %v", err)}
	}
	if why != nil {
		if view.starving && !c.sought {
			// Something else keeps it from being planned. It must not keep others from being
			// helped meanwhile, nor their room.
			why.helpless = view.starvationAfter
			e.drop(view.key)
		}
		logger.V(2).Info("Pod group found no place", "waiting", len(view.waiting), "reason", why.message, "took", time.Since(start))
		e.fail(view, *why)
		return
	}

	e.drop(view.key)
	logger.V(2).Info("Pod group has its place", "members", len(c.placements), "of", len(view.waiting), "took", time.Since(start))
	if rest := len(view.waiting) - len(c.placements); rest > 0 {
		e.fail(view, shortfall{message: fmt.Sprintf("no room for %d more members above the minimum", rest)})
	}
	for _, p := range c.placements {
		e.queue.Forget(p.Pod)
		go e.bind(ctx, p, view)
	}
}

// nodes is where the cycle has put members, by UID.
func (c *cycle) nodes() map[types.UID]string {
	nodes := make(map[types.UID]string, len(c.placements))
	for _, p := range c.placements {
		nodes[p.Pod.UID] = p.Node
	}
	return nodes
}

// fail records that a gang, or the rest of it, found no place.
func (e *engine) fail(view gangView, why shortfall) {
	why.need.RegardsOthers = slices.ContainsFunc(view.waiting, regardsOthers)
	e.tracker.fail(view.key, view.group.UID, why, e.terms(&view))
}

// terms are how long a gang waits for what.
func (e *engine) terms(view *gangView) line.Terms {
	args := e.plugins[view.schedulerName()].args
	return line.Terms{Initial: args.InitialBackoff.Duration, Longest: args.MaxBackoff.Duration, Patience: args.StarvationAfter.Duration}
}

// place finds a place for the gang, and leaves it assumed in the snapshot and
// reserved. The shortfall says why there is none; then nothing is left behind.
func (c *cycle) place(ctx context.Context) (*shortfall, error) {
	if err := c.sched.UpdateSnapshot(klog.FromContext(ctx)); err != nil {
		return nil, fmt.Errorf("taking a snapshot of the cluster: %w", err)
	}
	for _, pod := range c.view.waiting {
		// A member with a nomination takes room from its siblings there.
		if pod.Status.NominatedNodeName != "" {
			c.sched.Denominate(pod)
		}
	}
	if why := c.admit(ctx); why != nil {
		return why, nil
	}
	if err := c.respect(); err != nil {
		return nil, err
	}
	c.shares = len(c.heldPods) == 0 && !slices.ContainsFunc(c.view.waiting, ownsClaims)
	return c.plan(ctx)
}

// admit leaves out the members that a PreEnqueue plugin keeps from being scheduled: the
// queue would keep them, but has not seen them. The shortfall says that too few
// are left.
func (c *cycle) admit(ctx context.Context) *shortfall {
	all := c.view.placed.Plus(podgroup.Tally{})
	var admitted []*corev1.Pod
	var keys []string
	for i, pod := range c.view.waiting {
		status := c.keptBack(ctx, pod)
		if !status.IsSuccess() {
			c.rejections[rejected(status.Plugin(), status)]++
			continue
		}
		admitted, keys = append(admitted, pod), append(keys, c.view.classKeys[i])
		all.Add(podgroup.RoleOf(pod), 1)
	}
	if len(admitted) == 0 || !podgroup.Holds(&c.view.group.Spec, all) {
		return &shortfall{unready: true, message: fmt.Sprintf("%d of %d members may not be scheduled yet: %s",
			len(c.view.waiting)-len(admitted), len(c.view.waiting), topReasons(c.rejections))}
	}
	c.view.waiting, c.view.classKeys = admitted, keys
	return nil
}

// keptBack is what the PreEnqueue plugins of others say of a member.
func (c *cycle) keptBack(ctx context.Context, pod *corev1.Pod) *fwk.Status {
	for _, plugin := range c.plugins[pod.Spec.SchedulerName].handle.PreEnqueuePlugins() {
		if plugin.Name() == Name {
			continue
		}
		if status := plugin.PreEnqueue(ctx, pod); !status.IsSuccess() {
			return status.WithPlugin(plugin.Name())
		}
	}
	return nil
}

// plan is place on the snapshot as it is.
func (c *cycle) plan(ctx context.Context) (*shortfall, error) {
	before := maps.Clone(c.rejections)
	world, gang, err := c.world(ctx)
	if err != nil {
		return nil, err
	}
	tried := 0
	for plan := range planner.Plans(world, gang) {
		if tried++; tried > maxPlans {
			break
		}
		ok, err := c.realize(ctx, world, plan)
		if err != nil {
			c.undo(ctx)
			return nil, err
		}
		if ok && (c.recalled == nil || len(c.placements) == len(c.view.waiting)) {
			return nil, nil
		}
		c.undo(ctx)
		if c.recalled != nil {
			break
		}
	}
	if c.recalled != nil {
		c.passes.drop(c.recalled)
		c.recalled, c.rejections = nil, before
		return c.plan(ctx)
	}
	why := c.explain(world, gang, tried > 0)
	return &why, nil
}

// suffices says whether the gang's minimum holds with the placements, and
// something was placed at all.
func (c *cycle) suffices() bool {
	if len(c.placements) == 0 {
		return false
	}
	return c.wouldSuffice(podgroup.Tally{})
}

// wouldSuffice says whether the gang's minimum would hold with more members placed.
func (c *cycle) wouldSuffice(more podgroup.Tally) bool {
	placed := c.view.placed.Plus(more)
	for _, p := range c.placements {
		placed.Add(podgroup.RoleOf(p.Pod), 1)
	}
	return podgroup.Holds(&c.view.group.Spec, placed)
}

// commit turns the placements from assumptions of the snapshot into ones of the
// scheduler's cache, which all later cycles see. The shortfall says why that did
// not work; then nothing is left behind.
func (c *cycle) commit(ctx context.Context) (*shortfall, error) {
	c.leaveSnapshot(ctx)
	for i, p := range c.placements {
		if state, ok := p.State.(*framework.CycleState); ok {
			state.SetPodGroupSchedulingCycle(nil) // from here on each is on its own
		}
		if err := c.sched.Assume(ctx, p); err != nil {
			c.release(ctx, i)
			return nil, fmt.Errorf("assuming %s on %s: %w", klog.KObj(p.Pod), p.Node, err)
		}
		if status := kube.Permit(ctx, p); !status.IsSuccess() {
			c.release(ctx, i+1)
			if status.IsRejected() {
				return &shortfall{message: fmt.Sprintf("%s was not permitted on %s: %s", p.Pod.Name, p.Node, status.Message())}, nil
			}
			return nil, fmt.Errorf("permitting %s on %s: %w", klog.KObj(p.Pod), p.Node, status.AsError())
		}
	}
	return nil, nil
}

// release gives up all placements, of which the first n are assumed in the
// cache.
func (c *cycle) release(ctx context.Context, n int) {
	logger := klog.FromContext(ctx)
	for i := len(c.placements) - 1; i >= 0; i-- {
		p := c.placements[i]
		// A Permit plugin may hold it.
		p.Profile.RejectWaitingPod(p.Pod.UID)
		p.Profile.RunReservePluginsUnreserve(ctx, p.State, p.Assumed.Pod, p.Node)
		if i >= n {
			continue
		}
		if err := c.sched.Forget(ctx, p); err != nil {
			logger.Error(err, "Forgetting a member that was assumed failed", "pod", klog.KObj(p.Pod))
		}
	}
	c.placements = nil
}
