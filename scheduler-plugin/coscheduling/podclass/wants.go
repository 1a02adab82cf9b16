// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package podclass

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/sets"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/planner"
)

// Wants is what the members of a class want with respect to other Pods. Pod is the first member.
type Wants struct {
	Pod *corev1.Pod
	// Ports are the host ports that a member takes.
	Ports sets.Set[HostPort]
	// Near and Apart are the terms of required affinity and anti-affinity.
	Near, Apart []Term
}

// Term is an affinity term, restricted to the namespaces that the term lists.
type Term struct {
	Key        string
	Namespaces []string
	Selector   labels.Selector
}

// Matches reports whether the term is about a Pod.
func (t *Term) Matches(pod *corev1.Pod) bool {
	return slices.Contains(t.Namespaces, pod.Namespace) && t.Selector.Matches(labels.Set(pod.Labels))
}

// WantsOf returns what a Pod wants. It returns an error for an invalid selector.
func WantsOf(pod *corev1.Pod) (Wants, error) {
	w := Wants{Pod: pod, Ports: HostPorts(pod)}
	near, apart := RequiredTerms(pod)
	var err error
	if w.Near, err = parsed(pod, near); err == nil {
		w.Apart, err = parsed(pod, apart)
	}
	return w, err
}

// RequiredTerms returns the terms of a Pod's required affinity and anti-affinity.
func RequiredTerms(pod *corev1.Pod) (near, apart []corev1.PodAffinityTerm) {
	a := pod.Spec.Affinity
	if a != nil && a.PodAffinity != nil {
		near = a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	}
	if a != nil && a.PodAntiAffinity != nil {
		apart = a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	}
	return near, apart
}

// PreferredTerms returns the terms of a Pod's preferred affinity and anti-affinity.
func PreferredTerms(pod *corev1.Pod) []corev1.WeightedPodAffinityTerm {
	var all []corev1.WeightedPodAffinityTerm
	a := pod.Spec.Affinity
	if a != nil && a.PodAffinity != nil {
		all = append(all, a.PodAffinity.PreferredDuringSchedulingIgnoredDuringExecution...)
	}
	if a != nil && a.PodAntiAffinity != nil {
		all = append(all, a.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution...)
	}
	return all
}

func parsed(pod *corev1.Pod, terms []corev1.PodAffinityTerm) ([]Term, error) {
	var all []Term
	for i := range terms {
		selector, err := metav1.LabelSelectorAsSelector(terms[i].LabelSelector)
		if err != nil {
			return nil, fmt.Errorf("reading affinity of %s: %w", pod.Name, err)
		}
		t := Term{Key: terms[i].TopologyKey, Namespaces: terms[i].Namespaces, Selector: selector}
		if len(t.Namespaces) == 0 && terms[i].NamespaceSelector == nil {
			t.Namespaces = []string{pod.Namespace}
		}
		all = append(all, t)
	}
	return all, nil
}

// PerNode returns how many members of the class can share a node at most, 0 for any number. It is 1 if the members want
// the same host port, or have anti-affinity to each other on one node.
func (w *Wants) PerNode() int {
	if w.repels(w) {
		return 1
	}
	return 0
}

// repels reports whether a member of the class w can't share a node with a member of the class `other`, which may be w
// itself: both want the same host port, or the first has anti-affinity to the second.
func (w *Wants) repels(other *Wants) bool {
	return w.Ports.HasAny(other.Ports.UnsortedList()...) || slices.ContainsFunc(w.Apart, func(t Term) bool {
		return t.Key == corev1.LabelHostname && t.Matches(other.Pod)
	})
}

// maxRepelling is the largest number of classes that are compared with each other. If there are more, the planner
// assumes that they can share nodes, and verification corrects that.
const maxRepelling = 64

// Repulsion returns, for each class, the indexes of the other classes that can't share a node with the class. If isOver
// becomes true, the result is incomplete.
func Repulsion(classes []*Wants, isOver func() bool) [][]int {
	all := make([][]int, len(classes))
	if len(classes) > maxRepelling || !slices.ContainsFunc(classes, func(w *Wants) bool { return len(w.Apart) > 0 || len(w.Ports) > 0 }) {
		return all
	}
	for a := range classes {
		if isOver() {
			break
		}
		for b := range a {
			if classes[a].repels(classes[b]) || classes[b].repels(classes[a]) {
				all[a], all[b] = append(all[a], b), append(all[b], a)
			}
		}
	}
	return all
}

// Levels returns the topology constraints of a group, followed by those that affinity implies. Affinity implies one if
// each member must be near a Pod with certain labels and all members have these labels, so that all end up in one
// domain. `on` are the nodes of placed members. If isOver becomes true, implied constraints may be missing.
func Levels(group []schedulingv1alpha1.TopologyConstraint, classes []*Wants, on []*corev1.Node, isOver func() bool) []planner.Level {
	var levels []planner.Level
	for _, constraint := range group {
		levels = append(levels, planner.Level{Key: constraint.Key, Required: constraint.Mode == schedulingv1alpha1.TopologyRequired, Fixed: domainOf(on, constraint.Key)})
	}
	for _, w := range classes {
		for i := range w.Near {
			if isOver() {
				return levels
			}
			term := &w.Near[i]
			if slices.ContainsFunc(levels, func(l planner.Level) bool { return l.Key == term.Key && l.Required }) ||
				slices.ContainsFunc(classes, func(other *Wants) bool { return !term.Matches(other.Pod) }) {
				continue
			}
			levels = append(levels, planner.Level{Key: term.Key, Required: true, Fixed: domainOf(on, term.Key)})
		}
	}
	return levels
}

// domainOf returns the domain (the value of the label key) with the largest number of the given nodes, the first by
// name if there are several. The result is "" if no node has the label.
func domainOf(nodes []*corev1.Node, key string) string {
	counts := make(map[string]int)
	for _, node := range nodes {
		if domain := node.Labels[key]; domain != "" {
			counts[domain]++
		}
	}
	domains := slices.Sorted(maps.Keys(counts))
	if len(domains) == 0 {
		return ""
	}
	return slices.MaxFunc(domains, func(a, b string) int { return cmp.Compare(counts[a], counts[b]) })
}
