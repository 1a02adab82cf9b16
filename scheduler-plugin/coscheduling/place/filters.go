// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package place

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/kube"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/planner"
)

// filters asks the plugins of a profile about members and nodes.
type filters struct {
	// name is the plugin name under which parallel work is counted.
	name string
	// groupState is the state that plugins share between the members. For instance, members may share a ResourceClaim
	// that is to be allocated for the first of them. It is nil before the first PreFilter call.
	groupState *framework.CycleState
	rejections rejections
	// byLabel caches node indexes by label key and value. All surveys of an attempt are of the same nodes.
	byLabel map[string]map[string][]int
	// selecting caches which profiles run the plugin NodeAffinity.
	selecting map[framework.Framework]bool
}

// preFilter runs the PreFilter plugins for a member. It returns the nodes to which the plugins limit the member, nil
// for no limit. The state is nil if the plugins reject the member on all nodes.
//
// There is no recursion, because the PreFilter of Coscheduling skips members.
func (f *filters) preFilter(ctx context.Context, class *class, pod *corev1.Pod) (fwk.CycleState, sets.Set[string], error) {
	if status := kube.MayShare(class.handle, pod); !status.IsSuccess() {
		f.rejections.add(status)
		return nil, nil, nil
	}
	if f.groupState == nil {
		f.groupState = framework.NewCycleState()
	}
	state := framework.NewCycleState()
	state.SetPodGroupSchedulingCycle(f.groupState)
	state.Write(framework.PodsToActivateKey, framework.NewPodsToActivate())
	result, status, _ := class.handle.RunPreFilterPlugins(ctx, state, kube.PendingClaimsLast(class.handle, pod))
	switch {
	case status.IsSuccess():
	case status.IsRejected():
		f.rejections.add(status)
		return nil, nil, nil
	default:
		return nil, nil, fmt.Errorf("checking %s: %w", pod.Name, status.AsError())
	}
	if result.AllNodes() {
		return state, nil, nil
	}
	return state, result.NodeNames, nil
}

// filter runs the Filter plugins for the first member of a class on all nodes that have changed, without sampling, and
// stores the results in class and in pass. view is the part of pass about the class.
func (f *filters) filter(ctx context.Context, class *class, pass *pass, view *classPass, changed []int) error {
	nodes := pass.nodes
	class.fits, class.pass, class.view = view.fits, pass, view
	pod := class.members[0]
	state, allowed, err := f.preFilter(ctx, class, pod)
	if err != nil {
		return err
	}
	class.labelBlind = state != nil
	if state == nil {
		class.view, class.anywhere = nil, slices.Collect(maps.Keys(f.rejections))
		clear(view.fits)
		clear(view.feasible)
		return nil
	}
	changed = f.selected(class, nodes, changed)
	statuses := make([]*fwk.Status, len(changed))
	class.handle.Parallelizer().Until(ctx, len(changed), func(i int) {
		if info := nodes[changed[i]]; allowed == nil || allowed.Has(info.Node().Name) {
			statuses[i] = class.handle.RunFilterPluginsWithNominatedPods(ctx, state, pod, info)
		} else {
			statuses[i] = fwk.NewStatus(fwk.UnschedulableAndUnresolvable, "node(s) excluded before filtering")
		}
	}, f.name)
	for i, n := range changed {
		status := statuses[i]
		if !status.IsSuccess() && !labelBlind.Has(status.Plugin()) {
			class.labelBlind = false
		}
		switch {
		case status.IsSuccess():
			view.fits[n], view.feasible[n] = true, true
		case !status.IsRejected():
			return fmt.Errorf("checking %s on node %s: %w", pod.Name, nodes[n].Node().Name, status.AsError())
		case status.Plugin() == kube.NodeResourcesFit:
			view.fits[n] = true // the planner decides how many fit
		case !class.regard.isMonotone() && (status.Plugin() == kube.InterPodAffinity || status.Plugin() == kube.PodTopologySpread):
			view.fits[n] = true // another member may make it fit
		default:
			pass.reject(view, n, status)
		}
	}
	return nil
}

// selected returns those of the given nodes that have the labels of a class's nodeSelector. The plugin NodeAffinity
// would exclude the others, too. But comparing labels costs a hundredth of that, and a gang may have hundreds of
// classes, each for one node.
func (f *filters) selected(class *class, nodes []fwk.NodeInfo, some []int) (selected []int) {
	selector := class.members[0].Spec.NodeSelector
	if len(selector) == 0 || !f.selects(class.handle) {
		return some
	}
	candidates := some
	if len(some) == len(nodes) {
		key := slices.Min(slices.Collect(maps.Keys(selector)))
		candidates = f.labelled(key, nodes)[selector[key]]
	}
	for _, n := range candidates {
		has := nodes[n].Node().Labels
		matches := true
		for key, value := range selector {
			got, found := has[key]
			matches = matches && found && got == value
		}
		if matches {
			selected = append(selected, n)
		}
	}
	return selected
}

