// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package conformance tests those behaviours of an API server on which Lockstep's tests rely. The same cases run on the
// server in memory and on a real one, so that the two can't diverge.
package conformance

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/client/clientset/versioned"
	frameworkclient "github.com/lockstep-k8s/lockstep/client/clientset/versioned/typed/framework/v1"
	schedulingclient "github.com/lockstep-k8s/lockstep/client/clientset/versioned/typed/scheduling/v1alpha1"
)

// patience is how long anything may take that a case waits for.
const patience = time.Minute

// Test is one case. It runs on a server, in a namespace that no other case uses.
type Test func(t *testing.T, config *rest.Config, namespace string)

// Run runs all cases by calling `run` for each. The server must have Lockstep's custom resources and a garbage
// collector. Nothing on it may act on Frameworks, PodGroups, or Pods with the schedulerName "nobody".
func Run(t *testing.T, run func(t *testing.T, test Test)) {
	t.Helper()
	for _, cases := range []map[string]func(*env){objects, patches, deletions, watches} {
		for _, name := range slices.Sorted(maps.Keys(cases)) {
			t.Run(name, func(t *testing.T) {
				run(t, func(t *testing.T, config *rest.Config, namespace string) { cases[name](newEnv(t, config, namespace)) })
			})
		}
	}
}

// env is what a case works with.
type env struct {
	*testing.T
	ctx       context.Context
	kube      kubernetes.Interface
	lockstep  versioned.Interface
	metadata  metadata.Interface
	namespace string
}

func newEnv(t *testing.T, config *rest.Config, namespace string) *env {
	t.Helper()
	e := &env{T: t, ctx: t.Context(), namespace: namespace}
	core := rest.CopyConfig(config)
	core.ContentType = "application/vnd.kubernetes.protobuf"
	core.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
	var err error
	e.kube, err = kubernetes.NewForConfig(core)
	e.must(err)
	e.lockstep, err = versioned.NewForConfig(config)
	e.must(err)
	e.metadata, err = metadata.NewForConfig(config)
	e.must(err)
	e.Cleanup(func() {
		// There is no kubelet to end the Pods, and their owners may wait for that.
		if err := e.pods().DeleteCollection(context.Background(), metav1.DeleteOptions{GracePeriodSeconds: new(int64)}, metav1.ListOptions{}); err != nil {
			e.Error(err)
		}
	})
	return e
}

func (e *env) must(err error) {
	e.Helper()
	if err != nil {
		e.Fatal(err)
	}
}

// refused checks that a request failed, and why.
func (e *env) refused(err error, is func(error) bool, message string) {
	e.Helper()
	if err == nil || !is(err) || !strings.Contains(err.Error(), message) {
		e.Errorf("the error is %v, want one with %q of the expected reason", err, message)
	}
}

// eventually waits for a condition.
func (e *env) eventually(what string, condition func() bool) {
	e.Helper()
	for end := time.Now().Add(patience); !condition(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			e.Fatalf("it never came to be that %s", what)
		}
	}
}

func (e *env) pods() corev1client.PodInterface { return e.kube.CoreV1().Pods(e.namespace) }
func (e *env) configMaps() corev1client.ConfigMapInterface {
	return e.kube.CoreV1().ConfigMaps(e.namespace)
}
func (e *env) podGroups() schedulingclient.PodGroupInterface {
	return e.lockstep.SchedulingV1alpha1().PodGroups(e.namespace)
}
func (e *env) frameworks() frameworkclient.FrameworkInterface {
	return e.lockstep.FrameworkcontrollerV1().Frameworks(e.namespace)
}

// newPod returns a Pod that no scheduler places.
func newPod(name string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PodSpec{
			SchedulerName: "nobody",
			Containers:    []corev1.Container{{Name: "main", Image: "busybox"}},
		},
	}
}

