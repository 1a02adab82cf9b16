// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/kubernetes/pkg/scheduler"

	"github.com/lockstep-k8s/lockstep/internal/testing/apiserver"
	"github.com/lockstep-k8s/lockstep/internal/tombstone"
)

// byNode is an index of Pods by their nodes.
const byNode = "node"

// observer is what a plugin of kube-scheduler learns of Pods from an informer.
type observer struct {
	lister interface {
		List(labels.Selector) ([]*corev1.Pod, error)
	}
	informer cache.SharedIndexInformer

	mu     sync.Mutex
	events []string
	known  map[types.UID]string
}

// observe starts an informer factory and observes its Pods.
func observe(t *testing.T, factory informers.SharedInformerFactory) *observer {
	t.Helper()
	pods := factory.Core().V1().Pods()
	o := &observer{lister: pods.Lister(), informer: pods.Informer(), known: map[types.UID]string{}}
	if err := o.informer.AddIndexers(cache.Indexers{byNode: func(object any) ([]string, error) {
		return []string{object.(*corev1.Pod).Spec.NodeName}, nil
	}}); err != nil {
		t.Fatal(err)
	}
	note := func(what string, object any) *corev1.Pod {
		pod := tombstone.Object(object).(*corev1.Pod)
		o.events = append(o.events, fmt.Sprintf("%s %s", what, seen(pod)))
		return pod
	}
	if _, err := o.informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(object any) {
			o.mu.Lock()
			defer o.mu.Unlock()
			pod := note("added", object)
			o.known[pod.UID] = seen(pod)
		},
		UpdateFunc: func(before, after any) {
			o.mu.Lock()
			defer o.mu.Unlock()
			delete(o.known, before.(*corev1.Pod).UID)
			pod := note("updated", after)
			o.known[pod.UID] = seen(pod)
		},
		DeleteFunc: func(object any) {
			o.mu.Lock()
			defer o.mu.Unlock()
			delete(o.known, note("deleted", object).UID)
		},
	}); err != nil {
		t.Fatal(err)
	}
	factory.StartWithContext(t.Context())
	return o
}

// seen says what matters of a Pod.
func seen(pod *corev1.Pod) string {
	return fmt.Sprintf("%s %s on %q %s", pod.Name, pod.UID, pod.Spec.NodeName, pod.Status.Phase)
}

// view is what the informer and its handler know.
func (o *observer) view(t *testing.T) map[string][]string {
	t.Helper()
	listed, err := o.lister.List(labels.Everything())
	if err != nil {
		t.Fatal(err)
	}
	view := map[string][]string{"keys": o.informer.GetStore().ListKeys(), "nodes": o.informer.GetIndexer().ListIndexFuncValues(byNode)}
	for _, pod := range listed {
		view["listed"] = append(view["listed"], seen(pod))
		if object, exists, err := o.informer.GetStore().Get(pod); err != nil || !exists || object != any(pod) {
			t.Errorf("%s is listed and can't be got", pod.Name)
		}
	}
	indexed, err := o.informer.GetIndexer().ByIndex(byNode, "a")
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range indexed {
		view["indexed"] = append(view["indexed"], seen(object.(*corev1.Pod)))
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, pod := range o.known {
		view["handled"] = append(view["handled"], pod)
	}
	for _, of := range view {
		slices.Sort(of)
	}
	return view
}

// TestKubeSchedulerSeesThePodsThatItSeesByItself: its plugins have the same events, lists and indexes as with its own informer, whose
// field selector leaves out Pods that have ended, in random histories. Watches may break.
func TestKubeSchedulerSeesThePodsThatItSeesByItself(t *testing.T) {
	for seed := range uint64(60) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := rand.New(rand.NewPCG(seed, 0))
				server := apiserver.New(t)
				process := func(name string) (*apiserver.Process, kubernetes.Interface) {
					p := server.Process(name)
					client, err := kubernetes.NewForConfig(p.Config())
					if err != nil {
						t.Fatal(err)
					}
					return p, client
				}
				upstream, client := process("upstream")
				ours, ourClient := process("ours")
				for range 5 {
					step(server, r)
				}
				want := observe(t, scheduler.NewInformerFactory(client, 0, nil))
				got := observe(t, NewInformerFactory(ourClient, nil))
				breaks := seed%2 == 1
				synctest.Wait()
				want.events, got.events = nil, nil // the first list has no order
				for range 40 {
					deaf := breaks && r.IntN(4) == 0
					if deaf {
						for _, p := range []*apiserver.Process{upstream, ours} {
							p.Hold("pods")
							p.ExpireWatches("pods")
						}
					}
					for range 1 + r.IntN(6) {
						step(server, r)
					}
					if deaf {
						upstream.ReleaseAll("pods")
						ours.ReleaseAll("pods")
					}
					time.Sleep(time.Minute)
					synctest.Wait()
					if diff := cmp.Diff(want.view(t), got.view(t), cmpopts.EquateEmpty()); diff != "" {
						t.Fatalf("what is known (-kube-scheduler's own informer, +ours):\n%s", diff)
					}
				}
				if !breaks {
					if diff := cmp.Diff(want.events, got.events); diff != "" {
						t.Errorf("events (-kube-scheduler's own informer, +ours):\n%s", diff)
					}
				}
			})
		})
	}
}

