// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package place

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/lockstep-k8s/lockstep/podgroup"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/kube"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/planner"
)

// verification checks with the plugins whether members can be where a plan puts them, and places them in the snapshot.
type verification struct {
	gang    *Gang
	cluster *Cluster
	filters *filters
	until   deadline
	found   *survey
	// placements are the members placed so far, in order. They are assumed in the snapshot, and the Reserve plugins
	// have run for them.
	placements []*kube.Placement
	// extended is what extenders have said of members on nodes.
	extended map[onNode]*fwk.Status
	// differ is on which nodes the extenders accept some members and reject others.
	differ map[string]bool
	// reusable caches, by class key, whether PreFilter states may be reused; see reuse.go.
	reusable map[string]bool
}

// follow puts members where a plan puts them. If the plugins reject a member there, follow tries the other nodes of the
// plan. The result is whether the gang's minimum is placed. If not, the caller undoes the placements.
func (v *verification) follow(ctx context.Context, plan planner.Plan) (bool, error) {
	v.askExtenders(ctx, plan)
	next := make([]int, len(v.found.classes))
	var homeless []int // classes of members whose planned place did not hold
	var members []*corev1.Pod
	for _, a := range plan.Assignments {
		class := v.found.classes[a.Class]
		for range a.Count {
			pod := class.members[next[a.Class]]
			next[a.Class]++
			ok, err := v.try(ctx, class, pod, v.found.world.Nodes[a.Node].Name)
			if err != nil {
				return false, err
			}
			if !ok {
				homeless, members = append(homeless, a.Class), append(members, pod)
			}
		}
	}
	// The homeless members may make up the minimum, or not any more.
	left := podgroup.Tally{}
	for _, pod := range members {
		left.Add(v.gang.Key.RoleOf(pod), 1)
	}
	for i, pod := range members {
		if !v.wouldSuffice(left) {
			return false, nil
		}
		if _, err := v.search(ctx, v.found.classes[homeless[i]], pod, plan.Nodes); err != nil {
			return false, err
		}
		left.Add(v.gang.Key.RoleOf(pod), -1)
	}
	return v.suffices(), nil
}

// onNode is a member on a node.
type onNode struct {
	pod  *corev1.Pod
	node string
}

// askExtenders asks the extenders whether members may be where a plan puts them. As a call may take milliseconds, it
// asks about many members concurrently. This is possible because extenders don't see where other members are.
func (v *verification) askExtenders(ctx context.Context, plan planner.Plan) {
	if !v.cluster.Extenders.HaveFilter() {
		return
	}
	var all []onNode
	next := make([]int, len(v.found.classes))
	for _, a := range plan.Assignments {
		for range a.Count {
			all = append(all, onNode{v.found.classes[a.Class].members[next[a.Class]], v.found.world.Nodes[a.Node].Name})
			next[a.Class]++
		}
	}
	said := make([]*fwk.Status, len(all))
	asked := make([]bool, len(all))
	v.found.classes[0].handle.Parallelizer().Until(ctx, len(all), func(i int) {
		info, err := v.cluster.Snapshot.Get(all[i].node)
		if asked[i] = err == nil && !v.until.isOver(); asked[i] {
			said[i] = v.passExtenders(ctx, all[i].pod, info)
		}
	}, v.filters.name)
	v.extended, v.differ = make(map[onNode]*fwk.Status), make(map[string]bool)
	passed := make(map[string]bool)
	for i, of := range all {
		if asked[i] {
			v.extended[of], passed[of.node] = said[i], passed[of.node] || said[i].IsSuccess()
		}
	}
	for of, said := range v.extended {
		v.differ[of.node] = v.differ[of.node] || passed[of.node] && !said.IsSuccess()
	}
}

// passExtenders asks the extenders whether a member may be on a node. It does not ask about virtual members, or a
// second time about the same member and node.
func (v *verification) passExtenders(ctx context.Context, pod *corev1.Pod, info fwk.NodeInfo) *fwk.Status {
	if said, asked := v.extended[onNode{pod, info.Node().Name}]; asked || v.gang.virtual.Has(pod.UID) {
		return said
	}
	return v.cluster.Extenders.PassExtenders(ctx, pod, info)
}

