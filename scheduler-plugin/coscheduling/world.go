// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

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

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/kube"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/planner"
)

// world makes the planner's input from the snapshot and what the Filter plugins
// say of each class and node.
func (c *cycle) world(ctx context.Context) (*planner.World, *planner.Gang, error) {
	nodes, err := c.snapshot.List()
	if err != nil {
		return nil, nil, fmt.Errorf("listing nodes: %w", err)
	}
	handle := func(name string) framework.Framework { return c.plugins[name].handle }
	keys := slices.Clone(c.view.classKeys)
	for i, pod := range c.view.waiting {
		if ownsClaims(pod) {
			keys[i] += pinsOf(handle(pod.Spec.SchedulerName), pod)
		}
	}
	c.classes, err = classify(c.view.waiting, keys, handle)
	if err != nil {
		return nil, nil, err
	}
	spec := &c.view.group.Spec
	gang := &planner.Gang{
		Min:     max(0, int(spec.MinMember-c.view.placed.Total)),
		MinRole: make(map[string]int, len(spec.MinRoleMember)),
		Levels:  c.levels(spec),
	}
	for role, least := range spec.MinRoleMember {
		gang.MinRole[role] = max(0, int(least-c.view.placed.Roles[role]))
	}

	resources := newResources(c.classes)
	c.provided = resources.provided(nodes, c.classes)
	pass := c.passOf(nodes, resources, gang.Levels)
	changed := pass.renew(resources, gang.Levels)
	for i, class := range c.classes {
		if c.isOverdue() {
			return nil, nil, errOverdue
		}
		view := &pass.views[i]
		if err := c.filter(ctx, class, view, nodes, changed); err != nil {
			return nil, nil, err
		}
		for _, n := range changed {
			if view.feasible[n] {
				relax(view.request, pass.world.Nodes[n].Free)
			}
		}
		gang.Classes = append(gang.Classes, planner.Class{
			Role: class.role, Count: len(class.members), Request: view.request, Eligible: class.fits, PerNode: class.perNode(),
		})
		if i == 0 {
			if err := c.score(ctx, class, view, nodes, changed, pass.world); err != nil {
				return nil, nil, err
			}
		}
	}
	c.keepPass(pass)
	return pass.world, gang, nil
}

// levels are the gang's topology constraints, with the domains where members
// are placed already.
func (c *cycle) levels(spec *schedulingv1alpha1.PodGroupSpec) []planner.Level {
	var levels []planner.Level
	for _, constraint := range spec.Topology {
		levels = append(levels, planner.Level{
			Key:      constraint.Key,
			Required: constraint.Mode == schedulingv1alpha1.TopologyRequired,
			Fixed:    c.domainOfPlaced(constraint.Key),
		})
	}
	// Members that attract each other are a Required level in other words. The
	// plugin alone would put the first one anywhere, and the rest might not fit
	// there.
	for _, key := range attraction(c.classes) {
		if !slices.ContainsFunc(levels, func(l planner.Level) bool { return l.Key == key && l.Required }) {
			levels = append(levels, planner.Level{Key: key, Required: true, Fixed: c.domainOfPlaced(key)})
		}
	}
	return levels
}

// domainOfPlaced is the domain where most placed members are, empty if none is.
func (c *cycle) domainOfPlaced(key string) string {
	counts := make(map[string]int)
	for _, name := range c.view.nodes {
		if info, err := c.snapshot.Get(name); err == nil {
			if domain := info.Node().Labels[key]; domain != "" {
				counts[domain]++
			}
		}
	}
	domains := sortedKeys(counts)
	if len(domains) == 0 {
		return ""
	}
	return slices.MaxFunc(domains, func(a, b string) int { return cmp.Compare(counts[a], counts[b]) })
}

// preFilter runs the PreFilter plugins for a member. The state is nil if they
// reject it on all nodes. Nodes are those that they allow, nil for all.
//
// The plugin's own PreFilter skips members, so that this does not recurse.
func (c *cycle) preFilter(ctx context.Context, class *class, pod *corev1.Pod) (fwk.CycleState, sets.Set[string], error) {
	if c.groupState == nil {
		c.groupState = framework.NewCycleState()
	}
	state := framework.NewCycleState()
	state.SetPodGroupSchedulingCycle(c.groupState)
	state.Write(framework.PodsToActivateKey, framework.NewPodsToActivate())
	result, status, _ := class.handle.RunPreFilterPlugins(ctx, state, pod)
	switch {
	case status.IsSuccess():
	case status.IsRejected():
		c.rejections[rejected(status.Plugin(), status)]++
		return nil, nil, nil
	default:
		return nil, nil, fmt.Errorf("checking %s: %w", pod.Name, status.AsError())
	}
	if result.AllNodes() {
		return state, nil, nil
	}
	return state, result.NodeNames, nil
}

