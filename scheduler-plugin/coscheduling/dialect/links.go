// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"slices"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
)

// Links read which gang a Pod names, in the dialects that are on. Own always is. A dialect that
// was turned on stays on: what Pods say is never taken for nothing again, so no member of a gang
// is placed by itself because somebody has taken a kind away. They are safe for concurrent use;
// nil has Own alone.
type Links struct {
	on Set
	// rulesOn are the rules that are on.
	rulesOn atomic.Uint32
	// Asks reports whether a namespace asks for PodGroups for the owners of its Pods, or whether that is not known
	// yet. Nil: none does. It is set before a rule is turned on.
	Asks func(namespace string) bool
	// implicit are the PodGroups that were made for these.
	implicit implicitGroups
}

// TurnOn turns a dialect on.
func (l *Links) TurnOn(d Dialect) {
	l.on.Set(d, true)
}

// AreOn says whether a dialect is on.
func (l *Links) AreOn(d Dialect) bool {
	return d == Own || l != nil && l.on.Has(d)
}

// Names are the API groups of the dialects that are on and have a kind, in the order in which they
// count, and of those that are off.
func (l *Links) Names() (on, off []string) {
	for d := range dialects {
		switch {
		case d == Rules:
		case l.AreOn(d):
			on = append(on, d.Kind().Group)
		default:
			off = append(off, d.Kind().Group)
		}
	}
	return on, off
}

// KeyOf is the key of the gang that a Pod names. The bool is false if it names none. If it names
// several, the first dialect counts, in the order of their constants. Whether the Pod is a member
// depends on the group, see Group.HasMember; whether this scheduler places it, on its
// schedulerName.
func (l *Links) KeyOf(pod *corev1.Pod) (Key, bool) {
	for d := range dialects {
		if key, named := l.keyIn(d, pod); named {
			return key, true
		}
	}
	if by, named := l.ruledBy(pod); named {
		return by.gang, true
	}
	return Key{Namespace: pod.Namespace}, false
}

// keyIn is the key of the gang of a dialect that a Pod names, false if it names none.
func (l *Links) keyIn(d Dialect, pod *corev1.Pod) (Key, bool) {
	if !l.AreOn(d) {
		return Key{}, false
	}
	name := d.groupNamedBy(pod)
	return Key{Dialect: d, Namespace: pod.Namespace, Name: name}, name != ""
}

// Ignored are the keys of the gangs that a Pod names and whose members it is not, as another
// dialect or rule comes before theirs. Of rules those count whose words say nothing but that.
func (l *Links) Ignored(pod *corev1.Pod) []Key {
	var named []Key
	for d := range dialects {
		if key, is := l.keyIn(d, pod); is {
			named = append(named, key)
		}
	}
	for _, key := range l.askedOfRules(pod) {
		if !slices.Contains(named, key) {
			named = append(named, key)
		}
	}
	if len(named) < 2 {
		return nil
	}
	return named[1:]
}

// groupNamedBy is the name of the group of the dialect that a Pod names, empty if it names none.
func (d Dialect) groupNamedBy(pod *corev1.Pod) string {
	if d == Native {
		return nativeLink(pod)
	}
	for _, label := range words[d].labels {
		if name := pod.Labels[label]; name != "" {
			return name
		}
	}
	for _, annotation := range words[d].annotations {
		if name := pod.Annotations[annotation]; name != "" {
			return name
		}
	}
	return ""
}

// MayBeMember reports whether a Pod names a group of a dialect, which may be off and turned on later, or a rule fits it that is on.
func (l *Links) MayBeMember(pod *corev1.Pod) bool {
	for d := range dialects {
		if d.groupNamedBy(pod) != "" {
			return true
		}
	}
	fitting, _ := l.ruleOf(pod)
	return fitting != nil
}
