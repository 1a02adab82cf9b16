// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	corev1 "k8s.io/api/core/v1"

	configv1alpha1 "github.com/lockstep-k8s/lockstep/apis/config/v1alpha1"
)

// TurnOnRule turns a rule on. As a dialect it stays on.
func (l *Links) TurnOnRule(name configv1alpha1.GroupingRule) {
	for i := range rules {
		if rules[i].name == name {
			l.rulesOn.Or(1 << i)
		}
	}
}

// IsRuleOn says whether a rule is on.
func (l *Links) IsRuleOn(name configv1alpha1.GroupingRule) bool {
	for i := range rules {
		if rules[i].name == name {
			return l.rulesOn.Load()&(1<<i) != 0
		}
	}
	return false
}

// ruling is what a rule says of a Pod.
type ruling struct {
	gang Key
	// minimum is how many members the Pod says are to be placed together, itself or by its owner.
	minimum int32
	// owner is that of the Pod, if the rule asks for one, and awaited says that it is not known
	// yet whether the Pod is a member of a gang.
	owner   OwnerKey
	awaited bool
}

// ruledBy is what the first rule says that fits a Pod, false if it is no member by rule. Then the
// ruling may say that this is not known yet.
func (l *Links) ruledBy(pod *corev1.Pod) (ruling, bool) {
	r, name := l.ruleOf(pod)
	if r == nil {
		return ruling{}, false
	}
	by := ruling{gang: Key{Dialect: r.dialect, Namespace: pod.Namespace, Name: name}}
	if r.minimum != nil {
		by.minimum = least(r.minimum(pod))
	}
	if r.owner == nil {
		return by, true
	}
	by.owner = OwnerKey{Rule: r.name, Namespace: pod.Namespace, Name: r.owner(pod)}
	owner, known, awaited := l.Owners.of(by.owner)
	switch by.awaited = awaited; {
	case !known, owner.shape == shapeNone:
		return by, false
	case owner.shape == shapeJobs:
		by.gang.Name += "/" + pod.Labels[jobSetJob]
		by.minimum = max(1, owner.roles[pod.Labels[jobSetRole]])
	case owner.minimum > 0:
		by.minimum = owner.minimum
	}
	return by, true
}

// ruleOf is the first rule that fits a Pod, nil if none does, and the name of what it names.
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

// askedOfRules are the gangs that a Pod asks to be a member of, by the rules that are on, in the order
// in which they count.
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

// MinimumBy is how many members of its gang are to be placed together as far as a Pod says, or
// its owner; 0 if it does not say. It counts if the gang has no PodGroup.
func (l *Links) MinimumBy(pod *corev1.Pod) int32 {
	by, named := l.ruledBy(pod)
	if !named {
		return 0
	}
	if gang, _ := l.KeyOf(pod); gang != by.gang {
		return 0 // it names a group by something else, too
	}
	return by.minimum
}

// Awaits says whether it is not known yet if a Pod is a member of a gang: its owner is still to be
// seen.
func (l *Links) Awaits(pod *corev1.Pod) bool {
	by, named := l.ruledBy(pod)
	if named || !by.awaited {
		return false
	}
	_, named = l.KeyOf(pod)
	return !named
}

// MayBeOwned says whether a Pod may be a member of a gang for all that is known: it awaits its owner, and not all
// of those are seen. If they are, there is none.
func (l *Links) MayBeOwned(pod *corev1.Pod) bool {
	by, named := l.ruledBy(pod)
	return !named && by.awaited && !l.Owners.areListed(by.owner) && l.Awaits(pod)
}

// OwnersNamedBy are the owners that a Pod names, of all rules, whether or not they are on.
func OwnersNamedBy(pod *corev1.Pod) []OwnerKey {
	var owners []OwnerKey
	for i := range rules {
		if r := &rules[i]; r.owner != nil && r.owner(pod) != "" {
			owners = append(owners, OwnerKey{Rule: r.name, Namespace: pod.Namespace, Name: r.owner(pod)})
		}
	}
	return owners
}

// IsNamedByRule says whether a rule fits a Pod, whether or not it is on.
func IsNamedByRule(pod *corev1.Pod) bool {
	for i := range rules {
		if _, ok := rules[i].fits(pod); ok {
			return true
		}
	}
	return false
}
