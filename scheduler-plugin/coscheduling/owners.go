// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	configv1alpha1 "github.com/lockstep-k8s/lockstep/apis/config/v1alpha1"
	"github.com/lockstep-k8s/lockstep/internal/informing"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/kube"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/news"
)

const (
	// byOwner is the index of Pods by the owners that they name.
	byOwner = "lockstep.owner"
	// byNamespace is the index of Pods that name owners, by namespace.
	byNamespace = "lockstep.owned"
	// sweepPeriod is how often it is looked whether Pods are left of owners that are gone.
	sweepPeriod = time.Minute
	// awaitedPeriod is how often Pods are looked for whose owner is not seen. Those that wait for
	// it for longer than awaitedGrace are told, no more than awaitedTold at a time, and of a namespace
	// awaitedToldOfOne.
	awaitedPeriod, awaitedGrace   = 5 * time.Second, 5 * time.Second
	awaitedTold, awaitedToldOfOne = 100, 10
	// awaitedTime is how long one of them may take.
	awaitedTime = 5 * time.Second
)

// grouping has Pods be members of gangs that have no PodGroup, as rules say. Some rules ask the
// owner of a Pod. Until that is seen, the Pod waits: it is neither a member nor an ordinary Pod.
type grouping struct {
	*watcher
	client    dynamic.Interface
	discovery discovery.DiscoveryInterface
	links     *dialect.Links
	// living and ended hold the Pods that live, and those that have ended and may be members.
	living, ended cache.SharedIndexInformer
	namespaces    cache.SharedIndexInformer

	mu sync.Mutex
	// objects are the informers of owners.
	objects map[configv1alpha1.GroupingRule]ownersOfRule
	// gone are the owners whose objects are gone, of which Pods may be left.
	gone map[dialect.OwnerKey]bool

	// inquiries ask whether the API server serves the owners for which a rule asks.
	inquiries map[configv1alpha1.GroupingRule]*inquiry
}

// ownersOfRule are the owners for which a rule asks.
type ownersOfRule struct {
	dialect.OwnerKind
	informer cache.SharedIndexInformer
}

// start turns the rules on. What it returns is done when all is told that there was at the start.
func (g *grouping) start(rules []configv1alpha1.GroupingRule) ([]cache.DoneChecker, error) {
	if len(rules) == 0 {
		return nil, nil
	}
	g.objects, g.gone = map[configv1alpha1.GroupingRule]ownersOfRule{}, map[dialect.OwnerKey]bool{}
	g.living = g.handle.SharedInformerFactory().Core().V1().Pods().Informer()
	g.namespaces = g.handle.SharedInformerFactory().Core().V1().Namespaces().Informer()
	g.links.Owners = &dialect.Owners{Allows: g.allows}
	seen, err := g.watchPods(rules)
	if err != nil {
		return nil, err
	}
	kinds := dialect.OwnerKinds()
	for _, rule := range rules {
		i := slices.IndexFunc(kinds, func(kind dialect.OwnerKind) bool { return kind.Rule == rule })
		if i < 0 {
			g.links.TurnOnRule(rule)
			klog.FromContext(g.ctx).Info("Rule for gangs without a PodGroup", "rule", rule, "on", true)
			continue
		}
		ofRule, err := g.startOwners(kinds[i])
		if err != nil {
			return nil, err
		}
		seen = append(seen, ofRule...)
	}
	go wait.UntilWithContext(g.ctx, g.sweep, sweepPeriod)
	go g.tellAwaited()
	return seen, nil
}

