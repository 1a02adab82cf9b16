// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"fmt"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	configv1alpha1 "github.com/lockstep-k8s/lockstep/apis/config/v1alpha1"
	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/podgroup"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/kube"
)

const (
	// byImplicitGroup is the index of Pods by the PodGroup that lockstep-controller makes for their owner.
	byImplicitGroup = "lockstep.implicit"
	// byNamespace is the index by namespace of the Pods for whose owners it may make one.
	byNamespace = "lockstep.owned"
)

// grouping has Pods be members of gangs for which no tool writes a PodGroup, as rules say. For the Pods of some owners
// lockstep-controller makes the PodGroup (ADR 69). Which one follows from the Pod's labels, so the Pod waits for it as
// for any PodGroup that is missing. What may change is whether there is to be one, and whether the Jobs of a JobSet have
// one each: then the Pods concerned are settled anew.
type grouping struct {
	*watcher
	// namespaces is nil if no rule is on.
	namespaces cache.SharedIndexInformer
	// listed says that the PodGroups are known that there were at the start, or that nobody waits for them any more.
	listed atomic.Bool
}

// start turns the rules on. What it returns is done when all is told that there was at the start.
func (g *grouping) start(rules []configv1alpha1.GroupingRule) ([]cache.DoneChecker, error) {
	if len(rules) == 0 {
		return nil, nil
	}
	g.namespaces = g.handle.SharedInformerFactory().Core().V1().Namespaces().Informer()
	g.links.Asks = g.asks
	if err := g.pods.AddIndexers(cache.Indexers{byImplicitGroup: implicitGroupOf, byNamespace: ownedIn}); err != nil {
		return nil, fmt.Errorf("indexing Pods: %w", err)
	}
	namespaces, err := g.namespaces.AddEventHandler(handlers(g.setNamespace, g.updateNamespace, func(*corev1.Namespace) {}))
	if err != nil {
		return nil, fmt.Errorf("watching namespaces: %w", err)
	}
	for _, rule := range rules {
		g.links.TurnOnRule(rule)
		klog.FromContext(g.ctx).Info("Rule for gangs without a PodGroup", "rule", rule, "on", true)
	}
	return []cache.DoneChecker{namespaces.HasSyncedChecker()}, nil
}

// implicitGroupOf is the index of Pods by the first group that may be made for their owner.
func implicitGroupOf(object any) ([]string, error) {
	if pod, ok := object.(*corev1.Pod); ok {
		if first, _ := podgroup.ImplicitOf(pod); first != nil {
			return []string{cache.NewObjectName(pod.Namespace, first.Name(pod)).String()}, nil
		}
	}
	return nil, nil
}

// ownedIn is the index of Pods for whose owners a group may be made.
func ownedIn(object any) ([]string, error) {
	if pod, ok := object.(*corev1.Pod); ok {
		if first, _ := podgroup.ImplicitOf(pod); first != nil {
			return []string{pod.Namespace}, nil
		}
	}
	return nil, nil
}

// asks reports whether a namespace asks for PodGroups for the owners of its Pods, or whether that is not known yet. A
// namespace that does not ask may have some from when it did: until they are listed, its Pods wait.
func (g *grouping) asks(namespace string) bool {
	object, exists, err := g.namespaces.GetStore().GetByKey(namespace)
	ns, ok := object.(*corev1.Namespace)
	return err != nil || !exists || !ok || hasLabel(ns) || !g.listed.Load()
}

func hasLabel(ns *corev1.Namespace) bool {
	return ns.Labels[schedulingv1alpha1.LabelGangByOwner] == "true"
}

// conclude has Pods be ordinary ones of which it is known, as the PodGroups are listed, that no group is made for their owners.
func (g *grouping) conclude() {
	if g.namespaces == nil {
		return
	}
	g.listed.Store(true)
	for _, namespace := range g.namespaces.GetStore().List() {
		if ns, ok := namespace.(*corev1.Namespace); ok && !hasLabel(ns) {
			g.settleAll(byNamespace, ns.Name)
		}
	}
}

// setNamespace learns of a namespace that is new. Until now its Pods have waited.
func (g *grouping) setNamespace(ns *corev1.Namespace) {
	if !hasLabel(ns) && g.listed.Load() {
		g.settleAll(byNamespace, ns.Name)
	}
}

// updateNamespace learns of a namespace that has changed.
func (g *grouping) updateNamespace(before, after *corev1.Namespace) {
	if hasLabel(before) != hasLabel(after) {
		g.settleAll(byNamespace, after.Name)
	}
}

// setGroup learns of a PodGroup that exists now.
func (g *grouping) setGroup(group *dialect.Group) {
	if g != nil && g.namespaces != nil && g.links.SetImplicit(group) {
		g.settleAll(byImplicitGroup, cache.NewObjectName(group.Key.Namespace, group.Key.Name).String())
	}
}

// deleteGroup learns that a PodGroup is gone.
func (g *grouping) deleteGroup(key dialect.Key) {
	if g != nil && g.namespaces != nil && g.links.DeleteImplicit(key) {
		g.settleAll(byImplicitGroup, cache.NewObjectName(key.Namespace, key.Name).String())
	}
}

// settleAll has Pods of an index be what they are by what is known now: members of this gang or of another one, or
// ordinary Pods.
func (g *grouping) settleAll(index, value string) {
	pods, err := g.pods.GetIndexer().ByIndex(index, value)
	if err != nil {
		klog.FromContext(g.ctx).Error(err, "Looking for the Pods of an owner failed")
	}
	for _, object := range pods {
		pod, ok := object.(*corev1.Pod)
		if !ok {
			continue
		}
		g.gangs.SetPodAgain(pod)
		if !kube.HasEnded(pod) {
			g.queue.Settle(g.ctx, pod)
		}
	}
}
