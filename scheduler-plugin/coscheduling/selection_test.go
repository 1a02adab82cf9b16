// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"cmp"
	"maps"
	"slices"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	clienttesting "k8s.io/client-go/testing"
)

// selections have a fake API server select Pods by phase and labels, as a real one does: what
// stops being selected is seen as deleted, as it was before. The lock of the fake API server
// guards them.
type selections struct {
	tracker clienttesting.ObjectTracker
	// living and ended are how many events the two watches have shown.
	living, ended atomic.Int32
	// listed are the Pods in each list that a watch may go on from.
	listed map[listing]map[types.UID]*corev1.Pod
}

// listing is a list of what is selected, as of a version.
type listing struct{ labels, fields, version string }

// selectPods has a fake API server select Pods.
func selectPods(fake *clienttesting.Fake, tracker clienttesting.ObjectTracker) *selections {
	s := &selections{tracker: tracker, listed: map[listing]map[types.UID]*corev1.Pod{}}
	fake.PrependReactor("list", podResource.Resource, s.onList)
	fake.PrependWatchReactor(podResource.Resource, func(action clienttesting.Action) (bool, watch.Interface, error) {
		watching := action.(clienttesting.WatchActionImpl)
		inner, err := tracker.Watch(action.GetResource(), action.GetNamespace(), watching.ListOptions)
		if err != nil {
			return true, nil, err
		}
		selected := newWire(inner, s.of(watching))
		go selected.pump()
		return true, selected, nil
	})
	return s
}

func (s *selections) onList(action clienttesting.Action) (bool, apiruntime.Object, error) {
	selects := action.(clienttesting.ListAction).GetListRestrictions()
	if selects.Fields.Empty() {
		return false, nil, nil
	}
	object, err := s.tracker.List(podResource, corev1.SchemeGroupVersion.WithKind("Pod"), action.GetNamespace())
	if err != nil {
		return true, nil, err
	}
	pods := object.(*corev1.PodList)
	pods.Items = slices.DeleteFunc(pods.Items, func(pod corev1.Pod) bool { return !isSelected(&pod, selects.Labels, selects.Fields) })
	listed := make(map[types.UID]*corev1.Pod, len(pods.Items))
	for i := range pods.Items {
		listed[pods.Items[i].UID] = &pods.Items[i]
	}
	s.listed[listing{selects.Labels.String(), selects.Fields.String(), pods.ResourceVersion}] = listed
	return true, pods, nil
}

// of is what a watch shows of an event.
func (s *selections) of(action clienttesting.WatchActionImpl) func(watch.Event) (watch.Event, bool) {
	selects := action.GetWatchRestrictions()
	if selects.Fields.Empty() {
		return func(event watch.Event) (watch.Event, bool) { return event, true }
	}
	events := &s.living
	if watchedBy(action) == endedPods {
		events = &s.ended
	}
	shown := make(map[types.UID]*corev1.Pod)
	maps.Copy(shown, s.listed[listing{selects.Labels.String(), selects.Fields.String(), action.ListOptions.ResourceVersion}])
	return func(event watch.Event) (watch.Event, bool) {
		pod, ok := event.Object.(*corev1.Pod)
		if !ok {
			return event, true
		}
		before := shown[pod.UID]
		switch {
		case event.Type != watch.Deleted && isSelected(pod, selects.Labels, selects.Fields):
			event.Type = watch.Modified
			if before == nil {
				event.Type = watch.Added
			}
			shown[pod.UID] = pod
			events.Add(1)
			return event, true
		case before != nil:
			delete(shown, pod.UID)
			events.Add(1)
			before = before.DeepCopy()
			before.ResourceVersion = pod.ResourceVersion
			return watch.Event{Type: watch.Deleted, Object: before}, true
		}
		return event, false
	}
}

// count is how many events each watch has shown.
func (s *selections) count() map[string]int32 {
	return map[string]int32{livingPods: s.living.Load(), endedPods: s.ended.Load()}
}

// isSelected says whether selectors select a Pod. Pods of tests may have no phase; a real API
// server makes them Pending.
func isSelected(pod *corev1.Pod, l labels.Selector, f fields.Selector) bool {
	return l.Matches(labels.Set(pod.Labels)) && f.Matches(fields.Set{"metadata.namespace": pod.Namespace, "metadata.name": pod.Name,
		"spec.nodeName": pod.Spec.NodeName, "status.phase": string(cmp.Or(pod.Status.Phase, corev1.PodPending))})
}
