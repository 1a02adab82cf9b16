// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package whatif

import (
	"fmt"
	"maps"
	"slices"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/planner"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/podclass"
)

// survey is a gang and the cluster in the form that the planner needs.
type survey struct {
	nodes     []*corev1.Node
	index     map[string]int // of nodes, by name
	classes   []*class
	resources []corev1.ResourceName
	world     *planner.World
	gang      *planner.Gang
	// takes caches what Pods take.
	takes map[*corev1.Pod][]int64
	// reasons counts, for each class, why nodes may not hold a member.
	reasons []map[string]int
}

// newSurvey returns a survey of nodes, and of the Pods on them, for the waiting members of a gang. The error says why
// the members can't be simulated.
func newSurvey(nodes []*corev1.Node, pods []*corev1.Pod, g *gang) (*survey, error) {
	classes, err := classify(g)
	if err != nil {
		return nil, err
	}
	s := surveyFor(nodes, resourcesOf(classes))
	s.ask(g, classes, pods)
	s.world = s.worldWith(pods)
	return s, nil
}

// surveyFor returns a survey of nodes with some resources, without a gang.
func surveyFor(nodes []*corev1.Node, resources []corev1.ResourceName) *survey {
	s := &survey{nodes: nodes, index: make(map[string]int, len(nodes)), resources: resources, takes: make(map[*corev1.Pod][]int64)}
	for i, node := range nodes {
		s.index[node.Name] = i
	}
	return s
}

// ask sets the gang of the survey. classes are the classes of its waiting members.
func (s *survey) ask(g *gang, classes []*class, pods []*corev1.Pod) {
	s.classes, s.reasons = classes, nil
	wants := make([]*podclass.Wants, len(classes))
	for i, c := range classes {
		wants[i] = &c.wants
	}
	s.gang = &planner.Gang{Levels: podclass.Levels(g.group.Spec.Topology, wants, s.on(g), never)}
	s.gang.Min, s.gang.MinRole = g.minima()
	taken := s.takenPorts(pods)
	for _, c := range classes {
		s.gang.Classes = append(s.gang.Classes, s.classOf(c, taken))
	}
	for i, others := range podclass.Repulsion(wants, never) {
		s.gang.Classes[i].Repels = others
	}
}

