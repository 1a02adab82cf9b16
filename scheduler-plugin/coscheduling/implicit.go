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

// byImplicitGroup is the index of Pods that may get an implicit PodGroup; see implicitGroupOf.
const byImplicitGroup = "lockstep.implicit"

// grouping makes Pods members of implicit gangs, by rules. For some owners lockstep-controller makes the PodGroup (ADR
// 69). As the PodGroup's name can be computed from the Pod's labels, the Pod waits for it like for any PodGroup that is
// missing. Whether there is to be a PodGroup, and whether each Job of a JobSet has its own, may change; the gang of
// each Pod concerned is then determined again.
type grouping struct {
	*watcher
	// namespaces is nil if no rule is on.
	namespaces cache.SharedIndexInformer
	// listed reports that the initial list of PodGroups is complete, or that no Pod waits for the list any more.
	listed atomic.Bool
}

// start turns the rules on. The returned checkers are done when the initial lists were processed.
func (g *grouping) start(rules []configv1alpha1.GroupingRule) ([]cache.DoneChecker, error) {
	if len(rules) == 0 {
		return nil, nil
	}
	g.namespaces = g.handle.SharedInformerFactory().Core().V1().Namespaces().Informer()
	g.links.Asks = g.asks
	if err := g.pods.AddIndexers(cache.Indexers{byImplicitGroup: implicitGroupOf}); err != nil {
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

// implicitGroupOf indexes Pods by the first group that may be made for their owner, as namespace/name, and by that
// group's namespace.
func implicitGroupOf(object any) ([]string, error) {
	if pod, ok := object.(*corev1.Pod); ok {
		if first, _ := podgroup.ImplicitOf(pod); first != nil {
			return []string{pod.Namespace, cache.NewObjectName(pod.Namespace, first.Name(pod)).String()}, nil
		}
	}
	return nil, nil
}

// asks reports whether Pods of a namespace may have an implicit PodGroup. This is so if the namespace asks for such
// PodGroups, or if the namespace is not known yet. It is also so until all PodGroups are listed, because a PodGroup may
// be left from a time when the namespace asked for PodGroups.
func (g *grouping) asks(namespace string) bool {
	object, exists, err := g.namespaces.GetStore().GetByKey(namespace)
	ns, ok := object.(*corev1.Namespace)
	return err != nil || !exists || !ok || hasLabel(ns) || !g.listed.Load()
}

func hasLabel(ns *corev1.Namespace) bool {
	return ns.Labels[schedulingv1alpha1.LabelGangByOwner] == "true"
}

// conclude is called once the PodGroups are listed. Pods that waited only because they might have had an implicit
// PodGroup become ordinary Pods.
func (g *grouping) conclude() {
	if g.namespaces == nil {
		return
	}
	g.listed.Store(true)
	for _, namespace := range g.namespaces.GetStore().List() {
		if ns, ok := namespace.(*corev1.Namespace); ok && !hasLabel(ns) {
			g.settleAll(ns.Name)
		}
	}
}

// setNamespace handles a new namespace. Its Pods waited until now.
func (g *grouping) setNamespace(ns *corev1.Namespace) {
	if !hasLabel(ns) && g.listed.Load() {
		g.settleAll(ns.Name)
	}
}

// updateNamespace handles a changed namespace.
func (g *grouping) updateNamespace(before, after *corev1.Namespace) {
	if hasLabel(before) != hasLabel(after) {
		g.settleAll(after.Name)
	}
}

// setGroup handles a PodGroup that was created or changed.
func (g *grouping) setGroup(group *dialect.Group) {
	if g != nil && g.namespaces != nil && g.links.SetImplicit(group) {
		g.settleAll(cache.NewObjectName(group.Key.Namespace, group.Key.Name).String())
	}
}

// deleteGroup handles a PodGroup that was deleted.
func (g *grouping) deleteGroup(key dialect.Key) {
	if g != nil && g.namespaces != nil && g.links.DeleteImplicit(key) {
		g.settleAll(cache.NewObjectName(key.Namespace, key.Name).String())
	}
}

// settleAll finds the Pods that implicitGroupOf has indexed by a group or a namespace, and determines the gang of each
// of them anew. A Pod may now belong to another gang, or be an ordinary Pod.
func (g *grouping) settleAll(value string) {
	pods, err := g.pods.GetIndexer().ByIndex(byImplicitGroup, value)
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
