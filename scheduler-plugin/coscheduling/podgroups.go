// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	configv1alpha1 "github.com/lockstep-k8s/lockstep/apis/config/v1alpha1"
	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/internal/informing"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/status"
)

// volcanoProfile is the scheduler name of most Pods of Volcano.
const volcanoProfile = "volcano"

// kind is one kind of PodGroup. The API server may not serve it.
type kind struct {
	*watcher
	dialect dialect.Dialect
	mode    configv1alpha1.PodGroupAPIMode
	// profile is the scheduler name without which mode Auto means Off; "" for none.
	profile string
	// off is why the PodGroup API is off in any mode, "" if it is not.
	off string
	// read returns the Group of an object of the kind.
	read func(object any) *dialect.Group

	// inquiry asks whether the API server serves the groups; nil if the PodGroup API is off in any case.
	inquiry *inquiry
	// state reports whether the PodGroup API of another project is on, and why; nil until that is known.
	state atomic.Pointer[status.PodGroupAPI]
}

// kinds returns all kinds of PodGroups with their configuration, Lockstep's own first.
func (w *watcher) kinds(of configv1alpha1.PodGroupAPIs) []*kind {
	return []*kind{
		{watcher: w, dialect: dialect.Own, mode: configv1alpha1.PodGroupAPIOn, read: reading(dialect.FromOwn)},
		{watcher: w, dialect: dialect.Native, mode: of.Native.Mode, off: nativeOff(), read: reading(dialect.FromNative)},
		{watcher: w, dialect: dialect.SchedulerPlugins, mode: of.SchedulerPlugins.Mode, read: reading(dialect.FromSchedulerPlugins)},
		{watcher: w, dialect: dialect.Volcano, mode: of.Volcano.Mode, profile: volcanoProfile, read: reading(dialect.FromVolcano(of.Volcano.Tiers))},
	}
}

// reading adapts a function that reads objects of one type.
func reading[T any](from func(T) *dialect.Group) func(any) *dialect.Group {
	return func(object any) *dialect.Group {
		of, _ := object.(T) // the informer has no other type
		return from(of)
	}
}

// say reports, by the log and by the metric, whether the PodGroup API of another project is on, and why.
func (k *kind) say(state status.PodGroupAPI) {
	state.Group, state.Mode = k.dialect.Kind().Group, string(k.mode)
	klog.FromContext(k.ctx).Info("PodGroup API", "group", state.Group, "on", state.On, "mode", state.Mode, "reason", state.Reason)
	k.state.Store(&state)
}

// tell reports whether the groups can be read: by the log, by the metric and to the Pods that wait for a group.
func (k *kind) tell(found service) {
	why := unread(k.dialect, found)
	k.gangs.SetUnread(k.dialect, "", why)
	switch {
	case k.dialect != dialect.Own:
		k.say(status.PodGroupAPI{On: k.links.AreOn(k.dialect), Served: found == served, Reason: k.reason(found)})
	case why != "":
		klog.FromContext(k.ctx).Error(nil, "Pods with the label "+schedulingv1alpha1.LabelPodGroup+" wait, all others are scheduled", "reason", why)
	}
}

// statesOf returns the states of the PodGroup APIs of other projects that are known.
func statesOf(kinds []*kind) []status.PodGroupAPI {
	var states []status.PodGroupAPI
	for _, k := range kinds {
		if state := k.state.Load(); state != nil {
			states = append(states, *state)
		}
	}
	return states
}

// whyOff returns why the PodGroup API is off whatever the API server serves, "" if it is not.
func (k *kind) whyOff() string {
	switch {
	case k.mode == configv1alpha1.PodGroupAPIOff:
		return "its mode is Off"
	case k.off != "":
		return k.off
	case k.mode == configv1alpha1.PodGroupAPIAuto && k.profile != "" && !k.serves(k.profile):
		return "no profile is named " + k.profile
	default:
		return ""
	}
}

// inquire returns the inquiry for the API server, nil if the PodGroup API is off in any case.
func (k *kind) inquire() *inquiry {
	if k.whyOff() == "" {
		k.inquiry = &inquiry{dialect: k.dialect, ask: k.ask, tell: k.tell, end: k.end}
	}
	return k.inquiry
}

// start turns the PodGroup API on, and watches the groups if they can be read. If they can't, their Pods wait. In mode
// Auto, only a missing right to list the groups turns the API off. If a missing CRD did so too, members of existing
// gangs would be placed one by one.
func (k *kind) start() ([]cache.DoneChecker, error) {
	if k.inquiry == nil {
		k.say(status.PodGroupAPI{Reason: k.whyOff()})
		return nil, nil
	}
	found := k.inquiry.found
	if found != forbidden || k.mode == configv1alpha1.PodGroupAPIOn {
		k.links.TurnOn(k.dialect)
	}
	go k.inquiry.attend(k.ctx)
	k.tell(found)
	if found != served {
		k.gangs.SetUnlisted(k.dialect, k.dialect == dialect.Own && found != notServed) // there may be groups
		return nil, nil
	}
	groups, seen, err := k.informer()
	if err != nil {
		return nil, fmt.Errorf("watching %s: %w", k.dialect.CRD(), err)
	}
	go groups.RunWithContext(k.ctx)
	return []cache.DoneChecker{seen}, nil
}

