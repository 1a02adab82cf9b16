//go:build e2e

// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package soak

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	"github.com/lockstep-k8s/lockstep/client/informers/externalversions"
	"github.com/lockstep-k8s/lockstep/internal/localenv/jobs"
)

// inFlight is how many Frameworks there are at a time: enough to keep two cores busy.
const inFlight = 40

// traffic creates Frameworks, deletes each when it is completed, and creates another for each that is gone.
type traffic struct {
	namespace string
	// gone gets a value for each Framework that is gone, and completed the name of each that is to be deleted.
	gone      chan struct{}
	completed chan string
	ended     atomic.Int64
	stopped   context.CancelFunc
	users     sync.WaitGroup
}

func startTraffic(t *testing.T, namespace string) *traffic {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	// What nobody reads would hold the informer up: each Framework is there once.
	c := &traffic{namespace: namespace, gone: make(chan struct{}, inFlight), completed: make(chan string, inFlight), stopped: stop}
	factory := externalversions.NewSharedInformerFactoryWithOptions(cluster.Lockstep, 0, externalversions.WithNamespace(namespace))
	_, err := factory.Frameworkcontroller().V1().Frameworks().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(is any) { c.see(nil, is) },
		UpdateFunc: func(was, is any) { c.see(was, is) },
		DeleteFunc: func(any) {
			c.ended.Add(1)
			c.gone <- struct{}{}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	t.Cleanup(factory.Shutdown)
	t.Cleanup(c.users.Wait)
	t.Cleanup(stop)
	for range inFlight {
		c.gone <- struct{}{}
	}
	var number atomic.Int64
	for range 8 {
		c.users.Go(func() { c.create(ctx, t, &number) })
		c.users.Go(func() { c.delete(ctx, t) })
	}
	return c
}

// see has a Framework deleted that was not completed before, and is now.
func (c *traffic) see(was, is any) {
	if !isCompleted(was) && isCompleted(is) {
		c.completed <- is.(*frameworkv1.Framework).Name
	}
}

func isCompleted(object any) bool {
	fw, ok := object.(*frameworkv1.Framework)
	return ok && fw.Status != nil && fw.Status.State == frameworkv1.FrameworkCompleted
}

// create creates a Framework for each that is gone, until ctx ends.
func (c *traffic) create(ctx context.Context, t *testing.T, number *atomic.Int64) {
	for {
		select {
		case <-c.gone:
		case <-ctx.Done():
			return
		}
		i := int(number.Add(1))
		fw := jobs.MakeLife(fmt.Sprintf("life%d", i), i, time.Second, "1")
		_, err := cluster.Lockstep.FrameworkcontrollerV1().Frameworks(c.namespace).Create(ctx, fw, metav1.CreateOptions{})
		if err != nil && ctx.Err() == nil {
			t.Errorf("creating a Framework: %v", err)
		}
	}
}

// delete deletes the Frameworks that are completed, until ctx ends.
func (c *traffic) delete(ctx context.Context, t *testing.T) {
	foreground := metav1.DeletePropagationForeground
	for {
		select {
		case name := <-c.completed:
			err := cluster.Lockstep.FrameworkcontrollerV1().Frameworks(c.namespace).Delete(ctx, name, metav1.DeleteOptions{PropagationPolicy: &foreground})
			if err != nil && !apierrors.IsNotFound(err) && ctx.Err() == nil {
				t.Errorf("deleting a Framework: %v", err)
			}
		case <-ctx.Done():
			return
		}
	}
}

// stop ends the traffic, and returns how many Frameworks came and went. What there is left goes with the
// namespace.
func (c *traffic) stop() int64 {
	ended := c.ended.Load()
	c.stopped()
	c.users.Wait()
	return ended
}
