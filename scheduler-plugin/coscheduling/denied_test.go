// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
)

// replicas keeps as many Pods of low priority running as a Deployment would, for a while.
func (w *world) replicas(n int, d time.Duration) {
	w.t.Helper()
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(time.Second) {
		for i := w.count("web-", func(*corev1.Pod) bool { return true }); i < n; i++ {
			w.webs++
			w.create(makePod(fmt.Sprintf("web-%d", w.webs)))
		}
	}
}

// evicted counts the evictions so far.
func (w *world) evicted() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.deleted)
}

// TestAGangWhoseBindingsAreRefusedPreemptsSeldom has a gang of high priority take the places of a Deployment, whose Pods
// come again, and not be let have them.
func TestAGangWhoseBindingsAreRefusedPreemptsSeldom(t *testing.T) {
	denied := apierrors.NewForbidden(corev1.Resource("pods"), "binding", errors.New("no binding in here"))
	// begin has the gang be refused twice, and returns when it would preempt the Deployment again.
	begin := func(t *testing.T, err error) *world {
		w := newWorld(t, all(makeNodes("node", 2, 1), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: testNamespace, ResourceVersion: "1"}})...)
		w.bindError = func(pod string) error {
			if strings.HasPrefix(pod, "high") {
				return err
			}
			return nil
		}
		w.start()
		w.replicas(2, 10*time.Second)
		w.create(makeGroup("high", 2))
		for _, member := range makeMembers("high", 2, ofPriority(10)) {
			w.create(member)
		}
		w.replicas(2, 2*time.Minute)
		return w
	}
	t.Run("at growing intervals, up to an hour, and says so", func(t *testing.T) {
		inBubble(t, func(t *testing.T) {
			w := begin(t, denied)
			if got := w.evicted(); got != 2 {
				t.Fatalf("%d Pods were evicted within two minutes, want those of the first placement", got)
			}
			told := w.condition("high", metav1.ConditionTrue, schedulingv1alpha1.ReasonNotEnoughResources)
			if want := "the bindings of its last placements were refused"; !strings.Contains(told.Message, want) {
				t.Errorf("message %q, want one with %q", told.Message, want)
			}
			w.replicas(2, 4*time.Hour)
			// After 5 minutes, 10, 20 and 40, and then each hour.
			if got := w.evicted(); got != 2+2*6 {
				t.Errorf("%d Pods were evicted within four hours, want 14", got)
			}
		})
	})
	t.Run("not if the bindings only failed", func(t *testing.T) {
		inBubble(t, func(t *testing.T) {
			if got := begin(t, apierrors.NewInternalError(errors.New("the webhook is down"))).evicted(); got <= 2 {
				t.Errorf("%d Pods were evicted within two minutes, want more", got)
			}
		})
	})
	t.Run("and reserves nothing meanwhile", func(t *testing.T) {
		inBubble(t, func(t *testing.T) {
			w := begin(t, denied)
			w.deletePod(fmt.Sprintf("web-%d", w.webs))
			gone := w.evicted()
			time.Sleep(time.Minute)
			w.create(makePod("behind"))
			w.eventually("a Pod behind has the idle node", func() bool { return w.placed("behind") == 1 })
			if w.evicted() > gone {
				t.Error("the gang has preempted Pods before that")
			}
		})
	})
	t.Run("and many of them cost one plan after an event", func(t *testing.T) {
		inBubble(t, func(t *testing.T) {
			w := newWorld(t, makeNodes("node", 1, 1, "kind=small")...)
			w.bindError = func(pod string) error {
				if strings.HasPrefix(pod, "high") {
					return denied
				}
				return nil
			}
			w.start()
			const gangs = 6
			for i := range gangs {
				name := fmt.Sprintf("high-%d", i)
				w.create(makeGroup(name, 1))
				w.create(makePod(name+"-0", inGroup(name), selecting("kind", "small"), ofPriority(10)))
			}
			time.Sleep(3 * time.Minute)
			w.create(makePod("full", onNode("node-0"), ofPriority(20)))
			time.Sleep(time.Minute)
			if got, want := w.told("high-4").Message, "the bindings of its last placements were refused"; !strings.Contains(got, want) {
				t.Fatalf("a gang is told %q, want one with %q", got, want)
			}
			before := w.cycles()
			w.create(makeNodes("large", 1, 1, "kind=large")[0])
			time.Sleep(10 * time.Second)
			if got := w.cycles() - before; got > gangs/2 {
				t.Errorf("%d cycles of %d gangs alike for one event", got, gangs)
			}
		})
	})
	for change, do := range map[string]func(w *world){
		"the namespace": func(w *world) {
			namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: testNamespace, ResourceVersion: "2", Labels: map[string]string{"exempt": "yes"}}}
			if _, err := w.kube.CoreV1().Namespaces().Update(w.t.Context(), namespace, metav1.UpdateOptions{}); err != nil {
				w.t.Fatal(err)
			}
		},
		"a Pod": func(w *world) {
			pod := makePod("high-0", inGroup("high"), ofPriority(10), labelled("exempt", "yes"))
			pod.ResourceVersion = "2"
			if _, err := w.kube.CoreV1().Pods(testNamespace).Update(w.t.Context(), pod, metav1.UpdateOptions{}); err != nil {
				w.t.Fatal(err)
			}
		},
		"the group": func(w *world) {
			w.changeGroup("high", func(group *schedulingv1alpha1.PodGroup) { byPods(&group.Spec) })
		},
	} {
		t.Run("until "+change+" changes", func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				w := begin(t, denied)
				w.mu.Lock()
				w.bindError = nil
				w.mu.Unlock()
				do(w)
				w.eventually("the gang has the places", func() bool { return w.placed("high") == 2 })
			})
		})
	}
}
