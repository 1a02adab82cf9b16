// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"
	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/latest"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	schedulertesting "k8s.io/kubernetes/pkg/scheduler/testing"
)

// The tests of this package run kube-scheduler itself, on a fake API server, and look at
// what it does with what this package puts into it. They fail when a version of it does
// something else.

const (
	testNamespace = "ns"
	testScheduler = "default-scheduler"
	// patience is how long a test waits for what must happen.
	patience = 3 * time.Minute
)

var podResource = corev1.SchemeGroupVersion.WithResource("pods")

// world is a plain kube-scheduler on a fake API server.
type world struct {
	t        testing.TB
	ctx      context.Context
	client   *fake.Clientset
	sched    *scheduler.Scheduler
	inside   *Scheduler
	recorder *events.FakeRecorder
}

// newWorld makes a scheduler with objects in its caches, which does not run yet.
func newWorld(t testing.TB, objects ...runtime.Object) *world {
	t.Helper()
	return newWorldOf(t, func(fake kubernetes.Interface) kubernetes.Interface { return fake }, objects...)
}

// newWorldOf is newWorld with something between the scheduler and the fake API server.
func newWorldOf(t testing.TB, between func(kubernetes.Interface) kubernetes.Interface, objects ...runtime.Object) *world {
	t.Helper()
	logger := ktesting.NewLogger(t, ktesting.NewConfig(ktesting.Verbosity(2)))
	ctx, cancel := context.WithCancel(klog.NewContext(t.Context(), logger))
	t.Cleanup(cancel)
	w := &world{t: t, ctx: ctx, client: fake.NewSimpleClientset(objects...), recorder: events.NewFakeRecorder(1000)}
	w.client.PrependReactor("create", "pods", w.bind)
	w.client.PrependReactor("delete", "pods", w.compareUID)
	cfg, err := latest.Default()
	if err != nil {
		t.Fatal(err)
	}
	second := cfg.Profiles[0].DeepCopy()
	second.SchedulerName = "second-scheduler"
	client := between(w.client)
	informers := scheduler.NewInformerFactory(client, 0, nil)
	w.sched, err = scheduler.New(ctx, client, informers, nil, func(string) events.EventRecorderLogger { return w.recorder },
		scheduler.WithProfiles(cfg.Profiles[0], *second),
		scheduler.WithPodInitialBackoffSeconds(0), scheduler.WithPodMaxBackoffSeconds(0))
	if err != nil {
		t.Fatal(err)
	}
	if w.inside, err = Of(w.sched); err != nil {
		t.Fatal(err)
	}
	informers.StartWithContext(ctx)
	if err := informers.WaitForCacheSyncWithContext(ctx).AsError(); err != nil {
		t.Fatal(err)
	}
	if err := w.sched.WaitForHandlersSync(ctx); err != nil {
		t.Fatal(err)
	}
	return w
}

// run runs the scheduler until the test ends.
func (w *world) run() {
	ctx, cancel := context.WithCancel(w.ctx)
	done := make(chan struct{})
	go func() {
		w.sched.Run(ctx)
		close(done)
	}()
	w.t.Cleanup(func() {
		cancel()
		<-done
	})
}

// bind stands in for the API server's binding.
func (w *world) bind(action clienttesting.Action) (bool, runtime.Object, error) {
	if action.GetSubresource() != "binding" {
		return false, nil, nil
	}
	binding := action.(clienttesting.CreateAction).GetObject().(*corev1.Binding)
	object, err := w.client.Tracker().Get(podResource, action.GetNamespace(), binding.Name)
	if err != nil {
		return true, nil, err
	}
	pod := object.(*corev1.Pod).DeepCopy()
	pod.Spec.NodeName = binding.Target.Name
	return true, binding, w.client.Tracker().Update(podResource, pod, pod.Namespace)
}

// compareUID stands in for the API server's comparison of the UID in a deletion.
func (w *world) compareUID(action clienttesting.Action) (bool, runtime.Object, error) {
	name := action.(clienttesting.DeleteAction).GetName()
	wants := action.(clienttesting.DeleteActionImpl).DeleteOptions.Preconditions
	object, err := w.client.Tracker().Get(podResource, action.GetNamespace(), name)
	if err != nil || wants == nil || *wants.UID == object.(*corev1.Pod).UID {
		return false, nil, nil
	}
	return true, nil, apierrors.NewConflict(podResource.GroupResource(), name, nil)
}

func (w *world) profile() framework.Framework {
	return w.inside.Profiles()[testScheduler]
}

// create makes a Pod that the scheduler hears of.
func (w *world) create(pod *corev1.Pod) {
	w.t.Helper()
	if _, err := w.client.CoreV1().Pods(testNamespace).Create(w.ctx, pod, metav1.CreateOptions{}); err != nil {
		w.t.Fatal(err)
	}
}

// pod is a Pod, nil if it is gone. A reactor may ask, too.
func (w *world) pod(name string) *corev1.Pod {
	w.t.Helper()
	object, err := w.client.Tracker().Get(podResource, testNamespace, name)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return object.(*corev1.Pod).DeepCopy()
}

// names are those of the Pods that exist, sorted.
func (w *world) names() []string {
	w.t.Helper()
	pods, err := w.client.CoreV1().Pods(testNamespace).List(w.ctx, metav1.ListOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	var names []string
	for i := range pods.Items {
		names = append(names, pods.Items[i].Name)
	}
	slices.Sort(names)
	return names
}

// isUnschedulable says whether a Pod was told that it has no place.
func (w *world) isUnschedulable(name string) bool {
	c := ConditionOf(w.pod(name), corev1.PodScheduled)
	return c != nil && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable
}

// eventually waits until what is true.
func (w *world) eventually(what string, is func() bool) {
	w.t.Helper()
	err := wait.PollUntilContextTimeout(w.ctx, 5*time.Millisecond, patience, true,
		func(context.Context) (bool, error) { return is(), nil })
	if err != nil {
		w.t.Fatalf("it never came true that %s; Pods: %v", what, w.names())
	}
}

// makePod makes a Pod of a priority that requests one core. With a node, it runs there.
func makePod(name string, priority int32, node string) *corev1.Pod {
	return schedulertesting.MakePod().Namespace(testNamespace).Name(name).UID("uid-"+name).SchedulerName(testScheduler).
		Label("name", name).Priority(priority).Node(node).Req(map[corev1.ResourceName]string{corev1.ResourceCPU: "1"}).Obj()
}

func makeNode(name, cores string) *corev1.Node {
	return schedulertesting.MakeNode().Name(name).Label(corev1.LabelHostname, name).
		Capacity(map[corev1.ResourceName]string{corev1.ResourceCPU: cores, corev1.ResourcePods: "110"}).Obj()
}

// makeBudget makes a PodDisruptionBudget of Pods by their names, of which a number may go.
func makeBudget(name string, allowed int32, pods ...string) *policyv1.PodDisruptionBudget {
	least := intstr.FromInt32(0)
	return &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: testNamespace, Name: name},
		Spec: policyv1.PodDisruptionBudgetSpec{MinAvailable: &least, Selector: &metav1.LabelSelector{
			MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "name", Operator: metav1.LabelSelectorOpIn, Values: pods}},
		}},
		Status: policyv1.PodDisruptionBudgetStatus{DisruptionsAllowed: allowed},
	}
}
