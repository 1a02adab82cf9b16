// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/backend/queue"

	configv1alpha1 "github.com/lockstep-k8s/lockstep/apis/config/v1alpha1"
	"github.com/lockstep-k8s/lockstep/client/clientset/versioned"
	"github.com/lockstep-k8s/lockstep/internal/informing"
	"github.com/lockstep-k8s/lockstep/internal/testing/apiserver"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/kube"
)

// inRefused runs a test beside an API server whose namespace b may not be read as long as refused is true.
func inRefused(t *testing.T, test func(w *watcher, process *apiserver.Process, refused *bool, retries *retries)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		server, refused := apiserver.New(t), true
		server.SetHook(func(r *apiserver.Request) apiserver.Fault {
			if refused && r.Namespace == "b" {
				return apiserver.Fault{Refusal: apiserver.NoRight(string(r.Verb), r.Resource, "b")}
			}
			return apiserver.Fault{}
		})
		retries := &retries{}
		test(&watcher{sched: retrying(t, retries), ctx: t.Context(), gangs: newBench().Gangs, namespaces: informing.Namespaces{"a", "b"}}, server.Process("scheduler"), &refused, retries)
	})
}

// retrying is a scheduler with a queue that counts.
func retrying(t *testing.T, retries *retries) *kube.Scheduler {
	t.Helper()
	sched, err := kube.Of(&scheduler.Scheduler{SchedulingQueue: retries})
	if err != nil {
		t.Fatal(err)
	}
	return sched
}

// retries is a queue that counts how often all Pods are tried again.
type retries struct {
	queue.SchedulingQueue
	count int
}

// MoveAllToActiveOrBackoffQueue implements queue.SchedulingQueue.
func (r *retries) MoveAllToActiveOrBackoffQueue(klog.Logger, fwk.ClusterEvent, any, any, queue.PreEnqueueCheck) {
	r.count++
}

// podIn is a Pod in a namespace.
func podIn(namespace, label, value string) *corev1.Pod {
	pod := makePod("member", labelled(label, value))
	pod.Namespace = namespace
	return pod
}

// TestPodsOfANamespaceThatMayNotBeReadMayBeMembers: their PodGroup may be there. Of a namespace beside it all are known.
func TestPodsOfANamespaceThatMayNotBeReadMayBeMembers(t *testing.T) {
	inRefused(t, func(w *watcher, process *apiserver.Process, refused *bool, retries *retries) {
		groups, err := versioned.NewForConfig(process.Config())
		if err != nil {
			t.Fatal(err)
		}
		w.groups = groups
		own := w.kinds(configv1alpha1.PodGroupAPIs{})[0]
		own.inquire()
		podGroups, seen, err := own.informer()
		if err != nil {
			t.Fatal(err)
		}
		go podGroups.RunWithContext(w.ctx)
		synctest.Wait()
		select {
		case <-seen.Done():
		default:
			t.Fatal("the PodGroups of the other namespace are waited for")
		}
		mayBeMembers := func(when string, want map[string]bool) {
			t.Helper()
			for namespace, want := range want {
				if got := w.gangs.MayBeMember(podIn(namespace, "scheduling.lockstep.dev/pod-group", "gang")); got != want {
					t.Errorf("%s a Pod in %s may be a member of a gang: %t, want %t", when, namespace, got, want)
				}
			}
		}
		before := retries.count
		mayBeMembers("while b is refused", map[string]bool{"a": false, "b": true})
		*refused = false
		time.Sleep(time.Minute)
		synctest.Wait()
		mayBeMembers("when b is listed", map[string]bool{"a": false, "b": false})
		if got := retries.count - before; got != 1 {
			t.Errorf("ordinary Pods, which may have been denied victims, are tried again %d times", got)
		}
	})
}