// step has something happen to a Pod.
func step(server *apiserver.Server, r *rand.Rand) {
	name := fmt.Sprint("pod-", r.IntN(4))
	pod := apiserver.Find[corev1.Pod](server, testNamespace, name)
	switch {
	case pod == nil:
		apiserver.Add(server, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: testNamespace, Name: name},
			Spec: corev1.PodSpec{NodeName: []string{"", "a"}[r.IntN(2)]}, Status: corev1.PodStatus{Phase: corev1.PodPending}})
	case r.IntN(3) == 0:
		apiserver.Remove[corev1.Pod](server, testNamespace, name)
	default:
		apiserver.ChangeAny(server, testNamespace, name, func(pod *corev1.Pod) {
			switch {
			case HasEnded(pod):
				pod.Labels = map[string]string{"changed": fmt.Sprint(r.Int())}
			case pod.Spec.NodeName == "" && r.IntN(3) > 0:
				pod.Spec.NodeName = []string{"a", "b"}[r.IntN(2)]
			default:
				pod.Status.Phase = []corev1.PodPhase{corev1.PodRunning, corev1.PodSucceeded, corev1.PodFailed}[r.IntN(3)]
			}
		})
	}
}

// TestAPodThatEndedUnseenIsSoughtEverywhere: it waited when the watch broke, was bound, and has ended. kube-scheduler has it in its
// queue, or takes it for bound, and looks there only if the state that it is shown may not be the last one.
func TestAPodThatEndedUnseenIsSoughtEverywhere(t *testing.T) {
	waits := makePod("pod", 0, "")
	ended := makePod("pod", 0, "node")
	ended.Status.Phase = corev1.PodSucceeded
	another := ended.DeepCopy()
	another.UID = "another"
	failed := makePod("pod", 0, "")
	failed.Status.Phase = corev1.PodFailed
	for name, tc := range map[string]struct {
		before, after *corev1.Pod
		sought        bool
	}{
		"it was bound, and has ended":       {waits, ended, true},
		"another one of its name has ended": {waits, another, true},
		"it has failed without a node":      {waits, failed, false},
		"it has ended on its node":          {makePod("pod", 0, "node"), ended, false},
	} {
		t.Run(name, func(t *testing.T) {
			var deleted any
			livingEvents{cache.ResourceEventHandlerFuncs{DeleteFunc: func(object any) { deleted = object }}}.OnUpdate(tc.before, tc.after)
			_, sought := deleted.(cache.DeletedFinalStateUnknown)
			if sought != tc.sought || tombstone.Object(deleted) != any(tc.before) {
				t.Errorf("it is shown as deleted: %v", deleted)
			}
		})
	}
}

// TestLittleIsKeptOfPodsThatHaveEnded and are no members. Of members it is kept what they requested, and how they ended.
func TestLittleIsKeptOfPodsThatHaveEnded(t *testing.T) {
	server := apiserver.New(t)
	add := func(name string, phase corev1.PodPhase, labels map[string]string) {
		pod := makePod(name, 0, "node")
		pod.UID, pod.ResourceVersion = "", ""
		pod.Labels, pod.Status.Phase, pod.Status.Reason = labels, phase, "Done"
		pod.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "m"}}
		pod.Spec.Tolerations = []corev1.Toleration{{Key: "k"}}
		pod.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "N"}}
		pod.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}
		apiserver.Add(server, pod)
	}
	add("running", corev1.PodRunning, nil)
	add("member", corev1.PodSucceeded, map[string]string{"gang": "g"})
	add("ordinary", corev1.PodFailed, map[string]string{"app": "a"})
	client, err := kubernetes.NewForConfig(server.Config())
	if err != nil {
		t.Fatal(err)
	}
	factory := NewInformerFactory(client, nil)
	pods, err := PodsOf(factory)
	if err != nil {
		t.Fatal(err)
	}
	pods.KeepMembers(func(pod *corev1.Pod) bool { return pod.Labels["gang"] != "" })
	factory.StartWithContext(t.Context())
	factory.WaitForCacheSyncWithContext(t.Context())
	kept := map[string]*corev1.Pod{}
	for _, object := range pods.All().GetStore().List() {
		pod := object.(*corev1.Pod)
		kept[pod.Name] = pod
		if pod.UID == "" || pod.ResourceVersion == "" || pod.Status.Phase == "" || pod.ManagedFields != nil {
			t.Errorf("of %s is kept %v", pod.Name, pod)
		}
	}
	if pod := kept["running"]; len(pod.Spec.Containers[0].Env) == 0 || len(pod.Spec.Tolerations) == 0 {
		t.Errorf("of a Pod that runs is kept %v", pod)
	}
	if pod := kept["member"]; pod.Labels["gang"] != "g" || pod.Status.Reason != "Done" || len(pod.Spec.Tolerations) > 0 ||
		len(pod.Spec.Containers[0].Env) > 0 || pod.Spec.Containers[0].Resources.Requests.Cpu().Value() != 1 {
		t.Errorf("of a member is kept %v", pod)
	}
	if pod := kept["ordinary"]; len(pod.Labels) > 0 || len(pod.Spec.Containers) > 0 {
		t.Errorf("of an ordinary Pod is kept %v", pod)
	}
}

// TestAFactoryThatShowsNoEndedPodsIsRefused: a program has made its informers by kube-scheduler's own function.
func TestAFactoryThatShowsNoEndedPodsIsRefused(t *testing.T) {
	if _, err := PodsOf(scheduler.NewInformerFactory(nil, 0, nil)); err == nil {
		t.Error("it is not refused")
	}
}
