// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package gangs

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
)

// The status of PodGroups of other APIs counts Pods by phase, as readers of those APIs expect. This scheduler writes
// that status only if some of the Pods are its own or, without Pods, if the configuration claims such groups.

// census counts the gang's Pods. member is the first Pod by name, nil if there is none. ours reports whether this
// scheduler writes the group's status.
func census(g *gang) (pods dialect.Census, member *corev1.Pod, ours bool) {
	ours = len(g.members) == 0 && g.rules.Claims != nil && g.rules.Claims(g.key.Dialect)
	for _, m := range g.members {
		pods.Add(m.pod)
		ours = ours || g.rules.Serves(m.pod.Spec.SchedulerName)
		if member == nil || compareNames(m.pod.Name, member.Name) < 0 {
			member = m.pod
		}
	}
	return pods, member, ours
}

// source is where PodGroups of a PodGroup API are: in one namespace, or in all namespaces if namespace is "".
type source struct {
	dialect   dialect.Dialect
	namespace string
}

// SetUnread sets the reason why PodGroups of a PodGroup API can't be read in a namespace: the API server does not serve
// them, or does not allow to list them. An empty namespace means all namespaces. An empty reason means that PodGroups
// can be read. For other APIs than Lockstep's own it also means that all existing PodGroups have been seen. Pods that
// wait for a PodGroup get the reason; that their PodGroup does not exist is reported only when PodGroups can be read.
// SetUnread returns whether the reason has changed.
func (t *Gangs) SetUnread(d dialect.Dialect, namespace, why string) (isNews bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	where := source{d, namespace}
	isNews = t.unread[where] != why
	if t.unread[where] = why; why == "" {
		delete(t.unread, where)
	}
	now := t.config.Now()
	for key, g := range t.gangs {
		if key.Dialect != d || namespace != "" && key.Namespace != namespace {
			continue
		}
		g.unseen = isUnseen(t, key)
		if g.unseen && !t.synced && g.group != nil && g.group.IsImplied() {
			g.loseGroup(now) // the group was implied before it was known that PodGroups can't be read
		}
		if imply(g, now) {
			t.changed(g)
		}
		if isNews && why == "" && namespace != "" && t.synced {
			t.begin(g) // as at the start: its PodGroup is seen only now
		}
		if g.group != nil || !isNews {
			continue
		}
		if t.unreadIn(key) == "" {
			g.groupless = now
		}
		if t.synced {
			t.due.report(key, 0)
		}
	}
	return isNews
}

// unreadIn returns the reason why PodGroups in the gang's namespace can't be read, "" if they can. The caller holds the
// lock.
func (t *Gangs) unreadIn(key dialect.Key) string {
	if why := t.unread[source{dialect: key.Dialect}]; why != "" {
		return why
	}
	return t.unread[source{key.Dialect, key.Namespace}]
}

// isUnseen reports whether the gang may have a PodGroup that the scheduler can't read. If the PodGroup API is off or
// not served, the gang has no PodGroup. The caller holds the lock.
func isUnseen(t *Gangs, key dialect.Key) bool {
	why := t.unreadIn(key)
	return why != "" && why != key.Dialect.NotServed() && t.config.Links.AreOn(key.Dialect)
}

// isWhole reports whether the scheduler has read every PodGroup that the gang could have, so that a missing one really
// is missing. It is also true for Lockstep's own kind if the API server does not serve that kind. The caller holds the
// lock.
func (t *Gangs) isWhole(key dialect.Key) bool {
	if key.Dialect == dialect.Own {
		return !t.unlisted[key.Dialect] && t.unread[source{key.Dialect, key.Namespace}] == ""
	}
	return !t.unlisted[key.Dialect] && t.unreadIn(key) == ""
}

// whyUnread returns, for messages, the reason why the gang may have a PodGroup that the scheduler does not know. It is
// "" if all PodGroups are known. The caller holds the lock.
func whyUnread(t *Gangs, key dialect.Key) string {
	if why := t.unreadIn(key); why != "" || !t.unlisted[key.Dialect] {
		return why
	}
	return "lockstep-scheduler can't list PodGroups" + key.Dialect.Of() + ": its log says so"
}

// MayBeMember reports whether a Pod may be a member of a gang whose PodGroup can't be listed. The priority and the
// minimum of such a gang are not known, so the Pod must not be preempted.
func (t *Gangs) MayBeMember(pod *corev1.Pod) bool {
	key, named := t.KeyOf(pod)
	if !named {
		return false
	}
	t.mu.RLock()
	defer t.mu.RUnlock()
	g, m := t.memberIn(key, pod)
	switch {
	case g != nil && g.group == nil && t.config.Now().Before(g.awaited):
		return true
	case g != nil && g.group != nil && m != nil && !m.isStranger():
		return false
	default:
		return !t.isWhole(key)
	}
}
