// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"sync"

	corev1 "k8s.io/api/core/v1"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/podgroup"
)

// implicitGroups holds the scheduling policy (Gang or GangPerJob, for instance) of each existing PodGroup that has
// spec.memberLabels, by the PodGroup's key. Safe for concurrent use.
type implicitGroups struct {
	policies sync.Map
}

// policy returns the policy of a group, false if no group with the key exists.
func (g *implicitGroups) policy(key Key) (schedulingv1alpha1.SchedulingPolicy, bool) {
	value, exists := g.policies.Load(key)
	policy, _ := value.(schedulingv1alpha1.SchedulingPolicy)
	return policy, exists
}

// implicitKey returns the key of the PodGroup that lockstep-controller makes for a Pod's owner, whether or not that
// PodGroup exists yet. The result is false if there will be none: the namespace does not ask for such PodGroups, and
// none is left from earlier.
func (l *Links) implicitKey(pod *corev1.Pod) (Key, bool) {
	first, perJob := podgroup.ImplicitOf(pod)
	if first == nil {
		return Key{}, false
	}
	key := Key{Dialect: Own, Namespace: pod.Namespace, Name: first.Name(pod)}
	policy, exists := l.implicit.policy(key)
	if perJob != nil && policy == schedulingv1alpha1.PolicyGangPerJob {
		key.Name = perJob.Name(pod)
	}
	return key, exists || l.asks(pod.Namespace)
}

// asks reports whether a namespace asks for PodGroups for the owners of its Pods.
func (l *Links) asks(namespace string) bool {
	return l.Asks != nil && l.Asks(namespace)
}

// SetImplicit records a PodGroup that was created or changed. It reports whether Pods may belong to another group now.
func (l *Links) SetImplicit(group *Group) (moves bool) {
	if len(group.MemberLabels) == 0 {
		return l.DeleteImplicit(group.Key) // it may have replaced a PodGroup with member labels
	}
	before, existed := l.implicit.policy(group.Key)
	l.implicit.policies.Store(group.Key, group.Policy)
	return l.moves(group.Key.Namespace, existed, before, group.Policy)
}

// DeleteImplicit records that a PodGroup was deleted. It reports whether Pods may belong to another group now.
func (l *Links) DeleteImplicit(key Key) (moves bool) {
	before, existed := l.implicit.policy(key)
	l.implicit.policies.Delete(key)
	return existed && l.moves(key.Namespace, false, before, "")
}

// moves reports whether Pods may belong to another group after a change of an implicit PodGroup: it was created or
// deleted, or its policy has changed.
func (l *Links) moves(namespace string, existed bool, before, after schedulingv1alpha1.SchedulingPolicy) bool {
	const perJob = schedulingv1alpha1.PolicyGangPerJob
	return (before == perJob) != (after == perJob) || !existed && !l.asks(namespace)
}
