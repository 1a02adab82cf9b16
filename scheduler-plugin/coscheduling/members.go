// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/internal/informing"
	"github.com/lockstep-k8s/lockstep/internal/tombstone"
	"github.com/lockstep-k8s/lockstep/podgroup"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/gangs"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/kube"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/podwatch"
)

const (
	// missingDelay is how long a Pod may be missing at least, and missingDelay and as much
	// again at most, before the API server is asked what has become of it. Of most that
	// end, the watch of ended Pods tells in milliseconds.
	missingDelay = 500 * time.Millisecond
	// missingDelayMax is how often it is asked again at least, while it can't be told or a
	// Pod has ended that the watch does not show.
	missingDelayMax = 30 * time.Second
	// missingTimeout is how long the API server may take to answer.
	missingTimeout = time.Minute
	// missingAskers is how many gangs are asked about beside each other.
	missingAskers = 4
)

// members tells the gangs of the Pods that name a group. Package podwatch makes one
// history of them out of the scheduler's own watch, which leaves out those that have ended,
// and a watch of those.
type members struct {
	*gangs.Gangs
	client kubernetes.Interface
	join   *podwatch.Join
	// missing are the gangs about whose Pods it may have to be asked.
	missing workqueue.TypedRateLimitingInterface[types.NamespacedName]
}

var _ podwatch.Gangs = &members{}

func newMembers(all *gangs.Gangs, client kubernetes.Interface) *members {
	m := &members{Gangs: all, client: client, missing: workqueue.NewTypedRateLimitingQueue(
		workqueue.NewTypedItemExponentialFailureRateLimiter[types.NamespacedName](missingDelay, missingDelayMax))}
	m.join = podwatch.New(m)
	return m
}

// watchMembers has the gangs told of the Pods that name a group. It returns at once. What
// it returns is done when all is told that there was at the start.
func (w *watcher) watchMembers() (cache.DoneChecker, error) {
	m := newMembers(w.gangs, w.handle.ClientSet())
	livingSeen, err := w.handle.SharedInformerFactory().Core().V1().Pods().Informer().AddEventHandler(m.living())
	if err != nil {
		return nil, fmt.Errorf("watching Pods: %w", err)
	}
	ended := coreinformers.NewFilteredPodInformer(m.client, metav1.NamespaceAll, 0, cache.Indexers{}, selectEnded)
	if err := ended.SetTransform(informing.DropManagedFields); err != nil {
		return nil, fmt.Errorf("watching Pods that have ended: %w", err)
	}
	endedSeen, err := ended.AddEventHandler(m.ended())
	if err != nil {
		return nil, fmt.Errorf("watching Pods that have ended: %w", err)
	}
	go func() {
		// A Pod that ends between the two lists is in one of them, if this is the order.
		if cache.WaitFor(w.ctx, "", livingSeen.HasSyncedChecker()) {
			ended.RunWithContext(w.ctx)
		}
	}()
	context.AfterFunc(w.ctx, m.missing.ShutDown)
	for range missingAskers {
		go m.ask(w.ctx)
	}
	return endedSeen.HasSyncedChecker(), nil
}

// selectEnded has lists and watches be of the Pods that name a group and have ended. A list
// is of those that there are now: an informer begins with what the API server has in
// its cache, which may be older than what another informer has begun with.
func selectEnded(options *metav1.ListOptions) {
	options.LabelSelector, options.FieldSelector = schedulingv1alpha1.LabelPodGroup, kube.EndedPods
	informing.WantCurrent(options)
}

// living is the handler of the scheduler's own informer.
func (m *members) living() cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) {
			if pod, ok := obj.(*corev1.Pod); ok {
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

// SetMissing implements podwatch.Gangs.
func (m *members) SetMissing(pod *corev1.Pod) {
	m.Gangs.SetMissing(pod)
	gang, _ := podgroup.GroupOf(pod)
	m.missing.AddAfter(gang, missingDelay)
}

// ask asks what has become of Pods that are missing, until ctx ends.
func (m *members) ask(ctx context.Context) {
	for {
		gang, over := m.missing.Get()
		if over {
			return
		}
		m.askAbout(ctx, gang)
		m.missing.Done(gang)
	}
}

// askAbout asks what has become of the Pods of a gang that are missing.
func (m *members) askAbout(ctx context.Context, gang types.NamespacedName) {
	question, missing := m.join.Question(gang)
	switch {
	case !missing:
		m.missing.Forget(gang)
		return
	case question.Empty():
		m.missing.AddAfter(gang, missingDelay)
		return
	}
	ctx, cancel := context.WithTimeout(ctx, missingTimeout)
	defer cancel()
	// Without a resource version, this is the newest state.
	list, err := m.client.CoreV1().Pods(gang.Namespace).List(ctx, metav1.ListOptions{
		LabelSelector: labels.Set{schedulingv1alpha1.LabelPodGroup: gang.Name}.String(),
		FieldSelector: kube.EndedPods,
	})
	if err != nil {
		klog.FromContext(ctx).V(2).Info("Asking which members have ended failed, trying again", "podGroup", klog.KRef(gang.Namespace, gang.Name), "reason", err.Error())
		m.missing.AddRateLimited(gang)
		return
	}
	ended := make([]*corev1.Pod, len(list.Items))
	for i := range list.Items {
		ended[i] = &list.Items[i]
	}
	if m.join.Answer(question, ended) {
		m.missing.AddRateLimited(gang)
		return
	}
	m.missing.Forget(gang)
}
