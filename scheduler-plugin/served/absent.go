// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package served

import (
	"time"

	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/kube"
)

// claimKinds are what the plugin DynamicResources works with. Its feature gate is
// locked, and without the plugin Pods with claims would run without their devices.
// So the plugin stays, and sees no objects.
var claimKinds = []struct {
	resource     schema.GroupVersionResource
	object, list runtime.Object
}{
	{resourceClaims, &resourcev1.ResourceClaim{}, &resourcev1.ResourceClaimList{}},
	{resourceSlices, &resourcev1.ResourceSlice{}, &resourcev1.ResourceSliceList{}},
	{deviceClasses, &resourcev1.DeviceClass{}, &resourcev1.DeviceClassList{}},
}

// FillIn gives an informer factory informers of the kinds that the scheduler can't
// do without and the API server does not serve: they sync at once and never see an
// object. Whoever asks the factory for such an informer first determines what it is,
// so FillIn comes before the scheduler is made.
func (a *APIs) FillIn(factory informers.SharedInformerFactory) {
	for _, kind := range claimKinds {
		if a.serves(kind.resource) {
			continue
		}
		factory.InformerFor(kind.object, func(_ kubernetes.Interface, resync time.Duration) cache.SharedIndexInformer {
			return cache.NewSharedIndexInformer(noObjects{kind.list}, kind.object, resync,
				cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
		})
	}
}

// TellPods lets Pods be told that their claims are not there. DynamicResources
// would keep such a Pod out of the queue until its claim appears, and say nothing
// to anybody. Without that extension point the same plugin refuses the Pod when its
// turn comes, and the Pod's condition and an event give the reason.
func (a *APIs) TellPods(profiles kube.Profiles) {
	if len(a.missingForClaims()) > 0 {
		profiles.DisablePreEnqueue(kube.DynamicResources)
	}
}

// noObjects lists nothing and never sees a change.
type noObjects struct {
	list runtime.Object
}

// List returns an empty list.
func (n noObjects) List(metav1.ListOptions) (runtime.Object, error) {
	return n.list.DeepCopyObject(), nil
}

// Watch returns a watch that stays open and silent.
func (noObjects) Watch(metav1.ListOptions) (watch.Interface, error) {
	return watch.NewProxyWatcher(make(chan watch.Event)), nil
}

// IsWatchListSemanticsUnSupported makes the informer call List: it would wait for
// the end of a list that comes as a watch.
func (noObjects) IsWatchListSemanticsUnSupported() bool { return true }
