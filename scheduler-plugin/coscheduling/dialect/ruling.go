// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	corev1 "k8s.io/api/core/v1"

	configv1alpha1 "github.com/lockstep-k8s/lockstep/apis/config/v1alpha1"
)

// TurnOnRule turns a rule on. A rule that was turned on stays on, as a PodGroup API does. The rule for Jobs also turns
// on the rule for JobSets: a Job that belongs to a JobSet has the JobSet's PodGroup.
func (l *Links) TurnOnRule(name configv1alpha1.GroupingRule) {
	for i := range rules {
		if rules[i].name == name || name == configv1alpha1.RuleJobs && rules[i].name == configv1alpha1.RuleJobSets {
			l.rulesOn.Or(1 << i)
		}
	}
}

// ruling is what a rule says of a Pod.
type ruling struct {
	gang Key
	// minimum is how many members are to be placed together according to the Pod, 0 if a PodGroup says that.
	minimum int32
}

// ruledBy returns the gang and minimum of a Pod by the first rule that fits the Pod, false if no rule fits.
func (l *Links) ruledBy(pod *corev1.Pod) (ruling, bool) {
	r, name := l.ruleOf(pod)
	switch {
	case r == nil:
		return ruling{}, false
	case r.implicit:
		key, named := l.implicitKey(pod)
		return ruling{gang: key}, named
	default:
		return ruling{gang: Key{Dialect: r.dialect, Namespace: pod.Namespace, Name: name}, minimum: least(r.minimum(pod))}, true
	}
}

// ruleOf returns the first rule that fits a Pod and the name of the gang, nil if no rule fits.
func (l *Links) ruleOf(pod *corev1.Pod) (fitting *rule, name string) {
	if l == nil {
		return nil, ""
	}
	on := l.rulesOn.Load()
	if on == 0 {
		return nil, ""
	}
	for i := range rules {
		if on&(1<<i) == 0 {
			continue
		}
		if name, ok := rules[i].fits(pod); ok {
			return &rules[i], name
		}
	}
	return nil, ""
}

// askedOfRules returns the gangs that a Pod names by the rules that are on, in order of precedence. Rules count only if
// they read labels and annotations with no other purpose than to name a gang.
func (l *Links) askedOfRules(pod *corev1.Pod) []Key {
	if l == nil {
		return nil
	}
	var keys []Key
	on := l.rulesOn.Load()
	for i := range rules {
		if on&(1<<i) == 0 || !rules[i].asked {
			continue
		}
		if name, ok := rules[i].fits(pod); ok {
			keys = append(keys, Key{Dialect: rules[i].dialect, Namespace: pod.Namespace, Name: name})
		}
	}
	return keys
}

// MinimumBy returns how many members of a Pod's gang are to be placed together according to the Pod, 0 if the Pod does
// not say. The value counts only if the gang has no PodGroup.
func (l *Links) MinimumBy(pod *corev1.Pod) int32 {
	by, named := l.ruledBy(pod)
	if !named {
		return 0
	}
	if gang, _ := l.KeyOf(pod); gang != by.gang {
		return 0 // the Pod names a group by something that takes precedence
	}
	return by.minimum
}
