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

// claimKinds are the resources that the plugin DynamicResources reads. The plugin stays on even if the API server does
// not serve them, and then sees no objects: its feature gate is locked on, and without the plugin Pods with claims
// would run without their devices.
var claimKinds = []struct {
	resource     schema.GroupVersionResource
	object, list runtime.Object
}{
	{resourceClaims, &resourcev1.ResourceClaim{}, &resourcev1.ResourceClaimList{}},
	{resourceSlices, &resourcev1.ResourceSlice{}, &resourcev1.ResourceSliceList{}},
	{deviceClasses, &resourcev1.DeviceClass{}, &resourcev1.DeviceClassList{}},
}

// FillIn adds an informer to the factory for each resource that the API server does not serve and that the scheduler
// can't do without. These informers sync at once and never see an object. Call FillIn before the scheduler is created,
// because a factory keeps the first informer that is requested for a resource.
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

// TellPods makes the scheduler report to Pods that their claims do not exist, if the API server does not serve claims.
// For that it disables DynamicResources at PreEnqueue, where the plugin would keep such a Pod out of the queue without
// a message. The plugin then refuses the Pod in its scheduling cycle, and the Pod's condition and an event give the
// reason.
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

// IsWatchListSemanticsUnSupported makes the informer call List. Otherwise the informer would get the list from a watch,
// and wait for the end of the list for ever.
func (noObjects) IsWatchListSemanticsUnSupported() bool { return true }
