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

// watcher passes changes of PodGroups, and of Pods that name one, on to Gangs.
type watcher struct {
	ctx    context.Context
	sched  *kube.Scheduler
	handle framework.Framework
	gangs  *gangs.Gangs
	queue  *kube.PodQueue
	// groups is the client for Lockstep's PodGroups, others the client for all other kinds.
	groups schedulingclient.Interface
	others dynamic.Interface
	links  *dialect.Links
	// serves reports whether this scheduler places Pods with a scheduler name.
	serves func(schedulerName string) bool
	// namespaces are where PodGroups are read.
	namespaces informing.Namespaces
	// end ends the program for a reason, so that it is restarted.
	end func(reason string)
	// begun is closed when the scheduler has begun to schedule.
	begun <-chan struct{}
	// pods is the informer of all Pods, including ended ones.
	pods cache.SharedIndexInformer
	// implicit makes Pods members of implicit gangs.
	implicit *grouping
}

// start starts the watches. It returns as soon as the served kinds of PodGroups are known. Gangs are planned only once
// all existing objects are known.
func (w *watcher) start(kinds []*kind, rules []configv1alpha1.GroupingRule) error {
	podsSeen, err := w.pods.AddEventHandler(w.podHandler())
	if err != nil {
		return fmt.Errorf("watching Pods: %w", err)
	}
	seen, err := w.implicit.start(rules) // before the first PodGroup is handled
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
		// A scheduler that does not lead must not write conditions, or evict.
		select {
		case <-w.begun:
		case <-w.ctx.Done():
			return
		}
		w.gangs.SetSynced()
		// An ordinary Pod may have found no victims while their gangs were unknown.
		w.sched.RetryAll(klog.FromContext(w.ctx))
	}()
	return nil
}

// inquire asks the API server about all kinds at once, so that one kind without an answer does not delay the others.
func inquire(ctx context.Context, kinds []*kind) {
	var asked sync.WaitGroup
	for _, k := range kinds {
		if inquiry := k.inquire(); inquiry != nil {
			asked.Go(func() { inquiry.begin(ctx) })
		}
	}
	asked.Wait()
}

// awaitLists waits for the initial lists of all PodGroup APIs, for at most answerTimeout. Gangs of an API that is not
// listed by then go on waiting, and all others are planned. awaitLists returns false if ctx ends.
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

// setPod passes a new or changed Pod on to Gangs.
func (w *watcher) setPod(pod *corev1.Pod) {
	w.gangs.SetPod(pod)
	if key, named := w.gangs.KeyOf(pod); named && w.gangs.IsLoose(key) {
		w.queue.Settle(w.ctx, pod) // the queue may have refused the Pod just before its gang became loose
	}
}

// inStore returns the Pod as it is in a store, nil if the Pod is gone.
func inStore(store cache.Store, pod *corev1.Pod) *corev1.Pod {
	object, _, err := store.Get(pod)
	if now, ok := object.(*corev1.Pod); err == nil && ok && now.UID == pod.UID {
		return now
	}
	return nil
}

// handlers returns a handler that calls `add` for a new object, `update` with a changed object before and after, and
// `remove` for a deleted one.
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
