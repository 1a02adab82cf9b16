// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/component-base/metrics/testutil"
	fwk "k8s.io/kube-scheduler/framework"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/kube"
)

// loseReplies has bindings come through, and their answers get lost.
func (w *world) loseReplies() {
	w.kube.PrependReactor("create", "pods", func(action clienttesting.Action) (bool, apiruntime.Object, error) {
		handled, object, err := w.bind(action)
		if handled && err == nil {
			err = io.ErrUnexpectedEOF
		}
		return handled, object, err
	})
}

// TestABindingWhoseOnlyReplyIsLostHasNotFailed: it is not tried again, and is looked for.
func TestABindingWhoseOnlyReplyIsLostHasNotFailed(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, all(makeNodes("node", 1, 2), makeGroup("gang", 2), makeMembers("gang", 2))...)
		w.args = `{"bindRetries":0}`
		w.loseReplies()
		w.start()
		w.condition("gang", metav1.ConditionFalse, schedulingv1alpha1.ReasonScheduled)
		w.eventually("no member is being bound any more", func() bool { return !isBinding(w.engine().plugins) })
		failures, err := testutil.GetCounterMetricValue(w.engine().metrics.BindFailures)
		if err != nil || failures != 0 {
			t.Errorf("%v failed bindings (%v), want none", failures, err)
		}
	})
}

// TestTheRoomOfAMemberThatMayBeBoundIsNotGivenToOthers: no answer of the API server comes
// through, and the watch is behind.
func TestTheRoomOfAMemberThatMayBeBoundIsNotGivenToOthers(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, all(makeNodes("node", 1, 1), makeGroup("gang", 1), makeMembers("gang", 1))...)
		w.args = `{"bindRetries":0}`
		var looks atomic.Int32
		var answers atomic.Bool
		w.bindError = func(pod string) error {
			if pod == "gang-0" {
				return io.ErrUnexpectedEOF
			}
			return nil
		}
		w.kube.PrependReactor("get", "pods", func(action clienttesting.Action) (bool, apiruntime.Object, error) {
			if action.(clienttesting.GetAction).GetName() != "gang-0" || answers.Load() {
				return false, nil, nil
			}
			looks.Add(1)
			return true, nil, apierrors.NewServiceUnavailable("not now")
		})
		w.start()
		w.eventually("it is asked whether the member is bound", func() bool { return looks.Load() > 0 })
		w.create(makePod("ordinary"))
		w.eventually("the ordinary Pod has found no room", func() bool {
			return w.scheduledCondition("ordinary").Reason == corev1.PodReasonUnschedulable
		})
		w.eventually("it is asked again and again", func() bool { return looks.Load() > 3 })
		if bound := w.bound(); len(bound) > 0 {
			t.Errorf("bound %v, want none", bound)
		}

		object, err := w.kube.Tracker().Get(podResource, testNamespace, "gang-0")
		if err != nil {
			t.Fatal(err)
		}
		pod := object.(*corev1.Pod).DeepCopy()
		pod.Spec.NodeName = "node-0"
		if err := w.kube.Tracker().Update(podResource, pod, testNamespace); err != nil {
			t.Fatal(err)
		}
		answers.Store(true)
		w.condition("gang", metav1.ConditionFalse, schedulingv1alpha1.ReasonScheduled)
		if failed := w.recorded("Warning FailedScheduling"); slices.Contains(w.bound(), "ordinary") {
			t.Errorf("the ordinary Pod is bound beside the member (%d events)", failed)
		}
	})
}

// TestABindingThatHangsIsGivenUp, and tried again: it may have come through.
func TestABindingThatHangsIsGivenUp(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		tries := 0
		b := binding{p: &kube.Placement{Pod: makePod("a")}, slots: newSlots(1), retries: 1, bind: func(ctx context.Context) *fwk.Status {
			if tries++; tries == 2 {
				return nil
			}
			<-ctx.Done()
			return fwk.AsStatus(fmt.Errorf("binding rejected: %w", ctx.Err()))
		}}
		began := time.Now()
		status, doubtful := b.try(t.Context())
		if !status.IsSuccess() || !doubtful || tries != 2 || time.Since(began) > time.Minute {
			t.Errorf("after %v and %d tries it ended with %v, and it is doubtful whether it is bound: %t", time.Since(began), tries, status, doubtful)
		}
	})
}

