// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
)

// Recording is all that happened to the Frameworks and Pods of a namespace,
// whoever did it, in the order in which it was stored.
type Recording struct {
	stop   context.CancelFunc
	done   sync.WaitGroup
	mu     sync.Mutex
	events []event
	// troubles are why the recording may have gaps.
	troubles []string
}

// event is what a watch told. Exactly one of framework and pod is not nil.
type event struct {
	// version is the resource version, which all kinds share: etcd counts its
	// writes.
	version   uint64
	gone      bool
	framework *frameworkv1.Framework
	pod       *corev1.Pod
}

// Record begins to record a namespace.
func (c *Cluster) Record(t testing.TB, namespace string) *Recording {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	r := &Recording{stop: stop}
	t.Cleanup(func() { stop(); r.done.Wait() })

	frameworks, pods := c.Lockstep.FrameworkcontrollerV1().Frameworks(namespace), c.Kube.CoreV1().Pods(namespace)
	list, err := frameworks.List(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, watched := range []cache.WatchFuncWithContext{
		func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			return frameworks.Watch(ctx, o)
		},
		func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) { return pods.Watch(ctx, o) },
	} {
		watcher, err := watchtools.NewRetryWatcherWithContext(ctx, list.ResourceVersion, &cache.ListWatch{WatchFuncWithContext: watched})
		if err != nil {
			t.Fatal(err)
		}
		r.done.Go(func() { r.collect(ctx, watcher) })
	}
	return r
}

func (r *Recording) collect(ctx context.Context, watcher watch.Interface) {
	defer watcher.Stop()
	for told := range watcher.ResultChan() {
		if told.Type == watch.Bookmark {
			continue
		}
		recorded, err := newEvent(told.Object)
		recorded.gone = told.Type == watch.Deleted
		r.mu.Lock()
		if err != nil {
			r.troubles = append(r.troubles, err.Error())
		} else {
			r.events = append(r.events, recorded)
		}
		r.mu.Unlock()
	}
	if ctx.Err() == nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.troubles = append(r.troubles, "a watch has ended too early")
	}
}

func newEvent(object runtime.Object) (event, error) {
	var e event
	var version string
	switch object := object.(type) {
	case *frameworkv1.Framework:
		e.framework, version = object, object.ResourceVersion
	case *corev1.Pod:
		e.pod, version = object, object.ResourceVersion
	default:
		return e, fmt.Errorf("the watch told of %T: %+v", object, object)
	}
	var err error
	if e.version, err = strconv.ParseUint(version, 10, 64); err != nil {
		return e, fmt.Errorf("resource version: %w", err)
	}
	return e, nil
}

// Check fails the test for everything in the recording so far that the
// consistency guarantees rule out. It does not end the recording.
func (r *Recording) Check(t testing.TB) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, trouble := range r.troubles {
		t.Errorf("the recording may have gaps: %s", trouble)
	}
	slices.SortStableFunc(r.events, func(a, b event) int {
		switch {
		case a.version < b.version:
			return -1
		case a.version > b.version:
			return 1
		}
		return 0
	})
	for i, broken := range brokenGuarantees(r.events) {
		if i == 10 {
			t.Error("… and more")
			break
		}
		t.Error(broken)
	}
	if len(r.events) == 0 {
		t.Error("nothing was recorded")
	}
}

// Pods is how many Pods have been made.
func (r *Recording) Pods() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	seen := map[string]bool{}
	for _, e := range r.events {
		if e.pod != nil {
			seen[string(e.pod.UID)] = true
		}
	}
	return len(seen)
}
