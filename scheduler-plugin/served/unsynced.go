// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package served

import (
	"context"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/klog/v2"
)

const (
	// unsyncedPatience is how long informers may take before it is said that they
	// do, and the time until it is said again.
	unsyncedPatience = 30 * time.Second
	// unsyncedPoll is how often they are looked at.
	unsyncedPoll = time.Second
	// maxReasons is of how many resources the reason is looked for. Of many it is
	// mostly the same.
	maxReasons = 3
	// reasonsTimeout bounds the search for reasons.
	reasonsTimeout = 10 * time.Second
)

// Unsynced says which informers keep the scheduler from scheduling.
type Unsynced struct {
	// Informers and Dynamic are the scheduler's informers. Dynamic may be nil.
	Informers informers.SharedInformerFactory
	Dynamic   dynamicinformer.DynamicSharedInformerFactory
	// Client finds out why.
	Client dynamic.Interface
}

// Run returns when all informers have synced, or ctx ends. While some have not, half
// a minute after they were started, it logs a line, and another one each half
// minute.
//
// The reason in the line is what a list of the same resource meets at that moment:
// informers don't tell their errors to anybody who has not asked before they start.
func (u Unsynced) Run(ctx context.Context) {
	var since, said time.Time
	_ = wait.PollUntilContextCancel(ctx, unsyncedPoll, false, func(ctx context.Context) (bool, error) {
		started, unsynced := u.look()
		now := time.Now()
		switch {
		case started == 0:
			// A replica that does not lead may not have begun yet.
			return false, nil
		case len(unsynced) == 0:
			return true, nil
		case since.IsZero():
			since, said = now, now
		case now.Sub(said) >= unsyncedPatience:
			said = now
			klog.FromContext(ctx).Error(nil, "Nothing is scheduled, because informers have not synced",
				"for", now.Sub(since).Round(time.Second), "informers", list(unsynced), "reasons", u.reasons(ctx, unsynced))
		}
		return false, nil
	})
}

// look counts the informers that were started, and finds those that have not
// synced.
func (u Unsynced) look() (started int, unsynced []schema.GroupVersionResource) {
	// Factories tell of their informers when somebody waits for them. A context
	// that has ended makes that a question.
	ended, end := context.WithCancel(context.Background())
	end()
	synced := map[schema.GroupVersionResource]bool{}
	for kind, ok := range u.Informers.WaitForCacheSyncWithContext(ended).Synced {
		synced[resourceOf(kind)] = ok
	}
	if u.Dynamic != nil {
		maps.Copy(synced, u.Dynamic.WaitForCacheSync(ended.Done()))
	}
	for resource, ok := range synced {
		if !ok {
			unsynced = append(unsynced, resource)
		}
	}
	slices.SortFunc(unsynced, func(a, b schema.GroupVersionResource) int { return strings.Compare(a.String(), b.String()) })
	return len(synced), unsynced
}

// list names resources, in their order by group version.
func list(resources []schema.GroupVersionResource) string {
	var parts []string
	for len(resources) > 0 {
		version := resources[0].GroupVersion()
		n := slices.IndexFunc(resources, func(r schema.GroupVersionResource) bool { return r.GroupVersion() != version })
		if n < 0 {
			n = len(resources)
		}
		parts = append(parts, describe(resources[:n]...))
		resources = resources[n:]
	}
	return strings.Join(parts, "; ")
}

// reasons says of the first resources what keeps them from being listed.
func (u Unsynced) reasons(ctx context.Context, resources []schema.GroupVersionResource) string {
	ctx, cancel := context.WithTimeout(ctx, reasonsTimeout)
	defer cancel()
	var parts []string
	for _, resource := range resources[:min(len(resources), maxReasons)] {
		reason := "can be listed, and is still being read"
		if _, err := u.Client.Resource(resource).List(ctx, metav1.ListOptions{Limit: 1}); err != nil {
			reason = err.Error()
		}
		parts = append(parts, resource.Resource+": "+reason)
	}
	return strings.Join(parts, "; ")
}

// resourceOf is the resource of an informer's type, such as *v1.Node.
func resourceOf(kind reflect.Type) schema.GroupVersionResource {
	object, ok := reflect.New(kind.Elem()).Interface().(runtime.Object)
	if ok {
		if kinds, _, err := scheme.Scheme.ObjectKinds(object); err == nil {
			resource, _ := meta.UnsafeGuessKindToResource(kinds[0])
			return resource
		}
	}
	return schema.GroupVersionResource{Resource: kind.String()}
}