// withPods is a client with other Pods, by namespace.
type withPods struct {
	kubernetes.Interface
	of func(namespace string, pods corev1client.PodInterface) corev1client.PodInterface
}

// IsWatchListSemanticsUnSupported is as in timely.
func (withPods) IsWatchListSemanticsUnSupported() bool { return true }

func (w withPods) CoreV1() corev1client.CoreV1Interface {
	return withPodsCore{w.Interface.CoreV1(), w}
}

type withPodsCore struct {
	corev1client.CoreV1Interface
	with withPods
}

func (w withPodsCore) Pods(namespace string) corev1client.PodInterface {
	return w.with.of(namespace, w.CoreV1Interface.Pods(namespace))
}

// hangingPods are Pods whose bindings hang.
type hangingPods struct{ corev1client.PodInterface }

func (hangingPods) Bind(ctx context.Context, _ *corev1.Binding, _ metav1.CreateOptions) error {
	<-ctx.Done()
	return ctx.Err()
}

// TestBindingsThatHangInANamespaceCostOthersNoTime: a webhook there may be slow.
func TestBindingsThatHangInANamespaceCostOthersNoTime(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, all(makeNodes("node", 1, 200), makeGroup("gang", 100), makeMembers("gang", 100))...)
		w.client = withPods{timely{w.kube}, func(namespace string, pods corev1client.PodInterface) corev1client.PodInterface {
			if namespace == testNamespace {
				return hangingPods{pods}
			}
			return pods
		}}
		w.start()
		w.eventually("bindings hang", func() bool { return isBinding(w.engine().plugins) })
		group := makeGroup("gang", 2)
		group.Namespace, group.UID = "elsewhere", "uid-elsewhere"
		w.create(group)
		for _, object := range makeMembers("gang", 2) {
			pod := object.(*corev1.Pod)
			pod.Namespace, pod.UID = "elsewhere", pod.UID+"-elsewhere"
			w.create(pod)
		}
		began := time.Now()
		w.eventually("the gang of another namespace is bound", func() bool { return len(w.bound()) == 2 })
		if took := time.Since(began); took > kube.RequestTime/2 {
			t.Errorf("it took %v", took)
		}
	})
}

func TestWhatFailedBindingsShow(t *testing.T) {
	pods := corev1.Resource("pods")
	tests := map[string]struct {
		err                   error
		retriable, mayBeBound bool
	}{
		"success":                   {},
		"the answer is lost":        {err: io.ErrUnexpectedEOF, retriable: true, mayBeBound: true},
		"it took too long":          {err: context.DeadlineExceeded, retriable: true, mayBeBound: true},
		"the API server timed out":  {err: apierrors.NewTimeoutError("etcd", 1), retriable: true, mayBeBound: true},
		"a fault of the API server": {err: apierrors.NewInternalError(errors.New("etcd")), retriable: true, mayBeBound: true},
		"too many requests":         {err: apierrors.NewTooManyRequestsError("later"), retriable: true},
		"the Pod has a node":        {err: apierrors.NewConflict(pods, "p", errors.New("is already assigned")), mayBeBound: true},
		"the Pod is gone":           {err: apierrors.NewNotFound(pods, "p")},
		"it is forbidden":           {err: apierrors.NewForbidden(pods, "p", errors.New("by a webhook"))},
		"the scheduler ends":        {err: context.Canceled, mayBeBound: true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := retriable(tc.err); got != tc.retriable {
				t.Errorf("retriable %v, want %v", got, tc.retriable)
			}
			if got := mayBeBound(tc.err); got != tc.mayBeBound {
				t.Errorf("may be bound %v, want %v", got, tc.mayBeBound)
			}
		})
	}
}
