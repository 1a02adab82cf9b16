// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package podclass decides which members of a gang a scheduler can't tell apart, and what members want with respect to
// each other. The package is pure. The scheduler uses it, as do tools that simulate scheduling.
package podclass

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/sets"
)

// Members with the same needs may have labels of their own, such as an index. Plugins read labels only by selectors: in
// the affinity and spread constraints of members, and in the anti-affinity of other Pods. So two members are of one
// class only if each of these selectors matches both or neither.

// maxMatches limits the number of selectors times the number of members. Beyond the limit, the selectors of Pods
// outside of the gang are ignored, because these may belong to other tenants. If there are still too many, all members
// count as alike, and verification by the plugins finds the differences.
const maxMatches = 1 << 20

// LabelKeys returns a key for each member. Members with labels that no plugin can tell apart have equal keys. Only
// members with the same class key are compared. `existing` are the anti-affinity selectors of Pods outside of the gang,
// nil for none.
func LabelKeys(pods []*corev1.Pod, classKeys []string, existing iter.Seq[labels.Selector]) ([]string, error) {
	varying := varyingLabels(pods, classKeys)
	texts := make([]string, len(pods))
	if len(varying) == 0 {
		return texts, nil
	}
	selectors := make(selectors)
	values := sets.New[string]() // labels whose values count
	seen := sets.New[string]()
	for i, pod := range pods {
		if seen.Has(classKeys[i]) {
			continue
		}
		seen.Insert(classKeys[i])
		if err := selectors.addOf(pod, varying, values); err != nil {
			return nil, err
		}
	}
	if existing != nil {
		own := maps.Clone(selectors)
		for selector := range existing {
			if selectors.add(selector, varying); len(selectors)*len(pods) > maxMatches {
				selectors = own
				break
			}
		}
	}
	if len(selectors) == 0 && len(values) == 0 || len(selectors)*len(pods) > maxMatches {
		return texts, nil
	}
	names, compared := slices.Sorted(maps.Keys(selectors)), sets.List(values)
	for i, pod := range pods {
		var text strings.Builder
		for _, name := range names {
			if selectors[name].Matches(labels.Set(pod.Labels)) {
				text.WriteByte('1')
			} else {
				text.WriteByte('0')
			}
		}
		for _, key := range compared {
			fmt.Fprintf(&text, " %q", pod.Labels[key])
		}
		texts[i] = text.String()
	}
	return texts, nil
}

// varyingLabels returns the keys of those labels in which members with the same class key differ.
func varyingLabels(pods []*corev1.Pod, classKeys []string) sets.Set[string] {
	varying := sets.New[string]()
	first := make(map[string]*corev1.Pod)
	for i, pod := range pods {
		other := first[classKeys[i]]
		if other == nil {
			first[classKeys[i]] = pod
			continue
		}
		for key, value := range pod.Labels {
			if got, has := other.Labels[key]; !has || got != value {
				varying.Insert(key)
			}
		}
		for key := range other.Labels {
			if _, has := pod.Labels[key]; !has {
				varying.Insert(key)
			}
		}
	}
	return varying
}

// selectors are label selectors by their text.
type selectors map[string]labels.Selector

// add adds a selector that uses one of some labels.
func (s selectors) add(selector labels.Selector, read sets.Set[string]) {
	requirements, _ := selector.Requirements()
	if slices.ContainsFunc(requirements, func(r labels.Requirement) bool { return read.Has(r.Key()) }) {
		s[selector.String()] = selector
	}
}

// addOf adds those selectors of a member that use a label in `read`. It adds to values the keys of `read` in which the
// member's spread constraints compare values (matchLabelKeys).
func (s selectors) addOf(pod *corev1.Pod, read, values sets.Set[string]) error {
	for _, term := range terms(pod) {
		selector, err := metav1.LabelSelectorAsSelector(term.LabelSelector)
		if err != nil {
			return fmt.Errorf("reading affinity of %s: %w", pod.Name, err)
		}
		s.add(selector, read)
	}
	for i := range pod.Spec.TopologySpreadConstraints {
		constraint := &pod.Spec.TopologySpreadConstraints[i]
		selector, err := metav1.LabelSelectorAsSelector(constraint.LabelSelector)
		if err != nil {
			return fmt.Errorf("reading spread constraints of %s: %w", pod.Name, err)
		}
		s.add(selector, read)
		for _, key := range constraint.MatchLabelKeys {
			if read.Has(key) {
				values.Insert(key)
			}
		}
	}
	return nil
}

// terms returns all affinity and anti-affinity terms of a Pod.
func terms(pod *corev1.Pod) []corev1.PodAffinityTerm {
	near, apart := RequiredTerms(pod)
	all := slices.Concat(near, apart)
	for _, preferred := range PreferredTerms(pod) {
		all = append(all, preferred.PodAffinityTerm)
	}
	return all
}