// resourcesOf returns the resources to compare for some classes: the standard ones, and those that members request.
func resourcesOf(classes []*class) []corev1.ResourceName {
	all := []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage, corev1.ResourcePods}
	more := make(map[corev1.ResourceName]bool)
	for _, c := range classes {
		for name := range c.requests {
			more[name] = !slices.Contains(all, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(more)) {
		if more[name] {
			all = append(all, name)
		}
	}
	return all
}

// amounts returns the amounts of a list in the order of the survey's resources. CPU is in millicores.
func (s *survey) amounts(of corev1.ResourceList) []int64 {
	all := make([]int64, len(s.resources))
	for r, name := range s.resources {
		if q, ok := of[name]; ok && name == corev1.ResourceCPU {
			all[r] = q.MilliValue()
		} else if ok {
			all[r] = q.Value()
		}
	}
	return all
}

// requestOf returns what a Pod with these requests takes, including a place in the node's limit of Pods.
func (s *survey) requestOf(requests corev1.ResourceList) []int64 {
	all := s.amounts(requests)
	all[slices.Index(s.resources, corev1.ResourcePods)] = 1
	return all
}

// taking returns what a Pod takes on its node. The caller must not change the result.
func (s *survey) taking(pod *corev1.Pod) []int64 {
	if s.takes[pod] == nil {
		s.takes[pod] = s.requestOf(requestsOf(pod))
	}
	return s.takes[pod]
}

// worldWith returns the nodes with what Pods leave free.
func (s *survey) worldWith(pods []*corev1.Pod) *planner.World {
	w := &planner.World{Nodes: make([]planner.Node, len(s.nodes))}
	for _, name := range s.resources {
		w.Resources = append(w.Resources, string(name))
	}
	for i, node := range s.nodes {
		w.Nodes[i] = planner.Node{Name: node.Name, Free: s.amounts(node.Status.Allocatable)}
		for _, level := range s.gang.Levels {
			w.Nodes[i].Domains = append(w.Nodes[i].Domains, node.Labels[level.Key])
		}
	}
	for _, pod := range pods {
		n, ok := s.index[pod.Spec.NodeName]
		if !ok || hasEnded(pod) {
			continue
		}
		for r, q := range s.taking(pod) {
			w.Nodes[n].Free[r] -= q
		}
	}
	return w
}

// on returns the nodes that members of a gang are on.
func (s *survey) on(g *gang) []*corev1.Node {
	var on []*corev1.Node
	for _, name := range g.nodes {
		if n, known := s.index[name]; known {
			on = append(on, s.nodes[n])
		}
	}
	return on
}

// takenPorts returns the host ports that Pods use, by node.
func (s *survey) takenPorts(pods []*corev1.Pod) map[string][]podclass.HostPort {
	if !slices.ContainsFunc(s.classes, func(c *class) bool { return len(c.ports) > 0 }) {
		return nil
	}
	taken := make(map[string][]podclass.HostPort)
	for _, pod := range pods {
		if pod.Spec.NodeName != "" && !hasEnded(pod) {
			taken[pod.Spec.NodeName] = append(taken[pod.Spec.NodeName], portsOf(pod)...)
		}
	}
	return taken
}

// classOf returns a class in the form that the planner needs.
func (s *survey) classOf(c *class, taken map[string][]podclass.HostPort) planner.Class {
	pod := c.members[0]
	found := planner.Class{Role: c.role, Count: len(c.members), Priority: corev1helpers.PodPriority(pod),
		Request: s.requestOf(c.requests), Eligible: make([]bool, len(s.nodes)), PerNode: c.wants.PerNode()}
	affinity := nodeaffinity.GetRequiredNodeAffinity(pod)
	reasons := make(map[string]int)
	for n, node := range s.nodes {
		reason := rejects(node, pod, &affinity)
		if reason == "" && slices.ContainsFunc(c.ports, func(p podclass.HostPort) bool { return slices.Contains(taken[node.Name], p) }) {
			reason = "a host port is taken"
		}
		if found.Eligible[n] = reason == ""; reason != "" {
			reasons[reason]++
		}
	}
	s.reasons = append(s.reasons, reasons)
	return found
}

// rejects returns why a node may not hold a Pod, "" if it may. It does not check resources and other Pods.
func rejects(node *corev1.Node, pod *corev1.Pod, affinity *nodeaffinity.RequiredNodeAffinity) string {
	if node.Spec.Unschedulable {
		cordon := []corev1.Taint{{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule}}
		if _, found := untolerated(cordon, pod); found {
			return "the node is cordoned"
		}
	}
	if taint, found := untolerated(node.Spec.Taints, pod); found {
		return fmt.Sprintf("the taint %s is not tolerated", taint.ToString())
	}
	if ok, err := affinity.Match(node); err != nil || !ok {
		return "the node selector or affinity does not match"
	}
	return ""
}

// untolerated returns the first taint that a Pod does not tolerate.
func untolerated(taints []corev1.Taint, pod *corev1.Pod) (corev1.Taint, bool) {
	return corev1helpers.FindMatchingUntoleratedTaint(logr.Discard(), taints, pod.Spec.Tolerations, func(taint *corev1.Taint) bool {
		return taint.Effect == corev1.TaintEffectNoSchedule || taint.Effect == corev1.TaintEffectNoExecute
	}, false)
}

// amount formats an amount of a resource as in a Pod's spec.
func amount(name string, n int64) string {
	switch corev1.ResourceName(name) {
	case corev1.ResourceCPU:
		return resource.NewMilliQuantity(n, resource.DecimalSI).String()
	case corev1.ResourceMemory, corev1.ResourceEphemeralStorage:
		return resource.NewQuantity(n, resource.BinarySI).String()
	default:
		return resource.NewQuantity(n, resource.DecimalSI).String()
	}
}

// never is an isOver function without a time limit.
func never() bool { return false }