// suffices reports whether the gang's minimum holds with the placements. It returns false if there are no placements.
func (v *verification) suffices() bool {
	if len(v.placements) == 0 {
		return false
	}
	return v.wouldSuffice(podgroup.Tally{})
}

// wouldSuffice reports whether the gang's minimum would hold with more members placed.
func (v *verification) wouldSuffice(more podgroup.Tally) bool {
	placed := more.Plus(podgroup.Tally{})
	for _, p := range v.placements {
		placed.Add(v.gang.Key.RoleOf(p.Pod), 1)
	}
	return v.gang.isServedBy(placed)
}

// try places a member on a node if all plugins accept the member there.
func (v *verification) try(ctx context.Context, class *class, pod *corev1.Pod, node string) (bool, error) {
	if v.until.isOver() {
		return false, errOverdue
	}
	if class.refused[node] {
		return false, nil
	}
	if state, ok := v.recall(class, node); ok {
		if info, err := v.cluster.Snapshot.Get(node); err == nil && v.admits(ctx, class, pod, info, state).IsSuccess() {
			return v.take(ctx, class, pod, info, state)
		}
	}
	state, nodes, err := v.filters.preFilter(ctx, class, pod)
	if err != nil || state == nil {
		return false, err
	}
	v.remember(class, state, nodes)
	if nodes != nil && !nodes.Has(node) {
		return false, nil
	}
	return v.accept(ctx, class, pod, node, state)
}

// search places a member on the first of some nodes on which all plugins accept the member. It returns false if there
// is no such node.
func (v *verification) search(ctx context.Context, class *class, pod *corev1.Pod, nodes []int) (bool, error) {
	state, allowed, err := v.filters.preFilter(ctx, class, pod)
	if err != nil || state == nil {
		return false, err
	}
	for _, n := range nodes {
		if v.until.isOver() {
			return false, errOverdue
		}
		if !v.mayHold(class, n, allowed) {
			continue
		}
		if ok, err := v.accept(ctx, class, pod, v.found.world.Nodes[n].Name, state); ok || err != nil {
			return ok, err
		}
	}
	return false, nil
}

// mayHold reports whether a node may hold a member of a class, as far as is known without asking the plugins. allowed
// are the nodes to which the PreFilter plugins limit the member, nil for no limit.
func (v *verification) mayHold(class *class, node int, allowed sets.Set[string]) bool {
	name := v.found.world.Nodes[node].Name
	return !class.refused[name] && class.fits[node] && (allowed == nil || allowed.Has(name))
}

// accept runs Filter and Reserve for a member on a node. If all plugins accept the node, it assumes the member in the
// snapshot, so that later members see it.
//
// Reserve runs here, and not only at commit, because it sets volumes and devices aside. Otherwise two members could be
// verified with the same device.
func (v *verification) accept(ctx context.Context, class *class, pod *corev1.Pod, node string, state fwk.CycleState) (bool, error) {
	info, err := v.cluster.Snapshot.Get(node)
	if err != nil {
		return false, nil // the node was deleted since the plan; there is no error to show
	}
	if status := v.admits(ctx, class, pod, info, state); !status.IsSuccess() {
		return false, v.note(class, node, status)
	}
	return v.take(ctx, class, pod, info, state)
}

// admits asks the Filter plugins whether a node may hold a member, and checks that the member leaves the room of others
// alone.
func (v *verification) admits(ctx context.Context, class *class, pod *corev1.Pod, info fwk.NodeInfo, state fwk.CycleState) *fwk.Status {
	if !v.cluster.ahead.counted.leaveRoom(class.info, info) {
		return fwk.NewStatus(fwk.Unschedulable, "node(s) had resources that are left to others")
	}
	return class.handle.RunFilterPluginsWithNominatedPods(ctx, state, pod, info)
}

