// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	configv1alpha1 "github.com/lockstep-k8s/lockstep/apis/config/v1alpha1"
	"github.com/lockstep-k8s/lockstep/internal/informing"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/status"
)

// volcanoProfile is the name of the scheduler that the Pods of most groups of Volcano's name.
const volcanoProfile = "volcano"

// foreigners is what the PodGroups of all other dialects share.
type foreigners struct {
	*watcher
	client    dynamic.Interface
	discovery discovery.DiscoveryInterface
	links     *dialect.Links
	// serves says whether Pods with this scheduler name are placed by this scheduler.
	serves func(schedulerName string) bool
	// setApart says whether the API server has a subresource for the status of a dialect's groups.
	setApart func(d dialect.Dialect, apart bool)
}

// foreign are the PodGroups of another dialect, which the API server may not serve.
type foreign struct {
	*foreigners
	dialect dialect.Dialect
	mode    configv1alpha1.DialectMode
	// profile is the name of a scheduler without which mode Auto is Off; empty for none.
	profile string
	// off is why the dialect is off whatever its mode says, empty if it is not.
	off string
	// resource is the one that the API server serves, once that is known.
	resource schema.GroupVersionResource
	// read is the Group of an object.
	read func(*unstructured.Unstructured) *dialect.Group

	// inquiry asks whether the API server serves the groups.
	inquiry inquiry
	// state says whether the dialect is on, and why; nil until that is known.
	state atomic.Pointer[status.Dialect]
	// isGone says that the groups were watched, and the API server serves them no more.
	isGone atomic.Bool
}

// say tells whether the dialect is on, and why.
func (f *foreign) say(on bool, reason string) {
	group := f.dialect.Kind().Group
	klog.FromContext(f.ctx).Info("Dialect of PodGroups", "group", group, "on", on, "mode", f.mode, "reason", reason)
	f.state.Store(&status.Dialect{Group: group, Mode: string(f.mode), On: on, Reason: reason})
}

// statesOf are the dialects of which it is known whether they are on.
func statesOf(foreigns []*foreign) []status.Dialect {
	var states []status.Dialect
	for _, f := range foreigns {
		if state := f.state.Load(); state != nil {
			states = append(states, *state)
		}
	}
	return states
}

// whyOff is why the dialect is off whatever the API server serves, empty if it is not.
func (f *foreign) whyOff() string {
	switch {
	case f.mode == configv1alpha1.DialectOff:
		return "its mode is Off"
	case f.off != "":
		return f.off
	case f.mode == configv1alpha1.DialectAuto && f.profile != "" && !f.serves(f.profile):
		return "no profile is named " + f.profile
	default:
		return ""
	}
}

// inquire asks whether the dialect is served, for as long as the API server may take.
func (f *foreign) inquire() {
	if f.whyOff() == "" {
		f.inquiry = inquiry{ctx: f.ctx, ask: f.ask, isListed: func() (bool, error) { return isListed(f.discovery, f.dialect.Resources()...) }}
		f.inquiry.run()
	}
}

// start begins to watch if the dialect is on, once it is asked whether it is served. What it returns
// is done when all groups are told that there were at the start. If the API server serves the groups
// and can't list them, the dialect is on, and its Pods wait.
func (f *foreign) start() ([]cache.DoneChecker, error) {
	logger := klog.FromContext(f.ctx)
	if off := f.whyOff(); off != "" {
		f.say(false, off)
		return nil, nil
	}
	found, err := f.inquiry.conclude()
	if err != nil {
		return nil, err
	}
	if f.inquiry.unanswered != nil {
		logger.Error(f.inquiry.unanswered, "PodGroups of another dialect can't be listed. If the API server serves them, their Pods wait; all others are scheduled", "group", f.dialect.Kind().Group)
	}
	on := found == served || found == broken || f.mode == configv1alpha1.DialectOn
	f.say(on, f.reason(found))
	if on {
		f.links.TurnOn(f.dialect)
	}
	if found == served {
		return f.watch()
	}
	f.gangs.SetServed(f.dialect, false)
	go f.startLater(found)
	return nil, nil
}

// reason says in words what was found.
func (f *foreign) reason(found service) string {
	if found == notServed && f.dialect == dialect.Native {
		return "the API server does not serve it: " + f.dialect.Lack()
	}
	return string(found)
}

// ask asks once whether the groups can be read. Of several versions the best one counts that is
// served.
func (f *foreign) ask(ctx context.Context) (service, error) {
	for _, resource := range f.dialect.Resources() {
		found, err := canList(ctx, f.client, resource, f.watcher.namespaces)
		switch {
		case err != nil:
			return "", err
		case found == served:
			f.resource = resource
			return served, f.askApart(f.dialect)
		case found != notServed:
			return found, nil
		}
	}
	return notServed, nil
}

// askApart asks whether the status of a dialect's groups is a subresource, if it may be none.
func (f *foreigners) askApart(d dialect.Dialect) error {
	if !d.MayLackStatus() {
		return nil
	}
	version := d.Kind().GroupVersion().String()
	list, err := f.discovery.ServerResourcesForGroupVersion(version)
	if err != nil {
		return fmt.Errorf("asking for the resources of %s: %w", version, err)
	}
	name := d.Resource().Resource + "/status"
	f.setApart(d, slices.ContainsFunc(list.APIResources, func(r metav1.APIResource) bool { return r.Name == name }))
	return nil
}

