// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/klog/v2"
	internalcache "k8s.io/kubernetes/pkg/scheduler/backend/cache"
	schedulertesting "k8s.io/kubernetes/pkg/scheduler/testing"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
)

// TestAGangThatSpreadsIsPlacedWhenANodeGoes: no member can be on that node, and no other may
// have two while it has none.
func TestAGangThatSpreadsIsPlacedWhenANodeGoes(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, spreading()...)
		w.start()
		w.eventually("the gang has been planned in vain, and nothing happens", func() bool { return w.marked("gang") == 2 && w.quiet() })
		w.loseSmallNode(nil)
	})
}

// TestAGangThatSpreadsIsPlacedThoughANodeGoesLate: kube-scheduler tells of its end before the cache forgets it.
func TestAGangThatSpreadsIsPlacedThoughANodeGoesLate(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, spreading()...)
		lead := w.standBy()
		cache := lateCache{Cache: w.sched.Cache, told: make(chan struct{}), forget: make(chan struct{})}
		w.sched.Cache = cache
		lead()
		w.eventually("the gang has been planned in vain, and nothing happens", func() bool { return w.marked("gang") == 2 && w.quiet() })
		cycles := w.cycles()
		w.loseSmallNode(func() {
			<-cache.told
			w.eventually("the gang has been planned again", func() bool { return w.cycles() > cycles && w.quiet() })
			close(cache.forget)
		})
	})
}

// lateCache forgets a node only when it may.
type lateCache struct {
	internalcache.Cache
	told, forget chan struct{}
}

// RemoveNode implements Cache.
func (c lateCache) RemoveNode(logger klog.Logger, node *corev1.Node) error {
	close(c.told)
	<-c.forget
	return c.Cache.RemoveNode(logger, node)
}

// spreading are a gang that has to spread over two nodes, of which one has no room.
func spreading() []apiruntime.Object {
	selector := &metav1.LabelSelector{MatchLabels: map[string]string{schedulingv1alpha1.LabelPodGroup: "gang"}}
	spread := func(w *schedulertesting.PodWrapper) {
		w.SpreadConstraint(1, corev1.LabelHostname, corev1.DoNotSchedule, selector, nil, nil, nil, nil)
	}
	return all(makeNodes("node", 1, 2), makeNodes("small", 1, 0), makeGroup("gang", 2), makeMembers("gang", 2, spread))
}

// loseSmallNode deletes the node without room, and wants the gang placed soon. Meanwhile is called before that.
func (w *world) loseSmallNode(meanwhile func()) {
	w.t.Helper()
	begun := time.Now()
	if err := w.kube.CoreV1().Nodes().Delete(w.t.Context(), "small-0", metav1.DeleteOptions{}); err != nil {
		w.t.Fatal(err)
	}
	if meanwhile != nil {
		meanwhile()
	}
	w.eventually("the gang is placed", func() bool { return w.placed("gang") == 2 })
	if took := time.Since(begun); took > 30*time.Second {
		w.t.Errorf("it is placed after %v, as each gang is tried anyway after a while", took)
	}
}
