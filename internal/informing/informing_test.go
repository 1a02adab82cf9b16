// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package informing_test

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/lockstep-k8s/lockstep/internal/informing"
)

func TestAListIsCurrentUnlessAVersionIsAskedFor(t *testing.T) {
	for asked, want := range map[string]string{"0": "", "": "", "7": "7"} {
		options := metav1.ListOptions{ResourceVersion: asked}
		informing.WantCurrent(&options)
		if options.ResourceVersion != want {
			t.Errorf("of version %q: got %q, want %q", asked, options.ResourceVersion, want)
		}
	}
}

func TestManagedFieldsAreDroppedOfObjects(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a", ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "m"}}}}
	got, err := informing.DropManagedFields(pod)
	if kept, ok := got.(*corev1.Pod); err != nil || !ok || kept.Name != "a" || kept.ManagedFields != nil {
		t.Errorf("got %v (%v), want the Pod without managed fields", got, err)
	}
	gone := cache.DeletedFinalStateUnknown{Key: "ns/a"}
	if got, err := informing.DropManagedFields(gone); err != nil || got != any(gone) {
		t.Errorf("got %v (%v), want what is no object as it is", got, err)
	}
}

func TestWhatIsKeptOfAnObjectIsTheSameOnEveryWay(t *testing.T) {
	transform, reduce := informing.Keep(func(pod *corev1.Pod) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: pod.Name}}
	})
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a", Labels: map[string]string{"k": "v"}}}
	got, err := transform(pod)
	if kept, ok := got.(*corev1.Pod); err != nil || !ok || kept.Name != "a" || kept.Labels != nil {
		t.Errorf("the informer keeps %v (%v)", got, err)
	}
	if kept := reduce(pod); kept.GetName() != "a" || kept.GetLabels() != nil {
		t.Errorf("of an object from elsewhere %v is kept", kept)
	}
	other := &corev1.ConfigMap{}
	if got, err := transform(other); err != nil || got != any(other) || reduce(other) != metav1.Object(other) {
		t.Errorf("an object of another kind became %v (%v)", got, err)
	}
}

// TestAMissingRightIsLoggedOnceAMinute for each informer, and not at each try.
func TestAMissingRightIsLoggedOnceAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var tries, lines atomic.Int32
		logger := funcr.New(func(_, line string) {
			if strings.Contains(line, "forbidden") {
				lines.Add(1)
			}
		}, funcr.Options{})
		refused := func() error {
			tries.Add(1)
			return apierrors.NewForbidden(corev1.Resource("pods"), "", nil)
		}
		informer := informing.Namespaces(nil).Informer(&corev1.Pod{}, func(string) cache.ListerWatcher {
			return &cache.ListWatch{
				ListWithContextFunc:  func(context.Context, metav1.ListOptions) (runtime.Object, error) { return nil, refused() },
				WatchFuncWithContext: func(context.Context, metav1.ListOptions) (watch.Interface, error) { return nil, refused() },
			}
		})
		ctx, stop := context.WithCancel(klog.NewContext(t.Context(), logger))
		var running sync.WaitGroup
		running.Go(func() { informer.RunWithContext(ctx) })
		time.Sleep(150 * time.Second)
		stop()
		running.Wait()
		if tries.Load() < 5 || lines.Load() < 1 || lines.Load() > 3 {
			t.Errorf("%d tries in 150 s are %d lines in the log, want 3 at most", tries.Load(), lines.Load())
		}
	})
}