// take places a member on a node that admits accepts, if extenders and Reserve plugins accept the node, too.
func (v *verification) take(ctx context.Context, class *class, pod *corev1.Pod, info fwk.NodeInfo, state fwk.CycleState) (bool, error) {
	node := info.Node().Name
	if status := v.passExtenders(ctx, pod, info); status.IsRejected() && v.differ[node] {
		v.filters.rejections.add(status)
		return false, nil
	} else if !status.IsSuccess() {
		return false, v.note(class, node, status)
	}
	assumed, err := kube.AssumedPod(ctx, state, pod, node)
	if err != nil {
		return false, err
	}
	if err := v.cluster.Snapshot.AssumePod(assumed); err != nil {
		return false, fmt.Errorf("assuming %s in the snapshot: %w", klog.KObj(pod), err)
	}
	if status := v.reserve(ctx, class, state, assumed.Pod, node); !status.IsSuccess() {
		kube.UndoReserve(ctx, class.handle, state, assumed.Pod, node)
		if err := v.cluster.Snapshot.ForgetPod(klog.FromContext(ctx), assumed.Pod); err != nil {
			return false, fmt.Errorf("forgetting %s in the snapshot: %w", klog.KObj(pod), err)
		}
		return false, v.note(class, node, status)
	}
	v.outdate(info.Node())
	v.placements = append(v.placements, &kube.Placement{Pod: pod, Node: node, Profile: class.handle, State: state, Assumed: assumed})
	return true, nil
}

// reserve runs the Reserve plugins for a member. It does nothing for a virtual member, which does not exist as a Pod.
func (v *verification) reserve(ctx context.Context, class *class, state fwk.CycleState, pod *corev1.Pod, node string) *fwk.Status {
	if v.gang.virtual.Has(pod.UID) {
		return nil
	}
	return class.handle.RunReservePluginsReserve(ctx, state, pod, node)
}

// dropVirtual removes virtual members from the placements. The caller has removed them from the snapshot.
func (v *verification) dropVirtual() {
	v.placements = slices.DeleteFunc(v.placements, func(p *kube.Placement) bool { return v.gang.virtual.Has(p.Pod.UID) })
}

// note records the reason for which a plugin rejected a member, for the message. If status is an error instead, it
// returns that error: without the plugin's answer the plan can't go on.
func (v *verification) note(class *class, node string, status *fwk.Status) error {
	if !status.IsRejected() {
		return fmt.Errorf("plugin %s on node %s: %w", status.Plugin(), node, status.AsError())
	}
	v.filters.rejections.add(status)
	if class.regard.isMonotone() {
		class.refused[node] = true
	}
	return nil
}

// undo removes all placements, the last first, because the snapshot can be restored only in reverse order.
func (v *verification) undo(ctx context.Context) {
	v.undoTo(ctx, 0)
}

// undoTo undoes all placements except the first n.
func (v *verification) undoTo(ctx context.Context, n int) {
	kept, given := v.placements[:n], v.placements[n:]
	v.placements = given
	v.leaveSnapshot(ctx)
	for _, p := range slices.Backward(given) {
		if v.gang.virtual.Has(p.Pod.UID) {
			continue
		}
		kube.UndoReserve(ctx, p.Profile, p.State, p.Assumed.Pod, p.Node)
	}
	v.placements = kept
	for _, class := range v.found.classes {
		class.counted = nil
		clear(class.refused)
	}
}

// leaveSnapshot takes all placements out of the snapshot, the last first.
func (v *verification) leaveSnapshot(ctx context.Context) {
	logger := klog.FromContext(ctx)
	for i := len(v.placements) - 1; i >= 0; i-- {
		if err := v.cluster.Snapshot.ForgetPod(logger, v.placements[i].Assumed.Pod); err != nil {
			// The next UpdateSnapshot drops the Pod.
			logger.Error(err, "Forgetting a member in the snapshot failed", "pod", klog.KObj(v.placements[i].Pod))
		}
	}
}
