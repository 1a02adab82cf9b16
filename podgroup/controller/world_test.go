// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"
	kubescheme "k8s.io/client-go/kubernetes/scheme"
	clienttesting "k8s.io/client-go/testing"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	lockstepfake "github.com/lockstep-k8s/lockstep/client/clientset/versioned/fake"
	"github.com/lockstep-k8s/lockstep/client/clientset/versioned/scheme"
)

const testNamespace = "team"

// world is a fake API server with a running Controller, in a bubble of
// testing/synctest: its clock stands still while anything is left to do.
type world struct {
	t        *testing.T
	lockstep *lockstepfake.Clientset
	kube     *fake.Clientset
}

// inWorld runs a test beside a Controller that sees the given groups.
func inWorld(t *testing.T, groups []*schedulingv1alpha1.PodGroup, test func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, lockstep: newLockstepClient(t, groups...), kube: newKubeClient()}
		c, err := New(w.lockstep, w.kube)
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- c.Run(ctx, 2) }()
		w.settle()

		test(w)

		stop()
		if err := <-ended; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
}

// newLockstepClient is a fake client with server-side apply. That of the
// generated package has no schema of our types; this one deduces it.
func newLockstepClient(t *testing.T, groups ...*schedulingv1alpha1.PodGroup) *lockstepfake.Clientset {
	t.Helper()
	tracker := clienttesting.NewFieldManagedObjectTracker(scheme.Scheme, scheme.Codecs.UniversalDecoder(), managedfields.NewDeducedTypeConverter())
	for _, group := range groups {
		if err := tracker.Add(group); err != nil {
			t.Fatal(err)
		}
	}
	client := &lockstepfake.Clientset{}
	serve(&client.Fake, tracker)
	return client
}

// newKubeClient is a fake client without the field management that makes the
// generated package's slow with a thousand Pods.
func newKubeClient() *fake.Clientset {
	client := &fake.Clientset{}
	serve(&client.Fake, clienttesting.NewObjectTracker(kubescheme.Scheme, kubescheme.Codecs.UniversalDecoder()))
	return client
}

func serve(client *clienttesting.Fake, tracker clienttesting.ObjectTracker) {
	client.AddReactor("*", "*", clienttesting.ObjectReaction(tracker))
	client.AddWatchReactor("*", func(action clienttesting.Action) (bool, watch.Interface, error) {
		opts := metav1.ListOptions{}
		if w, ok := action.(clienttesting.WatchActionImpl); ok {
			opts = w.ListOptions
		}
		watcher, err := tracker.Watch(action.GetResource(), action.GetNamespace(), opts)
		return true, watcher, err
	})
}

// numberWrites gives what an apply returns a resource version, as an API server
// does and the fake does not.
func numberWrites(client *lockstepfake.Clientset) {
	store := client.ReactionChain[0]
	version := 1
	client.PrependReactor("patch", "podgroups", func(action clienttesting.Action) (bool, runtime.Object, error) {
		handled, obj, err := store.React(action)
		if group, ok := obj.(*schedulingv1alpha1.PodGroup); ok {
			version++
			group.ResourceVersion = strconv.Itoa(version)
		}
		return handled, obj, err
	})
}

// settle waits until the Controller has nothing left to do now or within its
// window.
func (w *world) settle() {
	w.t.Helper()
	for range 3 { // Two steps of a phase, and the echo of the second.
		synctest.Wait()
		time.Sleep(defaultWindow)
	}
	synctest.Wait()
}

func (w *world) group(name string) *schedulingv1alpha1.PodGroup {
	w.t.Helper()
	group, err := w.lockstep.SchedulingV1alpha1().PodGroups(testNamespace).Get(w.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	return group
}

func (w *world) create(pods ...*corev1.Pod) {
	w.t.Helper()
	for _, pod := range pods {
		if _, err := w.kube.CoreV1().Pods(pod.Namespace).Create(w.t.Context(), pod, metav1.CreateOptions{}); err != nil {
			w.t.Fatal(err)
		}
	}
}

func (w *world) update(pods ...*corev1.Pod) {
	w.t.Helper()
	for _, pod := range pods {
		if _, err := w.kube.CoreV1().Pods(pod.Namespace).Update(w.t.Context(), pod, metav1.UpdateOptions{}); err != nil {
			w.t.Fatal(err)
		}
	}
}

func (w *world) remove(pods ...*corev1.Pod) {
	w.t.Helper()
	for _, pod := range pods {
		if err := w.kube.CoreV1().Pods(pod.Namespace).Delete(w.t.Context(), pod.Name, metav1.DeleteOptions{}); err != nil {
			w.t.Fatal(err)
		}
	}
}

// writes are the statuses that the Controller wrote, in order.
func (w *world) writes() []map[string]any {
	w.t.Helper()
	return statusWrites(w.t, w.lockstep)
}

func statusWrites(t *testing.T, client *lockstepfake.Clientset) []map[string]any {
	t.Helper()
	var writes []map[string]any
	for _, action := range client.Actions() {
		patch, ok := action.(clienttesting.PatchAction)
		if !ok {
			continue
		}
		if patch.GetPatchType() != types.ApplyPatchType || patch.GetSubresource() != "status" {
			t.Errorf("write by %s of subresource %q, want only apply of status", patch.GetPatchType(), patch.GetSubresource())
		}
		body := struct {
			Status map[string]any `json:"status"`
		}{}
		if err := json.Unmarshal(patch.GetPatch(), &body); err != nil {
			t.Fatal(err)
		}
		writes = append(writes, body.Status)
	}
	return writes
}

// phases are the phases of those writes that changed it.
func (w *world) phases() []string {
	w.t.Helper()
	return phasesOf(w.writes())
}

func phasesOf(writes []map[string]any) []string {
	var phases []string
	for _, write := range writes {
		phase := fmt.Sprint(write["phase"])
		if len(phases) == 0 || phases[len(phases)-1] != phase {
			phases = append(phases, phase)
		}
	}
	return phases
}

// failWrites makes the next n status writes fail with err.
func (w *world) failWrites(n int, err error) {
	w.lockstep.PrependReactor("patch", "podgroups", func(clienttesting.Action) (bool, runtime.Object, error) {
		if n == 0 {
			return false, nil, nil
		}
		n--
		return true, nil, err
	})
}

func newGroup(name string, minMember int32) *schedulingv1alpha1.PodGroup {
	return &schedulingv1alpha1.PodGroup{
		ObjectMeta: metav1.ObjectMeta{Namespace: testNamespace, Name: name, UID: types.UID(name + "-uid"), Generation: 1},
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