// startLater begins to watch once the dialect can be read, and has it be on from then.
func (f *foreign) startLater(found service) {
	if !f.inquiry.untilServed(found) {
		return
	}
	f.say(true, string(served))
	if !f.links.AreOn(f.dialect) {
		f.links.TurnOn(f.dialect)
		f.takeOver()
	}
	if _, err := f.watch(); err != nil {
		klog.FromContext(f.ctx).Error(err, "Watching PodGroups failed", "group", f.dialect.Kind().Group)
	}
}

// takeOver has the Pods be members that have come as ordinary ones.
func (f *foreign) takeOver() {
	pods := f.handle.SharedInformerFactory().Core().V1().Pods().Informer().GetStore()
	for _, object := range pods.List() {
		pod, ok := object.(*corev1.Pod)
		if !ok {
			continue
		}
		if key, named := f.gangs.KeyOf(pod); named && key.Dialect == f.dialect {
			f.members.showAgain(pods, pod)
			f.queue.TakeOut(klog.FromContext(f.ctx), pod)
		}
	}
}

// watch watches the groups, and those of their Pods that have ended.
func (f *foreign) watch() ([]cache.DoneChecker, error) {
	var seen []cache.DoneChecker
	for _, label := range f.dialect.Labels() {
		ended, err := f.watchEnded(f.members, label)
		if err != nil {
			return nil, err
		}
		seen = append(seen, ended)
	}
	if len(f.dialect.Labels()) == 0 {
		ended, err := f.watchAllEnded(f.members)
		if err != nil {
			return nil, err
		}
		seen = append(seen, ended)
	}
	groups := f.namespaces.Dynamic(f.client, f.resource, nil)
	if err := groups.SetTransform(reduced); err != nil {
		return nil, fmt.Errorf("watching %s: %w", f.dialect.CRD(), err)
	}
	gone := func() bool { f.tellGone(); return false }
	if err := informing.Quietly(groups, gone); err != nil {
		return nil, fmt.Errorf("watching %s: %w", f.dialect.CRD(), err)
	}
	groupsSeen, err := groups.AddEventHandler(handlers(f.setGroup, f.updateGroup, f.deleteGroup))
	if err != nil {
		return nil, fmt.Errorf("watching %s: %w", f.dialect.CRD(), err)
	}
	go func() {
		// A gang is planned when its group is seen. Then its Pods are to be known.
		if cache.WaitFor(f.ctx, "", seen...) {
			groups.RunWithContext(f.ctx)
		}
	}()
	return append(seen, inTime(f.ctx, groupsSeen.HasSyncedChecker(), func(in bool) { f.gangs.SetServed(f.dialect, in) })), nil
}

// tellGone tells once that the API server serves the groups no more that were watched, and when it serves them
// again. The dialect stays on, and its Pods wait.
func (f *foreign) tellGone() {
	if !f.isGone.CompareAndSwap(false, true) {
		return
	}
	f.gangs.SetServed(f.dialect, false)
	f.say(true, f.reason(notServed))
	back := inquiry{ctx: f.ctx, ask: func(ctx context.Context) (service, error) {
		return canList(ctx, f.client, f.resource, f.watcher.namespaces)
	}}
	go func() {
		if !back.untilServed(notServed) {
			return
		}
		f.gangs.SetServed(f.dialect, true)
		f.say(true, string(served))
		f.isGone.Store(false)
	}()
}

// reduced is the transform of the informer of foreign groups.
func reduced(object any) (any, error) {
	if group, ok := object.(*unstructured.Unstructured); ok {
		dialect.Reduce(group)
	}
	return object, nil
}

func (f *foreign) setGroup(object *unstructured.Unstructured) {
	group := f.read(object)
	was := f.gangs.IsLoose(group.Key)
	f.gangs.SetGroup(group)
	f.hand(group.Key, was)
}

// hand hands the Pods of a gang that wait to whoever places them now, if that was somebody else
// before: kube-scheduler's queue if the gang is loose.
func (f *foreign) hand(key dialect.Key, wasLoose bool) {
	logger := klog.FromContext(f.ctx)
	switch isLoose := f.gangs.IsLoose(key); {
	case isLoose && !wasLoose:
		f.queue.LetIn(f.ctx, key)
	case wasLoose && !isLoose:
		for _, pod := range f.gangs.IdleMembers(key) {
			f.queue.TakeOut(logger, pod)
		}
	}
}

func (f *foreign) updateGroup(before, after *unstructured.Unstructured) {
	if before.GetUID() != after.GetUID() { // the watch was broken
		f.deleteGroup(before)
	}
	f.setGroup(after)
}

func (f *foreign) deleteGroup(object *unstructured.Unstructured) {
	group := f.read(object)
	was := f.gangs.IsLoose(group.Key)
	f.gangs.DeleteGroup(group.Key, group.UID)
	f.hand(group.Key, was)
}
