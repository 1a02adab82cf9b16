// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"context"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	configv1alpha1 "github.com/lockstep-k8s/lockstep/apis/config/v1alpha1"
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
	queue  *kube.PodQueue
	// groups is the client of Lockstep's PodGroups, and others that of all other kinds.
	groups schedulingclient.Interface
	others dynamic.Interface
	links  *dialect.Links
	// serves says whether Pods with this scheduler name are placed by this scheduler.
	serves func(schedulerName string) bool
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
func (w *watcher) start(kinds []*kind, rules []configv1alpha1.GroupingRule) error {
	podsSeen, err := w.pods.AddEventHandler(w.podHandler())
	if err != nil {
		return fmt.Errorf("watching Pods: %w", err)
	}
	seen, err := w.implicit.start(rules) // before a PodGroup is shown
	if err != nil {
		return err
	}
	inquire(w.ctx, kinds)
	lists := make(map[dialect.Dialect][]cache.DoneChecker)
	for _, k := range kinds {
		if lists[k.dialect], err = k.start(); err != nil {
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
func inquire(ctx context.Context, kinds []*kind) {
	var asked sync.WaitGroup
	for _, k := range kinds {
		if inquiry := k.inquire(); inquiry != nil {
			asked.Go(func() { inquiry.begin(ctx) })
		}
	}
	asked.Wait()
}

// awaitLists waits until all is known that was listed at the start, of each dialect, for answerTimeout at most. The gangs of
// a dialect that has not been listed by then wait until it is, and all others are planned. It returns false if ctx ends.
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
