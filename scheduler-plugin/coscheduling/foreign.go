// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

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
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/kube"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/status"
)

// volcanoProfile is the name of the scheduler that the Pods of most groups of Volcano's name.
const volcanoProfile = "volcano"

// foreigners is what the PodGroups of all other dialects share.
type foreigners struct {
	*watcher
	client    dynamic.Interface
	discovery discovery.DiscoveryInterfaceWithContext
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
	// read is the Group of an object.
	read func(*unstructured.Unstructured) *dialect.Group

	// inquiry asks whether the API server serves the groups; nil if the dialect is off whatever the API server serves.
	inquiry *inquiry
	// state says whether the dialect is on, and why; nil until that is known.
	state atomic.Pointer[status.Dialect]
}

// say tells whether the dialect is on, and why.
func (f *foreign) say(state status.Dialect) {
	state.Group, state.Mode = f.dialect.Kind().Group, string(f.mode)
	klog.FromContext(f.ctx).Info("Dialect of PodGroups", "group", state.Group, "on", state.On, "mode", state.Mode, "reason", state.Reason)
	f.state.Store(&state)
}

// tell tells why the groups can't be read: by a line, by the metric and to the Pods that wait for one.
func (f *foreign) tell(found service) {
	f.say(status.Dialect{On: f.links.AreOn(f.dialect), Served: found == served, Reason: f.reason(found)})
	f.gangs.SetUnread(f.dialect, "", unread(f.dialect, found))
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

// inquire returns what is to be asked of the API server, nil if the dialect is off in any case.
func (f *foreign) inquire() *inquiry {
	if f.whyOff() == "" {
		f.inquiry = &inquiry{dialect: f.dialect, ask: f.ask, tell: f.tell, end: f.end}
	}
	return f.inquiry
}

// start turns the dialect on, and begins to watch the groups if they can be read. If they can't, their Pods wait. In mode
// Auto, a missing right to list the groups says that the dialect is off, and nothing else does: so no gang is placed in
// part because its kind was taken away before this process began.
func (f *foreign) start() ([]cache.DoneChecker, error) {
	if f.inquiry == nil {
		f.say(status.Dialect{Reason: f.whyOff()})
		return nil, nil
	}
	found := f.inquiry.found
	if found != forbidden || f.mode == configv1alpha1.DialectOn {
		f.links.TurnOn(f.dialect)
	}
	go f.inquiry.attend(f.ctx)
	f.tell(found)
	if found != served {
		return nil, nil
	}
	return f.watch()
}

// reason says in words what was found.
func (f *foreign) reason(found service) string {
	if found == notServed && f.dialect == dialect.Native {
		return "the API server does not serve it: " + f.dialect.Lack()
	}
	return string(found)
}

// ask asks once whether the groups can be read. Of several versions the best one counts that is served.
func (f *foreign) ask(ctx context.Context) (service, schema.GroupVersionResource, error) {
	for _, resource := range f.dialect.Resources() {
		found, err := canList(ctx, f.namespaces, resource, func(ctx context.Context, namespace string, limit metav1.ListOptions) error {
			_, err := f.client.Resource(resource).Namespace(namespace).List(ctx, limit)
			return err
		})
		switch {
		case err != nil:
			return "", resource, err
		case found == served:
			return served, resource, f.askApart(f.dialect)
		case found != notServed:
			return found, resource, nil
		}
	}
	return notServed, f.dialect.Resource(), nil
}

// askApart asks whether the status of a dialect's groups is a subresource, if it may be none.
func (f *foreigners) askApart(d dialect.Dialect) error {
	if !d.MayLackStatus() {
		return nil
	}
	ctx, cancel := context.WithTimeout(f.ctx, kube.RequestTime)
	defer cancel()
	version := d.Kind().GroupVersion().String()
	list, err := f.discovery.ServerResourcesForGroupVersionWithContext(ctx, version)
	if err != nil {
		return fmt.Errorf("asking for the resources of %s: %w", version, err)
	}
	name := d.Resource().Resource + "/status"
	f.setApart(d, slices.ContainsFunc(list.APIResources, func(r metav1.APIResource) bool { return r.Name == name }))
	return nil
}

// watch watches the groups.
func (f *foreign) watch() ([]cache.DoneChecker, error) {
	groups, err := f.showGroups()
	if err != nil {
		return nil, err
	}
	go groups.RunWithContext(f.ctx)
	return []cache.DoneChecker{groups.seen}, nil
}

// showGroups makes an informer that has the gangs learn of the groups.
func (f *foreign) showGroups() (show, error) {
	groups := f.namespaces.Dynamic(f.client, f.inquiry.resource, informing.WantCurrent)
	if err := errors.Join(groups.SetTransform(reduced), f.inquiry.watch(groups)); err != nil {
		return show{}, fmt.Errorf("watching %s: %w", f.dialect.CRD(), err)
	}
	seen, err := groups.AddEventHandler(f.hearing(f.dialect, handlers(f.setGroup, f.updateGroup, f.deleteGroup)))
	if err != nil {
		return show{}, fmt.Errorf("watching %s: %w", f.dialect.CRD(), err)
	}
	return show{groups, seen.HasSyncedChecker()}, nil
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
