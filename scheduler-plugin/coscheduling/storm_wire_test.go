// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"maps"
	"slices"
	"strconv"
	"sync"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	clienttesting "k8s.io/client-go/testing"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
)

// wires are the watches of one fake API server, which may break. An informer whose watch
// has broken is deaf for a second, until it lists anew: what was deleted meanwhile is not
// in the list, and what was deleted and made again comes as one update. The lock of the
// fake API server guards them.
type wires struct {
	tracker clienttesting.ObjectTracker
	live    map[string][]*wire // by what they watch
	// buried are the objects that were deleted, for watches that begin after a list that
	// had them. The tracker of the fake API server forgets them.
	buried map[schema.GroupVersionResource][]grave
	// broke is how often the watch of each kind has broken since the scheduler was
	// launched. An informer waits for twice as long before each list.
	broke map[string]int
}

// grave is an object that was deleted, and the resource version of its deletion.
type grave struct {
	version int64
	object  apiruntime.Object
}

// wire is one watch.
type wire struct {
	inner  watch.Interface
	first  []watch.Event
	events chan watch.Event
	stop   func()
	ended  chan struct{}
	broken bool // set before the inner watch ends
}

func newWires(fake *clienttesting.Fake, tracker clienttesting.ObjectTracker) *wires {
	w := &wires{tracker: tracker, live: map[string][]*wire{}, buried: map[schema.GroupVersionResource][]grave{}, broke: map[string]int{}}
	fake.PrependWatchReactor("*", w.onWatch)
	return w
}

// kindsOf are the kinds of the resources of which objects are deleted.
var kindsOf = map[string]schema.GroupVersionKind{
	podResource.Resource:         corev1.SchemeGroupVersion.WithKind("Pod"),
	classResource.Resource:       schedulingv1.SchemeGroupVersion.WithKind("PriorityClass"),
	budgetResource.Resource:      policyv1.SchemeGroupVersion.WithKind("PodDisruptionBudget"),
	claimResource.Resource:       corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaim"),
	deviceClaimResource.Resource: resourcev1.SchemeGroupVersion.WithKind("ResourceClaim"),
	sliceResource.Resource:       resourcev1.SchemeGroupVersion.WithKind("ResourceSlice"),
	nodeResource.Resource:        corev1.SchemeGroupVersion.WithKind("Node"),
	groupResource.Resource:       schedulingv1alpha1.SchemeGroupVersion.WithKind("PodGroup"),
}

func (w *wires) onWatch(action clienttesting.Action) (bool, watch.Interface, error) {
	watching := action.(clienttesting.WatchActionImpl)
	inner, err := w.tracker.Watch(action.GetResource(), action.GetNamespace(), watching.ListOptions)
	if err != nil {
		return true, nil, err
	}
	broken := newWire(inner)
	since, _ := strconv.ParseInt(watching.ListOptions.ResourceVersion, 10, 64)
	for _, g := range w.buried[action.GetResource()] {
		if g.version > since {
			broken.first = append(broken.first, watch.Event{Type: watch.Deleted, Object: g.object})
		}
	}
	kind := action.GetResource().Resource
	w.live[kind] = append(w.live[kind], broken)
	go broken.pump()
	return true, broken, nil
}

// newWire makes a wire that shows the events of a watch once it is pumped. It ends when it is
// stopped before its events are read.
func newWire(inner watch.Interface) *wire {
	w := &wire{inner: inner, events: make(chan watch.Event), ended: make(chan struct{})}
	w.stop = sync.OnceFunc(func() {
		inner.Stop()
		close(w.ended)
	})
	return w
}

// ResultChan implements watch.Interface.
func (w *wire) ResultChan() <-chan watch.Event { return w.events }

// Stop implements watch.Interface.
func (w *wire) Stop() { w.stop() }

func (w *wire) pump() {
	defer close(w.events)
	for _, event := range w.first {
		if !w.send(event) {
			return
		}
	}
	for event := range w.inner.ResultChan() {
		if !w.send(event) {
			return
		}
	}
	if w.broken {
		w.send(watch.Event{Type: watch.Error, Object: &metav1.Status{
			Status: metav1.StatusFailure, Reason: metav1.StatusReasonExpired, Code: 410, Message: "the watch has broken"}})
	}
}

func (w *wire) send(event watch.Event) bool {
	select {
	case w.events <- event:
		return true
	case <-w.ended:
		return false
	}
}

// kinds are those of the watches that may break now.
func (w *wires) kinds() []string {
	const most = 2
	return slices.DeleteFunc(slices.Sorted(maps.Keys(w.live)), func(kind string) bool {
		return w.broke[kind] >= most || !slices.Contains([]string{"pods", "nodes", "podgroups", "priorityclasses", "poddisruptionbudgets"}, kind)
	})
}

// cut breaks the watches of a kind. What has happened before still comes through.
func (w *wires) cut(kind string) {
	for _, broken := range w.live[kind] {
		broken.broken = true
		broken.inner.Stop()
	}
	delete(w.live, kind)
	w.broke[kind]++
}

// renew is for a new scheduler, whose informers have waited for nothing yet.
func (w *wires) renew() {
	clear(w.broke)
	clear(w.live)
}

// bury deletes an object for good.
func (w *wires) bury(resource schema.GroupVersionResource, namespace, name string) {
	object, err := w.tracker.Get(resource, namespace, name)
	if err != nil {
		panic(err)
	}
	// The deletion gets a resource version of its own, which the tracker does not give it.
	if err := w.tracker.Update(resource, object, namespace); err != nil {
		panic(err)
	}
	if err := w.tracker.Delete(resource, namespace, name); err != nil {
		panic(err)
	}
	kind := kindsOf[resource.Resource]
	for _, of := range otherDialects {
		if resource == of.Resource() {
			kind = of.Kind()
		}
	}
	list, err := w.tracker.List(resource, kind, "")
	if err != nil {
		panic(err)
	}
	accessor, err := meta.ListAccessor(list)
	if err != nil {
		panic(err)
	}
	version, err := strconv.ParseInt(accessor.GetResourceVersion(), 10, 64)
	if err != nil {
		panic(err)
	}
	w.buried[resource] = append(w.buried[resource], grave{version, object})
}
