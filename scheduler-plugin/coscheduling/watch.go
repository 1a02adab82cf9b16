// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"context"
	"fmt"
	corev1 "k8s.io/api/core/v1"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	configv1alpha1 "github.com/lockstep-k8s/lockstep/apis/config/v1alpha1"
	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	schedulingclient "github.com/lockstep-k8s/lockstep/client/clientset/versioned"
	"github.com/lockstep-k8s/lockstep/internal/informing"
	"github.com/lockstep-k8s/lockstep/internal/tombstone"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/gangs"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/kube"
)

// watcher tells package gangs what happens to PodGroups and to Pods that name one.
type watcher struct {
	ctx    context.Context
	sched  *kube.Scheduler
	handle framework.Framework
	gangs  *gangs.Gangs
	queue  *kube.Queue
	// namespaces are those whose groups are served.
	namespaces informing.Namespaces
	// end ends the program, for a reason, to be started again.
	end func(reason string)
	// begun is closed when the scheduler has begun to schedule.
	begun <-chan struct{}
	// pods is the informer of all Pods, those too that have ended.
	pods cache.SharedIndexInformer
	// implicit has Pods be members by what is known of Lockstep's PodGroups.
	implicit *grouping
}

// start watches. It returns as soon as it is known which kinds of PodGroups are served; nothing is planned
// before all that existed is known.
func (w *watcher) start(groups schedulingclient.Interface, others []*foreign, rules []configv1alpha1.GroupingRule) error {
	podsSeen, err := w.pods.AddEventHandler(w.podHandler())
	if err != nil {
		return fmt.Errorf("watching Pods: %w", err)
	}
	seen, err := w.implicit.start(rules) // before a PodGroup is shown
	if err != nil {
		return err
	}
	own := w.inquireOwn(groups)
	inquire(w.ctx, own, others)
	lists := make(map[dialect.Dialect][]cache.DoneChecker)
	if lists[dialect.Own], err = w.startOwn(groups, own); err != nil {
		return err
	}
	for _, other := range others {
		if lists[other.dialect], err = other.start(); err != nil {
			return err
		}
	}
	go func() {
		if !cache.WaitFor(w.ctx, "", append(seen, podsSeen.HasSyncedChecker())...) || !w.awaitLists(lists) {
			return
		}
		w.implicit.conclude()
		// Whoever does not lead must not write conditions, nor evict.
		select {
		case <-w.begun:
		case <-w.ctx.Done():
			return
		}
		w.gangs.SetSynced()
		// An ordinary Pod may have been denied victims that nobody knew.
		w.sched.RetryAll(klog.FromContext(w.ctx))
	}()
	return nil
}

// inquire asks the API server what it serves, all at once: one kind that it can't list costs no more time than another.
func inquire(ctx context.Context, own *inquiry, others []*foreign) {
	var asked sync.WaitGroup
	asked.Go(func() { own.begin(ctx) })
	for _, other := range others {
		if inquiry := other.inquire(); inquiry != nil {
			asked.Go(func() { inquiry.begin(ctx) })
		}
	}
	asked.Wait()
}

// awaitLists waits until all is known that was listed at the start, of each dialect, for answerTimeout at most. The gangs of
// a dialect that has not been listed by then wait until it is, and all others have their turns. It returns false if ctx ends.
func (w *watcher) awaitLists(lists map[dialect.Dialect][]cache.DoneChecker) bool {
	inTime, cancel := context.WithTimeout(w.ctx, answerTimeout)
	defer cancel()
	for d, seen := range lists {
		if cache.WaitFor(inTime, "", seen...) || w.ctx.Err() != nil {
			continue
		}
		klog.FromContext(w.ctx).Error(nil, "PodGroups can't be listed: their gangs wait, all others are scheduled", "group", d.Kind().Group, "after", answerTimeout)
		w.gangs.SetUnlisted(d, true)
		go func() {
			if cache.WaitFor(w.ctx, "", seen...) {
				w.gangs.SetUnlisted(d, false)
				w.sched.RetryAll(klog.FromContext(w.ctx)) // as when all are listed
			}
		}()
	}
	return w.ctx.Err() == nil
}

// inquireOwn returns what is to be asked of the API server about Lockstep's PodGroups.
func (w *watcher) inquireOwn(groups schedulingclient.Interface) *inquiry {
	resource := dialect.Own.Resource()
	return &inquiry{dialect: dialect.Own, end: w.end, tell: w.tellOwn,
		ask: func(ctx context.Context) (service, schema.GroupVersionResource, error) {
			found, err := canList(ctx, w.namespaces, resource, func(ctx context.Context, namespace string, limit metav1.ListOptions) error {
				_, err := groups.SchedulingV1alpha1().PodGroups(namespace).List(ctx, limit)
				return err
			})
			return found, resource, err
		}}
}

// tellOwn tells why Lockstep's PodGroups can't be read.
func (w *watcher) tellOwn(found service) {
	why := unread(dialect.Own, found)
	w.gangs.SetUnread(dialect.Own, "", why)
	klog.FromContext(w.ctx).Error(nil, "Pods with the label "+schedulingv1alpha1.LabelPodGroup+" wait, all others are scheduled", "reason", why)
}

// unread is why none of the groups of a dialect can be seen, for the Pods that wait for one. It is empty if they can.
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

