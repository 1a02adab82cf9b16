// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
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
	// resource is the one that the API server serves, once that is known. Another version may take its
	// place when the API server changes.
	resource schema.GroupVersionResource
	// read is the Group of an object.
	read func(*unstructured.Unstructured) *dialect.Group

	// inquiry asks whether the API server serves the groups.
	inquiry inquiry
	// state says whether the dialect is on, and why; nil until that is known.
	state atomic.Pointer[status.Dialect]
}

// say tells whether the dialect is on, and why.
func (f *foreign) say(state status.Dialect) {
	state.Group, state.Mode = f.dialect.Kind().Group, string(f.mode)
	klog.FromContext(f.ctx).Info("Dialect of PodGroups", "group", state.Group, "on", state.On, "mode", state.Mode, "reason", state.Reason)
	f.state.Store(&state)
}

// tell tells whether the groups can be read: by a line, by the metric and, if they can't, to the Pods that wait for one.
func (f *foreign) tell(found service) {
	on := f.links.AreOn(f.dialect) || found == served
	f.say(status.Dialect{On: on, Served: found == served, Reason: f.reason(found)})
	if found != served {
		f.gangs.SetUnread(f.dialect, "", f.unread(found))
	}
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
		f.inquiry.ctx, f.inquiry.ask, f.inquiry.tell = f.ctx, f.ask, f.tell
		f.inquiry.isListed = func() (bool, error) { return isListed(f.discovery, f.dialect.Resources()...) }
		f.inquiry.run()
	}
}

// start begins to watch if the dialect is on, once it is asked whether it is served. What it returns
// is done when all groups are told that there were at the start. If the API server serves the groups
// and can't list them, the dialect is on, and its Pods wait.
func (f *foreign) start() ([]cache.DoneChecker, error) {
	logger := klog.FromContext(f.ctx)
	if off := f.whyOff(); off != "" {
		f.say(status.Dialect{Reason: off})
		return nil, nil
	}
	found, err := f.inquiry.conclude()
	if err != nil {
		return nil, err
	}
	if f.inquiry.unanswered != nil {
		logger.Error(f.inquiry.unanswered, "PodGroups of another dialect can't be listed. If the API server serves them, their Pods wait; all others are scheduled", "group", f.dialect.Kind().Group)
	}
	if found == served || found == broken || f.mode == configv1alpha1.DialectOn {
		f.links.TurnOn(f.dialect)
	}
	f.inquiry.say(found)
	if found == served {
		seen, err := f.watch()
		return []cache.DoneChecker{seen}, err
	}
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

// unread is why none of the groups can be seen, for who waits for one.
func (f *foreign) unread(found service) string {
	switch of := f.dialect.Of(); found {
	case notServed:
		return f.dialect.NotServed()
	case forbidden:
		return "lockstep-scheduler may not list PodGroups" + of + ": the ClusterRole that allows it is not bound"
	default:
		return "the API server can't list PodGroups" + of + " for now"
	}
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
			if f.resource != resource {
				klog.FromContext(ctx).V(2).Info("Version of PodGroups", "group", resource.Group, "version", resource.Version)
				f.resource = resource
			}
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
	for _, object := range f.pods.GetStore().List() {
		pod, ok := object.(*corev1.Pod)
		if !ok {
			continue
		}
		if key, named := f.gangs.KeyOf(pod); named && key.Dialect == f.dialect {
			f.members.setAgain(pod)
			f.queue.Settle(f.ctx, pod)
		}
	}
}

// watch watches the groups.
func (f *foreign) watch() (cache.DoneChecker, error) {
	return f.inquiry.follow(f.showGroups, f.setListed)
}

// showGroups makes an informer that has the gangs learn of the groups, and knows of some already.
func (f *foreign) showGroups(known []any) (show, error) {
	groups := f.namespaces.Informer(&unstructured.Unstructured{}, func(namespace string) cache.ListerWatcher {
		return informing.ListWatch(f.client, inNamespace{f, namespace}, informing.WantCurrent)
	})
	if err := errors.Join(groups.SetTransform(reduced), groups.GetIndexer().Replace(known, "")); err != nil {
		return show{}, fmt.Errorf("watching %s: %w", f.dialect.CRD(), err)
	}
	seen, err := groups.AddEventHandler(f.hearing(f.dialect, handlers(f.setGroup, f.updateGroup, f.deleteGroup)))
	if err != nil {
		return show{}, fmt.Errorf("watching %s: %w", f.dialect.CRD(), err)
	}
	return show{groups, seen.HasSyncedChecker()}, nil
}

// setListed learns that all groups are known that there were. An ordinary Pod may have been denied victims as they
// were not.
func (f *foreign) setListed() {
	f.gangs.SetUnread(f.dialect, "", "")
	f.sched.RetryAll(klog.FromContext(f.ctx))
}

// inNamespace lists and watches the groups of a namespace, in the version that the API server serves
// by then.
type inNamespace struct {
	*foreign
	namespace string
}

// List implements informing.Lister.
func (n inNamespace) List(ctx context.Context, options metav1.ListOptions) (*unstructured.UnstructuredList, error) {
	return n.client.Resource(n.resource).Namespace(n.namespace).List(ctx, options)
}

// Watch implements informing.Lister.
func (n inNamespace) Watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	return n.client.Resource(n.resource).Namespace(n.namespace).Watch(ctx, options)
}

// reduced is the transform of the informer of foreign groups.
func reduced(object any) (any, error) {
	if group, ok := object.(*unstructured.Unstructured); ok {
		dialect.Reduce(group)
	}
	return object, nil
}

func (f *foreign) setGroup(object *unstructured.Unstructured) {
	f.learn(f.read(object))
}

func (f *foreign) updateGroup(before, after *unstructured.Unstructured) {
	if before.GetUID() != after.GetUID() { // the watch was broken
		f.deleteGroup(before)
	}
	f.setGroup(after)
}

func (f *foreign) deleteGroup(object *unstructured.Unstructured) {
	group := f.read(object)
	f.unlearn(group.Key, group.UID)
}