// watchPods indexes the Pods that live, and watches the namespaces, and those Pods that have ended.
func (g *grouping) watchPods(rules []configv1alpha1.GroupingRule) ([]cache.DoneChecker, error) {
	if err := g.living.AddIndexers(cache.Indexers{byOwner: ownersOf, byNamespace: ownedIn}); err != nil {
		return nil, fmt.Errorf("indexing Pods: %w", err)
	}
	ended, err := g.watchAllEnded(g.members)
	if err != nil {
		return nil, err
	}
	g.ended = g.allEnded
	if err := g.ended.AddIndexers(cache.Indexers{byOwner: ownersOf}); err != nil {
		return nil, fmt.Errorf("indexing Pods that have ended: %w", err)
	}
	namespaces, err := g.namespaces.AddEventHandler(handlers(g.setNamespace, g.updateNamespace, func(*corev1.Namespace) {}))
	if err != nil {
		return nil, fmt.Errorf("watching namespaces: %w", err)
	}
	return []cache.DoneChecker{ended, namespaces.HasSyncedChecker()}, nil
}

// ownersOf is the index of Pods.
func ownersOf(object any) ([]string, error) {
	var names []string
	if pod, ok := object.(*corev1.Pod); ok {
		for _, owner := range dialect.OwnersNamedBy(pod) {
			names = append(names, owner.String())
		}
	}
	return names, nil
}

// ownedIn is the index of Pods that name owners.
func ownedIn(object any) ([]string, error) {
	if pod, ok := object.(*corev1.Pod); ok && len(dialect.OwnersNamedBy(pod)) > 0 {
		return []string{pod.Namespace}, nil
	}
	return nil, nil
}

// allows says whether owners of a namespace may make gangs, and whether that is known.
func (g *grouping) allows(namespace string) (allowed, known bool) {
	object, exists, err := g.namespaces.GetStore().GetByKey(namespace)
	ns, ok := object.(*corev1.Namespace)
	if err != nil || !exists || !ok {
		return false, false
	}
	return isAllowed(ns), true
}

func isAllowed(ns *corev1.Namespace) bool {
	return ns.Labels[dialect.LabelGangByOwner] == "true"
}

// inquire asks whether the owners can be listed for which the rules ask, for as long as the API
// server may take. All are asked for at once.
func (g *grouping) inquire(rules []configv1alpha1.GroupingRule) {
	g.inquiries = map[configv1alpha1.GroupingRule]*inquiry{}
	var asked sync.WaitGroup
	for _, kind := range dialect.OwnerKinds() {
		if !slices.Contains(rules, kind.Rule) {
			continue
		}
		q := &inquiry{
			ctx: g.ctx,
			ask: func(ctx context.Context) (service, error) {
				return canList(ctx, g.client, kind.Resource, g.watcher.namespaces)
			},
			isListed: func() (bool, error) { return isListed(g.discovery, kind.Resource) },
			tell:     func(found service) { g.tell(kind.Rule, found) },
		}
		g.inquiries[kind.Rule] = q
		asked.Go(q.run)
	}
	asked.Wait()
}

// startOwners turns on a rule that asks owners, once the API server lets them be listed; or at once,
// if it serves them and can't list them: then their Pods wait.
func (g *grouping) startOwners(kind dialect.OwnerKind) ([]cache.DoneChecker, error) {
	asked := g.inquiries[kind.Rule]
	found, err := asked.conclude()
	if err != nil {
		return nil, err
	}
	if asked.unanswered != nil {
		klog.FromContext(g.ctx).Error(asked.unanswered, "Owners of Pods can't be listed. If the API server serves them, their Pods wait; all others are scheduled", "rule", kind.Rule)
	}
	if found == served || found == broken {
		g.links.TurnOnRule(kind.Rule)
	}
	asked.say(found)
	if found == served {
		seen, err := g.watchOwners(kind)
		return []cache.DoneChecker{seen}, err
	}
	go g.startLater(kind, found)
	return nil, nil
}

// tell tells whether the owners can be read for which a rule asks. While they can't, it is not known of Pods that
// await one whether there is one.
func (g *grouping) tell(rule configv1alpha1.GroupingRule, found service) {
	on := g.links.IsRuleOn(rule) || found == served
	klog.FromContext(g.ctx).Info("Rule for gangs without a PodGroup", "rule", rule, "on", on, "reason", string(found))
	if found != served {
		g.links.Owners.SetListed(rule, false)
	}
}

