// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package gangs

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
)

// PodGroups of other dialects have their Pods counted by the phase, as those who read them
// expect it, and are told about only if some of the Pods are this scheduler's, or there are none
// and the configuration says that such groups are.

// census counts the gang's Pods. Member is the first of them by name, nil if there is none,
// schedulers are the scheduler names that they name, and ours says whether the group is this
// scheduler's to tell about.
func census(g *gang) (pods dialect.Census, member *corev1.Pod, schedulers []string, ours bool) {
	ours = len(g.members) == 0 && g.rules.Claims != nil && g.rules.Claims(g.key.Dialect)
	for _, m := range g.members {
		pods.Add(m.pod)
		if name := m.pod.Spec.SchedulerName; !slices.Contains(schedulers, name) {
			schedulers = append(schedulers, name)
		}
		ours = ours || g.rules.Serves(m.pod.Spec.SchedulerName)
		if member == nil || compareNames(m.pod.Name, member.Name) < 0 {
			member = m.pod
		}
	}
	return pods, member, schedulers, ours
}

// place is where PodGroups of a dialect are: in a namespace or, if that is empty, anywhere.
type place struct {
	dialect   dialect.Dialect
	namespace string
}

// SetUnread says why there may be PodGroups of a dialect in a namespace, or anywhere if that is empty, that can't be seen:
// the API server does not serve them, or does not let them be listed. It is empty if they can and, if not the kind of Own
// is meant, all were seen that there were. Whoever waits for one is told so, but only some time later that there is none.
// It says whether that is news.
func (t *Gangs) SetUnread(d dialect.Dialect, namespace, why string) (isNews bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	where := place{d, namespace}
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
			g.loseGroup(now) // it was made before it was known that the groups can't be seen
		}
		if imply(g, now) {
			t.changed(g)
		}
		if isNews && why == "" && namespace != "" && t.synced {
			t.begin(g) // as at the start: only now its PodGroup is seen
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

// unreadIn is why there may be PodGroups beside a gang's that can't be seen; empty if they can. The caller holds the lock.
func (t *Gangs) unreadIn(key dialect.Key) string {
	if why := t.unread[place{dialect: key.Dialect}]; why != "" {
		return why
	}
	return t.unread[place{key.Dialect, key.Namespace}]
}

// isUnseen says whether there may be PodGroups beside a gang's that can't be seen. Of a dialect that is off there is
// none that counts, and of a kind that is not served there is none. The caller holds the lock.
func isUnseen(t *Gangs, key dialect.Key) bool {
	why := t.unreadIn(key)
	return why != "" && why != key.Dialect.NotServed() && t.config.Links.AreOn(key.Dialect)
}

// isWhole says whether all PodGroups are known that a gang may have. Without the kind of Lockstep's own groups there are
// none. The caller holds the lock.
func (t *Gangs) isWhole(key dialect.Key) bool {
	if key.Dialect == dialect.Own {
		return !t.unlisted[key.Dialect] && t.unread[place{key.Dialect, key.Namespace}] == ""
	}
	return !t.unlisted[key.Dialect] && t.unreadIn(key) == ""
}

// whyUnread is why there may be PodGroups beside a gang's that are not known, for who waits for one; empty if there are
// none. The caller holds the lock.
func whyUnread(t *Gangs, key dialect.Key) string {
	if why := t.unreadIn(key); why != "" || !t.unlisted[key.Dialect] {
		return why
	}
	return "lockstep-scheduler can't list PodGroups" + key.Dialect.Of() + ": its log says so"
}

// MayBeMember says whether a Pod may be a member of a gang of which too little is known to say what it is worth: its
// PodGroup can't be listed, be it in its namespace or anywhere. It may be a member of any gang, and is left alone.
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
