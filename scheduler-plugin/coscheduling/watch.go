// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"context"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
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
	// begun is closed when the scheduler has begun to schedule.
	begun <-chan struct{}
	// pods is the informer of all Pods, those too that have ended.
	pods cache.SharedIndexInformer
	// members are set by watchMembers.
	members *members
	// implicit has Pods be members by what is known of Lockstep's PodGroups.
	implicit *grouping
}

// start watches. It returns as soon as it is known which dialects are served; nothing is planned
// before all that existed is known.
func (w *watcher) start(groups schedulingclient.Interface, others []*foreign, rules []configv1alpha1.GroupingRule) error {
	membersSeen, err := w.watchMembers()
	if err != nil {
		return err
	}
	podGroups, err := w.showGroups(groups)
	if err != nil {
		return err
	}
	lacking := make(chan struct{})
	groupsSeen := within(w.ctx, podGroups.seen, lacking, w.setListed)
	seen := []cache.DoneChecker{membersSeen, groupsSeen}
	inquire(others)
	for _, other := range others {
		ofOther, err := other.start()
		if err != nil {
			return err
		}
		seen = append(seen, ofOther...)
	}
	ofRules, err := w.implicit.start(rules, groupsSeen)
	if err != nil {
		return err
	}
	seen = append(seen, ofRules...)
	go func() {
		if w.awaitCRD(groups, lacking) {
			podGroups.RunWithContext(w.ctx)
		}
	}()
	go func() {
		if !cache.WaitFor(w.ctx, "", seen...) {
			return
		}
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

// setListed learns whether the PodGroups are known that there were. An ordinary Pod may have been denied victims as
// they were not.
func (w *watcher) setListed(listed bool) {
	w.gangs.SetUnlisted(dialect.Own, !listed)
	if listed {
		w.sched.RetryAll(klog.FromContext(w.ctx))
	}
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

// inquire asks the API server what it serves, all at once: one kind that it can't list costs no more
// time than another.
func inquire(others []*foreign) {
	var asked sync.WaitGroup
	for _, other := range others {
		asked.Go(other.inquire)
	}
	asked.Wait()
}

// bounded is done when it is decided that nobody waits any more.
type bounded struct {
	cache.DoneChecker
	done chan struct{}
}

// Done implements cache.DoneChecker.
func (b bounded) Done() <-chan struct{} { return b.done }

// inTime is done when seen is, or after answerTimeout: objects of a kind that was just taken away, or
// can't be listed, are never seen, and that must not keep all gangs from being placed. Is is told when they are
// seen, and before that if they are not seen in time.
func inTime(ctx context.Context, seen cache.DoneChecker, is func(seen bool)) cache.DoneChecker {
	return within(ctx, seen, nil, is)
}

// within is the same, and is done at once if objects are lacking: they are seen later, if ever.
func within(ctx context.Context, seen cache.DoneChecker, lacking <-chan struct{}, is func(seen bool)) cache.DoneChecker {
	b := bounded{seen, make(chan struct{})}
	go func() {
		select {
		case <-seen.Done():
			is(true)
			close(b.done)
			return
		case <-lacking:
		case <-time.After(answerTimeout):
			klog.FromContext(ctx).Error(nil, "Objects can't be listed: what depends on them waits, all others are scheduled", "what", seen.Name(), "after", answerTimeout)
			is(false)
		case <-ctx.Done():
			return
		}
		close(b.done)
		select {
		case <-seen.Done():
			is(true)
		case <-ctx.Done():
		}
	}()
	return b
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
	switch isLoose := w.gangs.IsLoose(key); {
	case isLoose && !wasLoose:
		w.queue.LetIn(w.ctx, key)
	case wasLoose && !isLoose:
		for _, pod := range w.gangs.IdleMembers(key) {
			w.queue.Settle(w.ctx, pod)
		}
	}
}

// awaitCRD waits until the API server serves PodGroups, and says so once if it
// has to. Then it closes lacking: all others are scheduled meanwhile. It returns false when the
// scheduler ends.
func (w *watcher) awaitCRD(groups schedulingclient.Interface, lacking chan<- struct{}) bool {
	logger := klog.FromContext(w.ctx)
	told := false
	err := wait.PollUntilContextCancel(w.ctx, discoveryPeriod, true, func(context.Context) (bool, error) {
		served, err := servesPodGroups(groups)
		if served {
			if told {
				w.gangs.SetUnlisted(dialect.Own, true)
				w.gangs.SetUnread(dialect.Own, "", "")
				logger.Info("PodGroups are served now")
			}
			return true, nil
		}
		if err != nil {
			// It may serve them all the same. Until that is known, gangs wait.
			logger.Error(err, "Finding out whether the API server serves PodGroups failed, trying again", "period", discoveryPeriod)
			return false, nil
		}
		if !told {
			told = true
			w.gangs.SetUnread(dialect.Own, "", dialect.Own.NotServed())
			w.gangs.SetUnlisted(dialect.Own, false)
			close(lacking)
			logger.Error(nil, "The API server does not serve PodGroups: install the CustomResourceDefinition podgroups.scheduling.lockstep.dev. "+
				"Until then Pods with the label "+schedulingv1alpha1.LabelPodGroup+" wait; all others are scheduled")
		}
		return false, nil
	})
	return err == nil
}

func servesPodGroups(groups schedulingclient.Interface) (bool, error) {
	list, err := groups.Discovery().ServerResourcesForGroupVersion(schedulingv1alpha1.SchemeGroupVersion.String())
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("asking for the resources of %s: %w", schedulingv1alpha1.SchemeGroupVersion, err)
	}
	for i := range list.APIResources {
		if list.APIResources[i].Name == schedulingv1alpha1.PodGroupPlural {
			return true, nil
		}
	}
	return false, nil
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