// startOwn begins to watch Lockstep's PodGroups if they can be read.
func (w *watcher) startOwn(groups schedulingclient.Interface, own *inquiry) ([]cache.DoneChecker, error) {
	go own.attend(w.ctx)
	if own.found != served {
		w.tellOwn(own.found)
		w.gangs.SetUnlisted(dialect.Own, own.found != notServed) // there may be some
		return nil, nil
	}
	podGroups, err := w.showGroups(groups)
	if err != nil {
		return nil, err
	}
	if err := own.watch(podGroups); err != nil {
		return nil, fmt.Errorf("watching PodGroups: %w", err)
	}
	go podGroups.RunWithContext(w.ctx)
	return []cache.DoneChecker{podGroups.seen}, nil
}

// show is an informer that was not started, and what is done when its handler was told of all objects that there were.
type show struct {
	cache.SharedIndexInformer
	seen cache.DoneChecker
}

// showGroups makes an informer that has the gangs learn of Lockstep's PodGroups.
func (w *watcher) showGroups(groups schedulingclient.Interface) (show, error) {
	podGroups := w.namespaces.Informer(&schedulingv1alpha1.PodGroup{}, func(namespace string) cache.ListerWatcher {
		return informing.ListWatch(groups, groups.SchedulingV1alpha1().PodGroups(namespace), nil)
	})
	if err := podGroups.SetTransform(informing.DropManagedFields); err != nil {
		return show{}, fmt.Errorf("watching PodGroups: %w", err)
	}
	seen, err := podGroups.AddEventHandler(w.hearing(dialect.Own, handlers(w.setGroup, w.updateGroup, w.deleteGroup)))
	if err != nil {
		return show{}, fmt.Errorf("watching PodGroups: %w", err)
	}
	return show{podGroups, seen.HasSyncedChecker()}, nil
}

// hearing is a handler of the groups of a dialect that has the gangs learn, too, in which namespaces they may not be read.
func (w *watcher) hearing(d dialect.Dialect, handler cache.ResourceEventHandler) informing.Hearing {
	return informing.Hearing{ResourceEventHandler: handler,
		Refused: func(namespace string) {
			w.gangs.SetUnread(d, namespace, "lockstep-scheduler may not list PodGroups"+d.Of()+" in this namespace: the role that allows it is not bound there")
		},
		Listed: func(namespace, _ string) {
			if w.gangs.SetUnread(d, namespace, "") {
				w.sched.RetryAll(klog.FromContext(w.ctx)) // as when all are listed
			}
		},
	}
}

// setGroup learns of a PodGroup that is new.
func (w *watcher) setGroup(object *schedulingv1alpha1.PodGroup) {
	group := dialect.FromOwn(object)
	w.implicit.setGroup(group)
	w.learn(group)
}

// updateGroup learns of a PodGroup that has changed.
func (w *watcher) updateGroup(_, after *schedulingv1alpha1.PodGroup) {
	w.setGroup(after)
}

// deleteGroup learns that a PodGroup is gone.
func (w *watcher) deleteGroup(object *schedulingv1alpha1.PodGroup) {
	key := dialect.KeyOfOwn(object)
	w.unlearn(key, object.UID)
	w.implicit.deleteGroup(key)
}

// learn has the gangs know a group, new or changed, of whatever dialect.
func (w *watcher) learn(group *dialect.Group) {
	was := w.gangs.IsLoose(group.Key)
	w.gangs.SetGroup(group)
	w.hand(group.Key, was)
}

// unlearn has the gangs know that a group is gone.
func (w *watcher) unlearn(key dialect.Key, uid types.UID) {
	was := w.gangs.IsLoose(key)
	w.gangs.DeleteGroup(key, uid)
	w.hand(key, was)
}

// hand hands the Pods of a gang that wait to whoever places them now, if that was somebody else
// before: kube-scheduler's queue if the gang is loose.
func (w *watcher) hand(key dialect.Key, wasLoose bool) {
	if w.gangs.IsLoose(key) == wasLoose {
		return
	}
	for _, pod := range w.gangs.Pods(key) {
		w.queue.Settle(w.ctx, pod)
	}
}

// podHandler returns the handler of the informer of all Pods.
func (w *watcher) podHandler() cache.ResourceEventHandler {
	return handlers(w.setPod, func(before, after *corev1.Pod) {
		if before.UID != after.UID { // the watch was broken
			w.gangs.DeletePod(before)
		}
		w.setPod(after)
	}, w.gangs.DeletePod)
}

// setPod learns of a Pod that is new or has changed.
func (w *watcher) setPod(pod *corev1.Pod) {
	w.gangs.SetPod(pod)
	if key, named := w.gangs.KeyOf(pod); named && w.gangs.IsLoose(key) {
		w.queue.Settle(w.ctx, pod) // the queue may have kept it out just before its gang came to be loose
	}
}

// inStore returns a Pod as a store has it, nil if the Pod is gone.
func inStore(store cache.Store, pod *corev1.Pod) *corev1.Pod {
	object, _, err := store.Get(pod)
	if now, ok := object.(*corev1.Pod); err == nil && ok && now.UID == pod.UID {
		return now
	}
	return nil
}

// handlers call add for what is new, update for what has changed, with what it was
// before, and remove for what is gone.
func handlers[T any](add func(T), update func(before, after T), remove func(T)) cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) {
			if t, ok := obj.(T); ok {
				add(t)
			}
		},
		UpdateFunc: func(before, after any) {
			was, ok1 := before.(T)
			is, ok2 := after.(T)
			if ok1 && ok2 {
				update(was, is)
			}
		},
		DeleteFunc: func(obj any) {
			if t, ok := tombstone.Object(obj).(T); ok {
				remove(t)
			}
		},
	}
}
