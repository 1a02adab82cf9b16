// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/lockstep-k8s/lockstep/podgroup"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/kube"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/planner"
)

// realize puts members where a plan wants them, and those that don't hold there
// elsewhere among the plan's nodes. It says whether the gang's minimum holds
// with them. The caller undoes the placements if not.
func (c *cycle) realize(ctx context.Context, world *planner.World, plan planner.Plan) (bool, error) {
	next := make([]int, len(c.classes))
	var homeless []int // classes of members whose planned place did not hold
	var members []*corev1.Pod
	for _, a := range plan.Assignments {
		class := c.classes[a.Class]
		for range a.Count {
			pod := class.members[next[a.Class]]
			next[a.Class]++
			ok, err := c.try(ctx, class, pod, world.Nodes[a.Node].Name)
			if err != nil {
				return false, err
			}
			if !ok {
				homeless, members = append(homeless, a.Class), append(members, pod)
			}
		}
	}
	// What is still to be searched for may suffice, or not any more.
	left := podgroup.Tally{}
	for _, pod := range members {
		left.Add(podgroup.RoleOf(pod), 1)
	}
	for i, pod := range members {
		if !c.wouldSuffice(left) {
			return false, nil
		}
		if err := c.search(ctx, world, plan, c.classes[homeless[i]], pod); err != nil {
			return false, err
		}
		left.Add(podgroup.RoleOf(pod), -1)
	}
	return c.suffices(), nil
}

// try places a member on a node if all plugins accept it.
func (c *cycle) try(ctx context.Context, class *class, pod *corev1.Pod, node string) (bool, error) {
	if c.isOverdue() {
		return false, errOverdue
	}
	if class.refused[node] {
		return false, nil
	}
	state, nodes, err := c.preFilter(ctx, class, pod)
	if err != nil || state == nil || nodes != nil && !nodes.Has(node) {
		return false, err
	}
	return c.accept(ctx, class, pod, node, state)
}

// search places a member on the first of the plan's nodes where all plugins
// accept it, if there is one.
func (c *cycle) search(ctx context.Context, world *planner.World, plan planner.Plan, class *class, pod *corev1.Pod) error {
	state, nodes, err := c.preFilter(ctx, class, pod)
	if err != nil || state == nil {
		return err
	}
	for _, n := range plan.Nodes {
		if c.isOverdue() {
			return errOverdue
		}
		node := world.Nodes[n].Name
		if class.refused[node] || !class.fits[n] || nodes != nil && !nodes.Has(node) {
			continue
		}
		// Filter leaves notes in the state for Reserve, for the node that it
		// accepted: a clone keeps those of nodes that it rejected apart.
		if ok, err := c.accept(ctx, class, pod, node, state.Clone()); ok || err != nil {
			return err
		}
	}
	return nil
}

// accept runs Filter and Reserve for a member on a node, and assumes it in the
// snapshot so that the members after it see it there.
//
// Reserve runs here and not at commit because it is where volumes and devices
// are set aside: otherwise two members would be verified with the same device.
func (c *cycle) accept(ctx context.Context, class *class, pod *corev1.Pod, node string, state fwk.CycleState) (bool, error) {
	info, err := c.snapshot.Get(node)
	if err != nil {
		return false, nil // it went since the plan; there is no error to show
	}
	status := class.handle.RunFilterPluginsWithNominatedPods(ctx, state, pod, info)
	if status.IsSuccess() {
		status = c.sched.PassExtenders(ctx, pod, info)
	}
	if !status.IsSuccess() {
		return false, c.note(class, node, status)
	}
	assumed, err := kube.AssumedPod(ctx, state, pod, node)
	if err != nil {
		return false, err
	}
	if err := c.snapshot.AssumePod(assumed); err != nil {
		return false, fmt.Errorf("assuming %s in the snapshot: %w", klog.KObj(pod), err)
	}
	if status := class.handle.RunReservePluginsReserve(ctx, state, assumed.Pod, node); !status.IsSuccess() {
		class.handle.RunReservePluginsUnreserve(ctx, state, assumed.Pod, node)
		if err := c.snapshot.ForgetPod(klog.FromContext(ctx), assumed.Pod); err != nil {
			return false, fmt.Errorf("forgetting %s in the snapshot: %w", klog.KObj(pod), err)
		}
		return false, c.note(class, node, status)
	}
	c.placements = append(c.placements, &kube.Placement{Pod: pod, Node: node, Profile: class.handle, State: state, Assumed: assumed})
	return true, nil
}

// note remembers why a plugin rejected a member, for the message. A plugin that
// failed is an error: the plan can't go on without its answer.
func (c *cycle) note(class *class, node string, status *fwk.Status) error {
	if !status.IsRejected() {
		return fmt.Errorf("plugin %s on node %s: %w", status.Plugin(), node, status.AsError())
	}
	c.rejections[rejected(status.Plugin(), status)]++
	if class.monotone {
		class.refused[node] = true
	}
	return nil
}

// undo gives up all placements, the last first: the snapshot can only forget in
// the reverse order.
func (c *cycle) undo(ctx context.Context) {
	c.leaveSnapshot(ctx)
	c.release(ctx, 0)
	for _, class := range c.classes {
		clear(class.refused)
	}
}

// leaveSnapshot takes all placements out of the snapshot, the last first.
func (c *cycle) leaveSnapshot(ctx context.Context) {
	logger := klog.FromContext(ctx)
	for i := len(c.placements) - 1; i >= 0; i-- {
		if err := c.snapshot.ForgetPod(logger, c.placements[i].Assumed.Pod); err != nil {
			// The next UpdateSnapshot forgets it.
			logger.Error(err, "Forgetting a member in the snapshot failed", "pod", klog.KObj(c.placements[i].Pod))
		}
	}
}
