// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package served

import (
	"bytes"
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/kubernetes/scheme"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"
)

// notServed answers every list and watch of a resource as an API server that does
// not serve it, while on is true.
func notServed(fake *clienttesting.Fake, resource string, on *atomic.Bool) {
	refuse := func() error {
		return &apierrors.StatusError{ErrStatus: metav1.Status{
			Status: metav1.StatusFailure, Code: 404, Reason: metav1.StatusReasonNotFound,
			Message: "the server could not find the requested resource",
		}}
	}
	fake.PrependReactor("list", resource, func(clienttesting.Action) (bool, runtime.Object, error) {
		return on.Load(), nil, refuse()
	})
}

func always() *atomic.Bool {
	on := &atomic.Bool{}
	on.Store(true)
	return on
}

func TestKindsThatAreNotServedSyncWithoutTheAPIServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		client := fake.NewClientset(&storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: "n"}})
		apis := &APIs{missing: asked}
		factory := informers.NewSharedInformerFactory(client, 0)
		apis.FillIn(factory)
		claims, slices, classes := factory.Resource().V1().ResourceClaims(), factory.Resource().V1().ResourceSlices(), factory.Resource().V1().DeviceClasses()
		_, _, _ = claims.Informer(), slices.Informer(), classes.Informer()
		nodes := factory.Storage().V1().CSINodes().Lister()

		factory.StartWithContext(ctx)
		if err := factory.WaitForCacheSyncWithContext(ctx).AsError(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour) // in the bubble: a watch that ended would be opened again
		synctest.Wait()
		for _, action := range client.Actions() {
			if action.GetResource().Group == resourcev1.GroupName {
				t.Errorf("the API server was asked to %s %s", action.GetVerb(), action.GetResource())
			}
		}
		if _, err := nodes.Get("n"); err != nil {
			t.Errorf("a kind that is served was not listed: %v", err)
		}
		if found, err := claims.Lister().ResourceClaims("default").Get("gpu"); !apierrors.IsNotFound(err) {
			t.Errorf("a claim was found: %v (%v)", found, err)
		}
		cancel()
		factory.Shutdown() // waits for the informers: they end when they are asked to
	})
}

func TestKindsThatAreServedComeFromTheAPIServer(t *testing.T) {
	client := fake.NewClientset(&resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: "gpu"}})
	factory := informers.NewSharedInformerFactory(client, 0)
	served(t, without("devicetaintrules")).FillIn(factory)
	classes := factory.Resource().V1().DeviceClasses().Lister()
	factory.StartWithContext(t.Context())
	if err := factory.WaitForCacheSyncWithContext(t.Context()).AsError(); err != nil {
		t.Fatal(err)
	}
	if _, err := classes.Get("gpu"); err != nil {
		t.Error(err)
	}
}

// unsyncedWorld is a scheduler's informers of CSINodes, which the API server does
// not serve while refused, and StorageClasses, and what is logged of them.
type unsyncedWorld struct {
	refused *atomic.Bool
	factory informers.SharedInformerFactory
	log     *bytes.Buffer
	ended   chan struct{}
}

func watchUnsynced(ctx context.Context) *unsyncedWorld {
	w := &unsyncedWorld{refused: always(), log: &bytes.Buffer{}, ended: make(chan struct{})}
	client := fake.NewClientset()
	notServed(&client.Fake, "csinodes", w.refused)
	w.factory = informers.NewSharedInformerFactory(client, 0)
	w.factory.Storage().V1().CSINodes().Informer()
	w.factory.Storage().V1().StorageClasses().Informer()
	asking := dynamicfake.NewSimpleDynamicClient(scheme.Scheme)
	notServed(&asking.Fake, "csinodes", w.refused)
	ctx = klog.NewContext(ctx, textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(w.log))))
	go func() {
		Unsynced{Informers: w.factory, Client: asking}.Run(ctx)
		close(w.ended)
	}()
	return w
}

func (w *unsyncedWorld) lines() []string {
	return strings.Split(strings.TrimSuffix(w.log.String(), "\n"), "\n")
}

func TestInformersThatDoNotSyncAreNamed(t *testing.T) {
	// One of them slows errors down by a clock of its own, which it has read outside
	// of the bubble.
	handlers := utilruntime.ErrorHandlers
	utilruntime.ErrorHandlers = nil
	t.Cleanup(func() { utilruntime.ErrorHandlers = handlers })
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		w := watchUnsynced(ctx)
		// A replica that does not lead yet has not started them.
		time.Sleep(time.Hour)
		w.factory.StartWithContext(ctx)
		time.Sleep(29 * time.Second)
		if w.log.Len() > 0 {
			t.Errorf("it was hasty:\n%s", w.log)
		}
		time.Sleep(3 * time.Second)
		synctest.Wait()
		if lines := w.lines(); len(lines) != 1 ||
			!strings.Contains(lines[0], `informers="csinodes of storage.k8s.io/v1"`) ||
			!strings.Contains(lines[0], "csinodes: the server could not find the requested resource") ||
			strings.Contains(lines[0], "storageclasses") {
			t.Errorf("after half a minute it said\n%s\nwant one line, with csinodes and the reason alone", w.log)
		}
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		if n := len(w.lines()); n < 10 || n > 11 {
			t.Errorf("%d lines after five and a half minutes, want one in each half", n)
		}
		w.refused.Store(false)
		time.Sleep(2 * time.Minute) // the informer's back-off
		n := w.log.Len()
		select {
		case <-w.ended:
		default:
			t.Error("it goes on although all have synced")
		}
		time.Sleep(time.Hour)
		if w.log.Len() > n {
			t.Error("it complains although all have synced")
		}
		cancel()
		w.factory.Shutdown()
	})
}

func TestManyInformersAreNamedInShort(t *testing.T) {
	got := list([]schema.GroupVersionResource{
		{Version: "v1", Resource: "nodes"}, {Version: "v1", Resource: "services"}, deviceClasses, resourceSlices,
	})
	if want := "nodes, services of v1; deviceclasses, resourceslices of resource.k8s.io/v1"; got != want {
		t.Errorf("they are %q, want %q", got, want)
	}
}

func TestInformersThatSyncAreNotTalkedAbout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		w := watchUnsynced(ctx)
		w.refused.Store(false)
		w.factory.StartWithContext(ctx)
		<-w.ended
		if w.log.Len() > 0 {
			t.Errorf("it said\n%s", w.log)
		}
		cancel()
		w.factory.Shutdown()
	})
}