// startLater turns a rule on once its owners can be listed. Pods that have come before are members
// from then on.
func (g *grouping) startLater(kind dialect.OwnerKind, found service) {
	if !g.inquiries[kind.Rule].untilServed(found) {
		return
	}
	g.links.TurnOnRule(kind.Rule)
	for _, object := range g.living.GetStore().List() {
		g.settle(object)
	}
	if _, err := g.watchOwners(kind); err != nil {
		klog.FromContext(g.ctx).Error(err, "Watching owners of Pods failed", "rule", kind.Rule)
	}
}

// watchOwners watches the objects of a kind.
func (g *grouping) watchOwners(kind dialect.OwnerKind) (cache.DoneChecker, error) {
	return g.inquiries[kind.Rule].follow(func(known []any) (show, error) { return g.showOwners(kind, known) },
		func() { g.links.Owners.SetListed(kind.Rule, true) })
}

// showOwners makes an informer that has the rules learn of the objects of a kind, and knows of some already.
func (g *grouping) showOwners(kind dialect.OwnerKind, known []any) (show, error) {
	informer := g.watcher.namespaces.Dynamic(g.client, kind.Resource, informing.WantCurrent)
	if err := errors.Join(informer.GetIndexer().Replace(known, ""), informer.SetTransform(func(object any) (any, error) {
		if owner, ok := object.(*unstructured.Unstructured); ok {
			kind.Reduce(owner)
		}
		return object, nil
	})); err != nil {
		return show{}, fmt.Errorf("watching %s: %w", kind.Resource.GroupResource(), err)
	}
	of := ownersOfRule{kind, informer}
	set := func(object *unstructured.Unstructured) { g.setOwner(of, object) }
	seen, err := informer.AddEventHandler(informing.Hearing{
		Refused: func(namespace string) { g.links.Owners.SetRefused(kind.Rule, namespace, true) },
		Listed: func(namespace, _ string) {
			if g.links.Owners.SetRefused(kind.Rule, namespace, false) {
				g.sched.RetryAll(klog.FromContext(g.ctx)) // as when all are listed
			}
		},
		ResourceEventHandler: handlers(set,
			func(before, after *unstructured.Unstructured) {
				if of.KeyOf(before) != of.KeyOf(after) { // the watch was broken
					g.deleteOwner(of, before)
				}
				set(after)
			},
			func(object *unstructured.Unstructured) { g.deleteOwner(of, object) })})
	if err != nil {
		return show{}, fmt.Errorf("watching %s: %w", kind.Resource.GroupResource(), err)
	}
	g.mu.Lock()
	g.objects[kind.Rule] = of
	g.mu.Unlock()
	return show{informer, seen.HasSyncedChecker()}, nil
}

// setOwner learns of an owner, new or changed.
func (g *grouping) setOwner(of ownersOfRule, object *unstructured.Unstructured) {
	key := of.KeyOf(object)
	g.mu.Lock()
	delete(g.gone, key)
	g.mu.Unlock()
	if g.links.Owners.Set(key, of.Read(object)) {
		g.settleAll(g.living.GetIndexer().ByIndex(byOwner, key.String()))
		g.showEnded(key)
	}
}

// deleteOwner learns that an owner is gone. Its Pods stay members, as long as there are any.
func (g *grouping) deleteOwner(of ownersOfRule, object *unstructured.Unstructured) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.gone[of.KeyOf(object)] = true
}

// sweep forgets owners that are gone, of which no Pods are left.
func (g *grouping) sweep(context.Context) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for key := range g.gone {
		living, err := g.living.GetIndexer().ByIndex(byOwner, key.String())
		if err != nil || len(living) > 0 {
			continue
		}
		if ended, err := g.ended.GetIndexer().ByIndex(byOwner, key.String()); err == nil && len(ended) == 0 {
			g.links.Owners.Forget(key)
			delete(g.gone, key)
		}
	}
}

// setNamespace learns of a namespace that is new.
func (g *grouping) setNamespace(ns *corev1.Namespace) {
	if isAllowed(ns) {
		for _, of := range g.allObjects() {
			for _, object := range informing.In(of.informer, ns.Name) {
				if owner, ok := object.(*unstructured.Unstructured); ok {
					g.setOwner(of, owner)
				}
			}
		}
	}
	g.settleAll(g.living.GetIndexer().ByIndex(byNamespace, ns.Name))
}