func newConfigMap(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

func newPodGroup(name string) *schedulingv1alpha1.PodGroup {
	return &schedulingv1alpha1.PodGroup{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: schedulingv1alpha1.PodGroupSpec{MinMember: 2}}
}

func (e *env) createPod(pod *corev1.Pod) *corev1.Pod {
	e.Helper()
	created, err := e.pods().Create(e.ctx, pod, metav1.CreateOptions{})
	e.must(err)
	return created
}

func (e *env) createConfigMap(configMap *corev1.ConfigMap) *corev1.ConfigMap {
	e.Helper()
	created, err := e.configMaps().Create(e.ctx, configMap, metav1.CreateOptions{})
	e.must(err)
	return created
}

func (e *env) createPodGroup(group *schedulingv1alpha1.PodGroup) *schedulingv1alpha1.PodGroup {
	e.Helper()
	created, err := e.podGroups().Create(e.ctx, group, metav1.CreateOptions{})
	e.must(err)
	return created
}

// bind gives a Pod a node, which need not exist. bind returns when the API server's watch cache shows the node:
// deletions look there, and remove a Pod without a node at once.
func (e *env) bind(name string) error {
	e.Helper()
	binding := &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Name: name}, Target: corev1.ObjectReference{Kind: "Node", Name: "nowhere"}}
	if err := e.pods().Bind(e.ctx, binding, metav1.CreateOptions{}); err != nil {
		return err
	}
	e.eventually("the watch cache has the node", func() bool {
		pod, err := e.pods().Get(e.ctx, name, metav1.GetOptions{ResourceVersion: "0"})
		if apierrors.IsNotFound(err) {
			return false // It has not come to know the Pod.
		}
		e.must(err)
		return pod.Spec.NodeName != ""
	})
	return nil
}

// ownedBy gives an object a controller.
func ownedBy(object metav1.Object, kind string, owner metav1.Object) {
	yes := true
	reference := metav1.OwnerReference{APIVersion: "v1", Kind: kind, Name: owner.GetName(), UID: owner.GetUID(), Controller: &yes, BlockOwnerDeletion: &yes}
	object.SetOwnerReferences([]metav1.OwnerReference{reference})
}

// recording has the events of a watch so far.
type recording struct {
	env    *env
	mu     sync.Mutex
	events []string
}

// record records the events of a watch until the case ends. It notes each event as a text with its type, the object's
// name, and whether the object is being deleted.
func (e *env) record(w watch.Interface, err error) *recording {
	e.Helper()
	e.must(err)
	r := &recording{env: e}
	done := make(chan struct{})
	e.Cleanup(func() {
		w.Stop()
		<-done
	})
	go func() {
		defer close(done)
		for event := range w.ResultChan() {
			if isPassing(event) {
				continue
			}
			r.mu.Lock()
			r.events = append(r.events, describe(event))
			r.mu.Unlock()
		}
	}()
	return r
}

// isPassing reports whether an event is a bookmark, which an API server may send at any time.
func isPassing(event watch.Event) bool {
	accessor, err := meta.Accessor(event.Object)
	return err == nil && event.Type == watch.Bookmark && accessor.GetAnnotations()[metav1.InitialEventsAnnotationKey] == ""
}

func describe(event watch.Event) string {
	accessor, err := meta.Accessor(event.Object)
	if err != nil {
		return fmt.Sprintf("%s %v", event.Type, event.Object)
	}
	if event.Type == watch.Bookmark {
		return fmt.Sprintf("BOOKMARK initial-events-end=%s", accessor.GetAnnotations()[metav1.InitialEventsAnnotationKey])
	}
	text := fmt.Sprintf("%s %s", event.Type, accessor.GetName())
	if accessor.GetDeletionTimestamp() != nil {
		text += " deleting"
	}
	return text
}

// shows waits until the events are those, and no others.
func (r *recording) shows(want ...string) {
	r.env.Helper()
	var got []string
	r.env.waitFor(func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		got = slices.Clone(r.events)
		return len(got) >= len(want)
	})
	if !slices.Equal(got, want) {
		r.env.Errorf("the events are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// waitFor waits for a condition for a few seconds.
func (e *env) waitFor(condition func() bool) {
	for end := time.Now().Add(10 * time.Second); !condition() && time.Now().Before(end); {
		time.Sleep(20 * time.Millisecond)
	}
}

func uidPrecondition(uid types.UID) metav1.DeleteOptions {
	return metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(uid))}
}

func propagation(policy metav1.DeletionPropagation) metav1.DeleteOptions {
	return metav1.DeleteOptions{PropagationPolicy: &policy}
}
