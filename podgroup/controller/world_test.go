// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/kubernetes"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/client/clientset/versioned"
	"github.com/lockstep-k8s/lockstep/client/informers/externalversions"
	"github.com/lockstep-k8s/lockstep/internal/informing"
	"github.com/lockstep-k8s/lockstep/internal/testing/apiserver"
)

const testNamespace = "team"

// process is the Controller among those who talk to the API server.
const process = "podgroup-controller"

// world is an API server with a running Controller, in a bubble of
// testing/synctest: its clock stands still while anything is left to do.
type world struct {
	t      *testing.T
	server *apiserver.Server
	// written are the statuses that the Controller wrote, in order.
	written []map[string]any
	// failures is how many writes are still to fail, with failure.
	failures int
	failure  error
	// closed are the namespaces whose Pods may not be read.
	closed map[string]bool
}

// inWorld runs a test beside a Controller that sees the given groups.
func inWorld(t *testing.T, groups []*schedulingv1alpha1.PodGroup, test func(w *world)) {
	t.Helper()
	inNamespaces(t, nil, func(*world) {}, groups, test)
}

// inNamespaces does so beside one that reads some namespaces alone, once prepare is done.
func inNamespaces(t *testing.T, namespaces informing.Namespaces, prepare func(w *world), groups []*schedulingv1alpha1.PodGroup, test func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, groups...)
		prepare(w)
		lockstep, kube := w.clients()
		informers := externalversions.NewSharedInformerFactory(lockstep, 0)
		c, err := New(lockstep, kube, informers.Scheduling().V1alpha1().PodGroups(), namespaces)
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		informers.StartWithContext(ctx)
		ended := make(chan error)
		go func() { ended <- c.Run(ctx, 2) }()
		w.settle()

		test(w)

		stop()
		informers.Shutdown()
		if err := <-ended; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
}

// newWorld is a world without a Controller.
func newWorld(t *testing.T, groups ...*schedulingv1alpha1.PodGroup) *world {
	t.Helper()
	w := &world{t: t, server: apiserver.New(t)}
	w.server.SetHook(w.look)
	for _, group := range groups {
		apiserver.Add(w.server, group)
	}
	return w
}

// clients are those of the Controller.
func (w *world) clients() (versioned.Interface, kubernetes.Interface) {
	w.t.Helper()
	config := w.server.Process(process).Config()
	lockstep, err := versioned.NewForConfig(config)
	if err != nil {
		w.t.Fatal(err)
	}
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		w.t.Fatal(err)
	}
	return lockstep, kube
}

// look notes the Controller's writes, and has some of them fail.
func (w *world) look(r *apiserver.Request) apiserver.Fault {
	if w.closed[r.Namespace] && r.Resource == "pods" {
		return apiserver.Fault{Refusal: apiserver.NoRight(string(r.Verb), r.Resource, r.Namespace)}
	}
	if !r.Verb.Writes() {
		return apiserver.Fault{}
	}
	if r.Verb != apiserver.Apply || r.Resource != "podgroups" || r.Subresource != "status" {
		w.t.Errorf("unexpected write %v, want only apply of status", r)
	}
	if w.failures > 0 {
		w.failures--
		return apiserver.Fault{Refusal: w.failure}
	}
	body := struct {
		Status map[string]any `json:"status"`
	}{}
	if err := json.Unmarshal(r.Body, &body); err != nil {
		w.t.Error(err)
	}
	w.written = append(w.written, body.Status)
	return apiserver.Fault{}
}

// settle waits until the Controller has nothing left to do now or within its
// window.
func (w *world) settle() {
	w.t.Helper()
	for range 3 { // Two steps of a phase, and the echo of the second.
		synctest.Wait()
		time.Sleep(window)
	}
	synctest.Wait()
}

func (w *world) group(name string) *schedulingv1alpha1.PodGroup {
	w.t.Helper()
	group := apiserver.Find[schedulingv1alpha1.PodGroup](w.server, testNamespace, name)
	if group == nil {
		w.t.Fatalf("there is no PodGroup %s", name)
	}
	return group
}

func (w *world) changeGroup(name string, change func(group *schedulingv1alpha1.PodGroup)) {
	w.t.Helper()
	apiserver.Change(w.server, testNamespace, name, change)
}

func (w *world) create(pods ...*corev1.Pod) {
	w.t.Helper()
	for _, pod := range pods {
		apiserver.Add(w.server, pod)
	}
}

func (w *world) update(pods ...*corev1.Pod) {
	w.t.Helper()
	for _, pod := range pods {
		apiserver.Change(w.server, pod.Namespace, pod.Name, func(stored *corev1.Pod) { pod.DeepCopyInto(stored) })
	}
}

func (w *world) remove(pods ...*corev1.Pod) {
	w.t.Helper()
	for _, pod := range pods {
		apiserver.Remove[corev1.Pod](w.server, pod.Namespace, pod.Name)
	}
}

// phases are the phases of those writes that changed it.
func (w *world) phases() []string {
	var phases []string
	for _, write := range w.written {
		phase := fmt.Sprint(write["phase"])
		if len(phases) == 0 || phases[len(phases)-1] != phase {
			phases = append(phases, phase)
		}
	}
	return phases
}

// failWrites makes the next n status writes fail with err.
func (w *world) failWrites(n int, err error) {
	w.failures, w.failure = n, err
}

func newGroup(name string, minMember int32) *schedulingv1alpha1.PodGroup {
	return &schedulingv1alpha1.PodGroup{
		ObjectMeta: metav1.ObjectMeta{Namespace: testNamespace, Name: name, UID: types.UID(name + "-uid")},
		Spec:       schedulingv1alpha1.PodGroupSpec{MinMember: minMember},
	}
}

// members are new Pods of a group, waiting for nodes.
func members(group string, n int) []*corev1.Pod {
	pods := make([]*corev1.Pod, n)
	for i := range pods {
		pods[i] = &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: testNamespace,
				Name:      fmt.Sprintf("%s-%d", group, i),
				UID:       types.UID(fmt.Sprintf("%s-%d-uid", group, i)),
				Labels:    map[string]string{schedulingv1alpha1.LabelPodGroup: group},
			},
			Status: corev1.PodStatus{Phase: corev1.PodPending},
		}
	}
	return pods
}

// in are copies of Pods, placed and in a phase.
func in(phase corev1.PodPhase, pods ...*corev1.Pod) []*corev1.Pod {
	changed := make([]*corev1.Pod, len(pods))
	for i, pod := range pods {
		changed[i] = pod.DeepCopy()
		changed[i].Spec.NodeName = "node-1"
		changed[i].Status.Phase = phase
	}
	return changed
}