// updateNamespace learns of a namespace that has changed.
func (g *grouping) updateNamespace(before, after *corev1.Namespace) {
	if isAllowed(before) != isAllowed(after) {
		g.setNamespace(after)
	}
}

func (g *grouping) allObjects() []ownersOfRule {
	g.mu.Lock()
	defer g.mu.Unlock()
	var all []ownersOfRule
	for _, of := range g.objects {
		all = append(all, of)
	}
	return all
}

// settleAll settles the Pods of an index.
func (g *grouping) settleAll(objects []any, err error) {
	if err != nil {
		klog.FromContext(g.ctx).Error(err, "Looking for the Pods of an owner failed")
	}
	for _, object := range objects {
		g.settle(object)
	}
}

// settle has a Pod be what it is by what is known now of its owner: a member of a gang, one that
// waits for the owner to be seen, or an ordinary one.
func (g *grouping) settle(object any) {
	pod, ok := object.(*corev1.Pod)
	if !ok || len(dialect.OwnersNamedBy(pod)) == 0 {
		return
	}
	if key, named := g.gangs.KeyOf(pod); named {
		if key.Dialect == dialect.Rules {
			g.members.showAgain(g.living.GetStore(), pod)
		}
		g.queue.TakeOut(klog.FromContext(g.ctx), pod)
		return
	}
	g.members.showAgain(g.living.GetStore(), pod) // an owner before this one may have made it a member
	g.queue.TakeOut(klog.FromContext(g.ctx), pod) // if it waits
	g.queue.PutBack(g.ctx, pod)                   // if it does not
}

// showEnded shows the Pods of an owner that have ended.
func (g *grouping) showEnded(key dialect.OwnerKey) {
	objects, err := g.ended.GetIndexer().ByIndex(byOwner, key.String())
	if err != nil {
		return // the index exists
	}
	for _, object := range objects {
		if pod, ok := object.(*corev1.Pod); ok {
			g.members.showEndedAgain(g.ended.GetStore(), pod)
		}
	}
}

// tellAwaited tells Pods whose owner is not seen that they wait for it.
func (g *grouping) tellAwaited() {
	select {
	case <-g.begun:
	case <-g.ctx.Done():
		return
	}
	wait.UntilWithContext(g.ctx, func(ctx context.Context) {
		told, of := 0, make(map[string]int)
		for _, pod := range g.queue.Members() {
			if told == awaitedTold || of[pod.Namespace] == awaitedToldOfOne || !g.links.Awaits(pod) || news.IsMarked(pod, ReasonNoOwner) ||
				time.Since(pod.CreationTimestamp.Time).Abs() < awaitedGrace { // the clocks may differ
				continue
			}
			told++
			of[pod.Namespace]++
			condition := &corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: ReasonNoOwner,
				Message: "the Pod names an owner that has not been seen, and that decides whether it is a member of a gang"}
			if err := g.markAwaiting(ctx, pod, condition); err != nil {
				of[pod.Namespace] = awaitedToldOfOne // A webhook may be slow, or refuse.
				klog.FromContext(ctx).V(2).Info("Telling a Pod that it waits for its owner failed, trying again", "pod", klog.KObj(pod), "reason", err.Error())
			}
		}
	}, awaitedPeriod)
}

// markAwaiting writes a condition of a Pod that waits for its owner.
func (g *grouping) markAwaiting(ctx context.Context, pod *corev1.Pod, condition *corev1.PodCondition) error {
	ctx, cancel := context.WithTimeout(ctx, awaitedTime)
	defer cancel()
	return kube.WriteWait(ctx, g.handle.ClientSet(), pod, condition, pod.Status.NominatedNodeName)
}

// ReasonNoOwner: the owner of the Pod, by which its gang is known, is not seen.
const ReasonNoOwner = "OwnerNotSeen"