// selects reports whether a profile runs the plugin NodeAffinity.
func (f *filters) selects(profile framework.Framework) bool {
	if f.selecting == nil {
		f.selecting = make(map[framework.Framework]bool)
	}
	if _, known := f.selecting[profile]; !known {
		f.selecting[profile] = slices.Contains(kube.EnabledIn(profile).Filter, kube.NodeAffinity)
	}
	return f.selecting[profile]
}

// labelled returns the nodes that have a label, by the label's value.
func (f *filters) labelled(key string, nodes []fwk.NodeInfo) map[string][]int {
	if f.byLabel == nil {
		f.byLabel = make(map[string]map[string][]int)
	}
	if f.byLabel[key] == nil {
		byValue := make(map[string][]int)
		for n, info := range nodes {
			if value, has := info.Node().Labels[key]; has {
				byValue[value] = append(byValue[value], n)
			}
		}
		f.byLabel[key] = byValue
	}
	return f.byLabel[key]
}

// score ranks the changed nodes on which the first class fits, as the profile's Score plugins do before anything is
// placed. compared reports whether a plugin compared nodes with each other.
func (f *filters) score(ctx context.Context, class *class, view *classPass, nodes []fwk.NodeInfo, changed []int, world *planner.World) (compared bool, err error) {
	var candidates []fwk.NodeInfo
	var index []int
	for _, n := range changed {
		if view.feasible[n] {
			candidates, index = append(candidates, nodes[n]), append(index, n)
		}
	}
	if len(candidates) == 0 {
		return false, nil
	}
	pod := class.members[0]
	state, _, err := f.preFilter(ctx, class, pod)
	if err != nil || state == nil {
		return false, err
	}
	scores, err := scoresOf(ctx, class, pod, state, candidates)
	for i := range scores {
		node := &world.Nodes[index[i]]
		node.Score, node.Preferred = scores[i].TotalScore, scores[i].TotalScore
		for _, by := range scores[i].Scores {
			switch by.Name {
			case kube.NodeResourcesFit, kube.BalancedAllocation, kube.ImageLocality:
				// They say nothing of what a Pod prefers. By default they spread Pods over nodes, or have images
				// downloaded once, and a gang is rather packed.
				node.Preferred -= by.Score
			}
		}
		compared = compared || slices.ContainsFunc(scores[i].Scores, func(by fwk.PluginScore) bool { return comparing.Has(by.Name) })
	}
	return compared, err
}

// comparing are the Score plugins that either compare the scored nodes with each other or give no score at all.
// TaintToleration is not among them: it compares, too, but always gives scores; see pass.avoided.
var comparing = sets.New(kube.InterPodAffinity, kube.NodeAffinity, kube.PodTopologySpread)

// scoresOf returns the Score plugins' scores of nodes for a member.
func scoresOf(ctx context.Context, class *class, pod *corev1.Pod, state fwk.CycleState, nodes []fwk.NodeInfo) ([]fwk.NodePluginScores, error) {
	if status := class.handle.RunPreScorePlugins(ctx, state, pod, nodes); !status.IsSuccess() {
		return nil, fmt.Errorf("scoring nodes for %s: %w", pod.Name, status.AsError())
	}
	scores, status := class.handle.RunScorePlugins(ctx, state, pod, nodes)
	if !status.IsSuccess() {
		return nil, fmt.Errorf("scoring nodes for %s: %w", pod.Name, status.AsError())
	}
	return scores, nil
}

// bestFirst returns nodes ordered by the Score plugins' scores for a member, best first.
func bestFirst(ctx context.Context, class *class, pod *corev1.Pod, state fwk.CycleState, nodes []fwk.NodeInfo) ([]fwk.NodeInfo, error) {
	if len(nodes) < 2 {
		return nodes, nil
	}
	scores, err := scoresOf(ctx, class, pod, state, nodes)
	if err != nil {
		return nil, err
	}
	score := make(map[fwk.NodeInfo]int64, len(nodes))
	for i, node := range nodes {
		score[node] = scores[i].TotalScore
	}
	slices.SortStableFunc(nodes, func(a, b fwk.NodeInfo) int { return -cmp.Compare(score[a], score[b]) })
	return nodes, nil
}
