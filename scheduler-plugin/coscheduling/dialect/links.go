// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"slices"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
)

// Links finds out which gang a Pod names, in the PodGroup APIs that are on. Lockstep's own API is always on. An API
// that was turned on stays on, even if its kind is removed from the cluster: otherwise members of its gangs would be
// placed one by one. Safe for concurrent use; a nil *Links has only Lockstep's own API.
type Links struct {
	// on has a bit for each API that is on.
	on atomic.Uint32
	// rulesOn are the rules that are on.
	rulesOn atomic.Uint32
	// Asks reports whether a namespace asks for PodGroups for the owners of its Pods. The result is also true while
	// that is not known yet. Nil: no namespace asks. Asks is set before a rule is turned on.
	Asks func(namespace string) bool
	// implicit are the PodGroups that were made for such owners.
	implicit implicitGroups
}

// TurnOn turns a PodGroup API on.
func (l *Links) TurnOn(d Dialect) {
	l.on.Or(1 << d)
}

// AreOn reports whether a PodGroup API is on.
func (l *Links) AreOn(d Dialect) bool {
	return d == Own || l != nil && l.on.Load()&(1<<d) != 0
}

// Names returns the API groups that are on and have a kind, in order of precedence, and the API groups that are off.
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

// KeyOf returns the key of the gang that a Pod names, false if the Pod names none. If the Pod names several gangs, the
// first API in the order of the constants counts. The Pod need not be a member: the group decides on that
// (Group.HasMember). The Pod's schedulerName decides whether this scheduler places it.
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

// keyIn returns the key of the gang that a Pod names in one API, false if none.
func (l *Links) keyIn(d Dialect, pod *corev1.Pod) (Key, bool) {
	if !l.AreOn(d) {
		return Key{}, false
	}
	name := d.groupNamedBy(pod)
	return Key{Dialect: d, Namespace: pod.Namespace, Name: name}, name != ""
}

// Ignored returns the gangs that a Pod names beside its own. A Pod belongs only to the gang of the PodGroup API or rule
// that comes first. The result has gangs by a rule only if the Pod's labels serve no other purpose than to name a gang.
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

// groupNamedBy returns the name of the group of this API that a Pod names, "" if none.
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

// MayBeMember reports whether a Pod names a group of any API, or fits a rule that is on. APIs that are off count, too,
// because they may be turned on later.
func (l *Links) MayBeMember(pod *corev1.Pod) bool {
	for d := range dialects {
		if d.groupNamedBy(pod) != "" {
			return true
		}
	}
	fitting, _ := l.ruleOf(pod)
	return fitting != nil
}