// reason returns the text for an answer of the API server.
func (k *kind) reason(found service) string {
	if found == notServed && k.dialect == dialect.Native {
		return "the API server does not serve it: " + k.dialect.Lack()
	}
	return string(found)
}

// unread returns why no group of a PodGroup API can be read, "" if they can. Pods that wait for a group get this text.
func unread(d dialect.Dialect, found service) string {
	switch found {
	case served:
		return ""
	case notServed:
		return d.NotServed()
	case forbidden:
		return "lockstep-scheduler may not list PodGroups" + d.Of() + ": the ClusterRole that allows it is not bound"
	default:
		return "the API server can't list PodGroups" + d.Of() + " for now"
	}
}

// ask asks the API server once whether the groups can be read, and returns the best served version.
func (k *kind) ask(ctx context.Context) (service, schema.GroupVersionResource, error) {
	for _, resource := range k.dialect.Resources() {
		found, err := canList(ctx, k.namespaces, resource, func(ctx context.Context, namespace string, limit metav1.ListOptions) error {
			if k.dialect == dialect.Own {
				_, err := k.groups.SchedulingV1alpha1().PodGroups(namespace).List(ctx, limit)
				return err
			}
			_, err := k.others.Resource(resource).Namespace(namespace).List(ctx, limit)
			return err
		})
		if err != nil || found != notServed {
			return found, resource, err
		}
	}
	return notServed, k.dialect.Resource(), nil
}

// informer returns an informer that passes the groups on to Gangs. `seen` is done when Gangs has all listed groups.
func (k *kind) informer() (groups cache.SharedIndexInformer, seen cache.DoneChecker, err error) {
	if k.dialect == dialect.Own {
		groups = k.namespaces.Informer(&schedulingv1alpha1.PodGroup{}, func(namespace string) cache.ListerWatcher {
			return informing.ListWatch(k.groups, k.groups.SchedulingV1alpha1().PodGroups(namespace), nil)
		})
	} else {
		groups = k.namespaces.Dynamic(k.others, k.inquiry.resource, informing.WantCurrent)
	}
	registered, err := groups.AddEventHandler(k.hearing())
	if err = errors.Join(err, groups.SetTransform(reduced), k.inquiry.watch(groups)); err != nil {
		return nil, nil, err
	}
	return groups, registered.HasSyncedChecker(), nil
}

// reduced drops fields that nothing reads, before an informer stores a group.
func reduced(object any) (any, error) {
	if group, ok := object.(*unstructured.Unstructured); ok {
		dialect.Reduce(group)
		return group, nil
	}
	return informing.DropManagedFields(object)
}

// hearing returns a handler that passes groups on to Gangs, and the namespaces in which groups can't be read.
func (k *kind) hearing() informing.Hearing {
	d := k.dialect
	return informing.Hearing{ResourceEventHandler: handlers(k.set, func(_, after any) { k.set(after) }, k.delete),
		Refused: func(namespace string) {
			k.gangs.SetUnread(d, namespace, "lockstep-scheduler may not list PodGroups"+d.Of()+" in this namespace: the role that allows it is not bound there")
		},
		Listed: func(namespace, _ string) {
			if k.gangs.SetUnread(d, namespace, "") {
				k.sched.RetryAll(klog.FromContext(k.ctx)) // as when all are listed
			}
		},
	}
}

// set passes a new or changed group on to Gangs.
func (k *kind) set(object any) {
	group := k.read(object)
	k.implicit.setGroup(group)
	wasLoose := k.gangs.IsLoose(group.Key)
	k.gangs.SetGroup(group)
	k.hand(group.Key, wasLoose)
}

// delete passes the deletion of a group on to Gangs.
func (k *kind) delete(object any) {
	group := k.read(object)
	wasLoose := k.gangs.IsLoose(group.Key)
	k.gangs.DeleteGroup(group.Key, group.UID)
	k.hand(group.Key, wasLoose)
	k.implicit.deleteGroup(group.Key)
}

// hand moves the waiting Pods of a gang into kube-scheduler's queue if the gang has become loose, that is, if its Pods
// are now scheduled one by one. If the gang is no longer loose, hand moves the Pods out of that queue.
func (w *watcher) hand(key dialect.Key, wasLoose bool) {
	if w.gangs.IsLoose(key) == wasLoose {
		return
	}
	for _, pod := range w.gangs.Pods(key) {
		w.queue.Settle(w.ctx, pod)
	}
}