// filter runs the Filter plugins for the first member of a class on the nodes that have
// changed, unsampled, and sets what the class knows of nodes.
func (c *cycle) filter(ctx context.Context, class *class, view *classPass, nodes []fwk.NodeInfo, changed []int) error {
	class.fits = view.fits
	class.reasons = make(map[string]int)
	pod := class.members[0]
	state, allowed, err := c.preFilter(ctx, class, pod)
	if err != nil {
		return err
	}
	class.labelBlind = state != nil
	if state == nil {
		for reason := range c.rejections {
			class.reasons[reason] = len(nodes)
		}
		clear(view.fits)
		clear(view.feasible)
		return nil
	}
	statuses := make([]*fwk.Status, len(changed))
	class.handle.Parallelizer().Until(ctx, len(changed), func(i int) {
		if info := nodes[changed[i]]; allowed == nil || allowed.Has(info.Node().Name) {
			statuses[i] = class.handle.RunFilterPluginsWithNominatedPods(ctx, state, pod, info)
		} else {
			statuses[i] = fwk.NewStatus(fwk.UnschedulableAndUnresolvable, "node(s) excluded before filtering")
		}
	}, Name)
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
			view.fits[n] = true // how many fit is for the planner to say
		case !class.monotone && (status.Plugin() == kube.InterPodAffinity || status.Plugin() == kube.PodTopologySpread):
			view.fits[n] = true // another member may make it fit
		default:
			class.reasons[status.Message()]++
		}
	}
	return nil
}

// score ranks the nodes that have changed and on which the first class fits, as the
// profile's Score plugins see them before anything is placed.
func (c *cycle) score(ctx context.Context, class *class, view *classPass, nodes []fwk.NodeInfo, changed []int, world *planner.World) error {
	var candidates []fwk.NodeInfo
	var index []int
	for _, n := range changed {
		if view.feasible[n] {
			candidates, index = append(candidates, nodes[n]), append(index, n)
		}
	}
	if len(candidates) == 0 {
		return nil
	}
	pod := class.members[0]
	state, _, err := c.preFilter(ctx, class, pod)
	if err != nil || state == nil {
		return err
	}
	if status := class.handle.RunPreScorePlugins(ctx, state, pod, candidates); !status.IsSuccess() {
		return fmt.Errorf("scoring nodes for %s: %w", pod.Name, status.AsError())
	}
	scores, status := class.handle.RunScorePlugins(ctx, state, pod, candidates)
	if !status.IsSuccess() {
		return fmt.Errorf("scoring nodes for %s: %w", pod.Name, status.AsError())
	}
	for i := range scores {
		world.Nodes[index[i]].Score = scores[i].TotalScore
	}
	return nil
}

// resources are the resources that a gang's classes request, in a fixed order:
// CPU in millicores, memory and ephemeral storage in bytes, Pods, and extended
// ones in their own unit.
type resources struct {
	names   []string
	scalars []corev1.ResourceName
}

func newResources(classes []*class) resources {
	extended := make(map[corev1.ResourceName]bool)
	for _, c := range classes {
		for name := range c.info.CalculateResource().Resource.GetScalarResources() {
			extended[name] = true
		}
	}
	return resourcesOf(slices.Sorted(maps.Keys(extended)))
}

// resourcesOf are these extended resources and those that every node has.
func resourcesOf(extended []corev1.ResourceName) resources {
	r := resources{
		names: []string{string(corev1.ResourceCPU), string(corev1.ResourceMemory),
			string(corev1.ResourceEphemeralStorage), string(corev1.ResourcePods)},
		scalars: extended,
	}
	for _, name := range r.scalars {
		r.names = append(r.names, string(name))
	}
	return r
}

func (r resources) quantities(resource fwk.Resource, pods int64) []int64 {
	q := make([]int64, 0, len(r.names))
	q = append(q, resource.GetMilliCPU(), resource.GetMemory(), resource.GetEphemeralStorage(), pods)
	for _, name := range r.scalars {
		q = append(q, resource.GetScalarResources()[name])
	}
	return q
}

// provided are the extended resources that some node has, but for those of a class of
// devices: a node may have these without saying so.
func (r resources) provided(nodes []fwk.NodeInfo, classes []*class) map[corev1.ResourceName]bool {
	provided := make(map[corev1.ResourceName]bool, len(r.scalars))
	for _, name := range r.scalars {
		if len(classes) > 0 {
			if manager := classes[0].handle.SharedDRAManager(); manager != nil && manager.DeviceClassResolver().GetDeviceClass(name) != nil {
				continue
			}
		}
		provided[name] = slices.ContainsFunc(nodes, func(info fwk.NodeInfo) bool {
			return info.GetAllocatable().GetScalarResources()[name] > 0
		})
	}
	return provided
}

// request is what a member takes.
func (r resources) request(info *framework.PodInfo) []int64 {
	return r.quantities(info.CalculateResource().Resource, 1)
}

// readFree reads what a node has left.
func (r resources) readFree(into []int64, info fwk.NodeInfo) {
	has, used := info.GetAllocatable(), info.GetRequested()
	into = append(into[:0], has.GetMilliCPU()-used.GetMilliCPU(), has.GetMemory()-used.GetMemory(),
		has.GetEphemeralStorage()-used.GetEphemeralStorage(), int64(has.GetAllowedPodNumber()-len(info.GetPods())))
	for _, name := range r.scalars {
		into = append(into, has.GetScalarResources()[name]-used.GetScalarResources()[name])
	}
}

// relax drops resources of a request of which a node has too little although
// the plugins accept it there: they don't count this resource, because an
// extender or a device class provides it, say. The planner then overestimates,
// which verification corrects; the other way round, room would be missed.
func relax(request, free []int64) {
	for r := range request {
		if request[r] > free[r] {
			request[r] = 0
		}
	}
}
