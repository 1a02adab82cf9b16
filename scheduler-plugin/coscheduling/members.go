// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/internal/informing"
	"github.com/lockstep-k8s/lockstep/internal/tombstone"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/gangs"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/kube"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/podwatch"
)

// members tells the gangs of the Pods that name a group. Package podwatch makes one
// history of them out of the scheduler's own watch, which leaves out those that have ended,
// and a watch of those.
type members struct {
	*gangs.Gangs
	client kubernetes.Interface
	join   *podwatch.Join
	// missing finds out what has become of those that are missing.
	missing *missing
}

var _ podwatch.Gangs = &members{}

func newMembers(all *gangs.Gangs, client kubernetes.Interface, begun <-chan struct{}) *members {
	m := &members{Gangs: all, client: client}
	m.join = podwatch.New(m, all.KeyOf)
	m.missing = newMissing(client, m.join, begun)
	return m
}

// watchMembers has the gangs told of the Pods that name a group. It returns at once. What
// it returns is done when all is told that there was at the start.
func (w *watcher) watchMembers() (cache.DoneChecker, error) {
	m := newMembers(w.gangs, w.handle.ClientSet(), w.begun)
	w.members = m
	var err error
	w.livingSeen, err = w.handle.SharedInformerFactory().Core().V1().Pods().Informer().AddEventHandler(m.living())
	if err != nil {
		return nil, fmt.Errorf("watching Pods: %w", err)
	}
	endedSeen, err := w.watchEnded(m, schedulingv1alpha1.LabelPodGroup)
	if err != nil {
		return nil, err
	}
	go m.missing.run(w.ctx)
	return endedSeen, nil
}

// watchEnded watches the Pods that name a group by a label and have ended.
func (w *watcher) watchEnded(m *members, label string) (cache.DoneChecker, error) {
	ended := w.endedInformer(m, label)
	if err := ended.SetTransform(informing.DropManagedFields); err != nil {
		return nil, fmt.Errorf("watching Pods that have ended: %w", err)
	}
	endedSeen, err := ended.AddEventHandler(m.ended())
	if err != nil {
		return nil, fmt.Errorf("watching Pods that have ended: %w", err)
	}
	w.runEnded(ended)
	return endedSeen.HasSyncedChecker(), nil
}

// endedInformer is an informer of Pods that have ended and have a label, if that is not empty.
func (w *watcher) endedInformer(m *members, label string) cache.SharedIndexInformer {
	return w.namespaces.Informer(&corev1.Pod{}, func(namespace string) cache.ListerWatcher {
		return informing.ListWatch(m.client, m.client.CoreV1().Pods(namespace), selectEnded(label))
	})
}

// runEnded runs an informer of Pods that have ended.
func (w *watcher) runEnded(ended cache.SharedIndexInformer) {
	livingSeen := w.livingSeen
	go func() {
		// A Pod that ends between the two lists is in one of them, if this is the order.
		if cache.WaitFor(w.ctx, "", livingSeen.HasSyncedChecker()) {
			ended.RunWithContext(w.ctx)
		}
	}()
}

// watchAllEnded watches all Pods that have ended, for groups that no label names. All dialects
// that have such groups share one watch, which keeps no more of other Pods than their names.
func (w *watcher) watchAllEnded(m *members) (cache.DoneChecker, error) {
	w.allEndedLock.Lock()
	defer w.allEndedLock.Unlock()
	first := w.allEnded == nil
	if first {
		w.allEnded = w.endedInformer(m, "")
		if err := w.allEnded.SetTransform(keepMembers); err != nil {
			return nil, fmt.Errorf("watching Pods that have ended: %w", err)
		}
	}
	// Each dialect has a handler of its own: only a new one is shown what was there before.
	seen, err := w.allEnded.AddEventHandler(cache.FilteringResourceEventHandler{
		FilterFunc: func(object any) bool {
			pod, ok := tombstone.Object(object).(*corev1.Pod)
			return ok && dialect.IsUnselectable(pod)
		},
		Handler: m.ended(),
	})
	if err != nil {
		return nil, fmt.Errorf("watching Pods that have ended: %w", err)
	}
	if first {
		w.runEnded(w.allEnded)
	}
	return seen.HasSyncedChecker(), nil
}

// keepMembers is a transform of an informer of Pods that keeps of a Pod no more than its name if
// it may be a member of no gang for which the informer is there.
func keepMembers(object any) (any, error) {
	pod, ok := object.(*corev1.Pod)
	if !ok {
		return object, nil
	}
	if dialect.IsUnselectable(pod) {
		return informing.DropManagedFields(pod)
	}
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, ResourceVersion: pod.ResourceVersion,
	}}, nil
}

// selectEnded has lists and watches be of the Pods that name a group by a label and have ended; of
// all that have ended if the label is empty.
// A list is of those that there are now: an informer begins with what the API server has in
// its cache, which may be older than what another informer has begun with.
func selectEnded(label string) func(options *metav1.ListOptions) {
	return func(options *metav1.ListOptions) {
		options.LabelSelector, options.FieldSelector = label, kube.EndedPods
		informing.WantCurrent(options)
	}
}

// showAgain shows a living Pod that is in a store again: it may name a gang by now.
func (m *members) showAgain(store cache.Store, pod *corev1.Pod) {
	m.join.LivesAgain(func() *corev1.Pod {
		object, exists, err := store.Get(pod)
		now, ok := object.(*corev1.Pod)
		if err != nil || !exists || !ok || now.UID != pod.UID {
			return nil
		}
		return now
	})
}

// showEndedAgain shows a Pod that is in a store of those that have ended again. What the handlers of
// the store show meanwhile comes last.
func (m *members) showEndedAgain(store cache.Store, pod *corev1.Pod) {
	for {
		m.join.Ended(pod)
		object, exists, err := store.Get(pod)
		switch now, ok := object.(*corev1.Pod); {
		case err != nil || !exists || !ok || now.UID != pod.UID:
			m.join.EndedNoMore(pod)
			return
		case now == pod:
			return
		default:
			pod = now
		}
	}
}

// living is the handler of the scheduler's own informer.
func (m *members) living() cache.ResourceEventHandler {
	return cache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(obj any, isInInitialList bool) {
			pod, ok := obj.(*corev1.Pod)
			switch {
			case !ok:
			case isInInitialList:
				m.join.LivedBefore(pod)
			default:
				m.join.Lives(pod)
			}
		},
		UpdateFunc: func(before, after any) {
			was, ok1 := before.(*corev1.Pod)
			is, ok2 := after.(*corev1.Pod)
			if !ok1 || !ok2 {
				return
			}
			if was.UID != is.UID { // the watch was broken
				m.join.LivesNoMore(was, false)
			}
			m.join.Lives(is)
		},
		DeleteFunc: func(obj any) {
			_, unseen := obj.(cache.DeletedFinalStateUnknown)
			if pod, ok := tombstone.Object(obj).(*corev1.Pod); ok {
				m.join.LivesNoMore(pod, !unseen)
			}
		},
	}
}

// ended is the handler of the informer of Pods that have ended.
func (m *members) ended() cache.ResourceEventHandler {
	return handlers(m.join.Ended, func(before, after *corev1.Pod) {
		if before.UID != after.UID { // the watch was broken
			m.join.EndedNoMore(before)
		}
		m.join.Ended(after)
	}, m.join.EndedNoMore)
}

// Ask implements podwatch.Gangs.
func (m *members) Ask(gang dialect.Key, soon bool) {
	m.missing.note(gang, soon)
}
