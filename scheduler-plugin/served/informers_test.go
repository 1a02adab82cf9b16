// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package served

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
)

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
