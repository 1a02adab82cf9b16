// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package reading

import (
	"context"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/internal/view"
)

// Followed is a Framework, and what belongs to it, as watches tell.
type Followed struct {
	frameworks, pods, groups cache.Store
	// changed has a value when something has changed since it was read.
	changed chan struct{}
	// podsUnread and groupsUnread hold a string: why there are none, empty if they are read.
	podsUnread, groupsUnread atomic.Value
}

// Follow watches a Framework until the context ends.
func (r *Reader) Follow(ctx context.Context, namespace, name string) *Followed {
	l := &Followed{changed: make(chan struct{}, 1)}
	named := func(options *metav1.ListOptions, name string) {
		options.FieldSelector = fields.OneTermEqualSelector("metadata.name", name).String()
	}
	l.frameworks = l.watch(ctx, &frameworkv1.Framework{}, nil,
		func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			named(&o, name)
			return r.Lockstep.FrameworkcontrollerV1().Frameworks(namespace).List(ctx, o)
		}, func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			named(&o, name)
			return r.Lockstep.FrameworkcontrollerV1().Frameworks(namespace).Watch(ctx, o)
		})
	l.groups = l.watch(ctx, &schedulingv1alpha1.PodGroup{}, l.noting(&l.groupsUnread, "PodGroups"),
		func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			named(&o, frameworkv1.PodGroupName(name))
			return r.Lockstep.SchedulingV1alpha1().PodGroups(namespace).List(ctx, o)
		}, func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			named(&o, frameworkv1.PodGroupName(name))
			return r.Lockstep.SchedulingV1alpha1().PodGroups(namespace).Watch(ctx, o)
		})
	l.pods = l.watch(ctx, &corev1.Pod{}, l.noting(&l.podsUnread, "Pods"),
		func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			o.LabelSelector = PodSelector(name)
			return r.Kube.CoreV1().Pods(namespace).List(ctx, o)
		}, func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			o.LabelSelector = PodSelector(name)
			return r.Kube.CoreV1().Pods(namespace).Watch(ctx, o)
		})
	return l
}

// noting notes whether something could be listed.
func (l *Followed) noting(unread *atomic.Value, what string) func(error) {
	return func(err error) {
		why := ""
		if err != nil {
			why = Unread(what, err)
		}
		if unread.Swap(why) != why {
			l.touch()
		}
	}
}

// watch keeps a store of what is listed and watched.
func (l *Followed) watch(ctx context.Context, kind runtime.Object, listed func(error), list cache.ListWithContextFunc, follow cache.WatchFuncWithContext) cache.Store {
	store, informer := cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: &cache.ListWatch{
			ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
				got, err := list(ctx, o)
				if listed != nil && ctx.Err() == nil {
					listed(err)
				}
				return got, err
			}, WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
				// Where the API server can, this lists, too.
				got, err := follow(ctx, o)
				if listed != nil && err == nil {
					listed(nil)
				}
				return got, err
			},
		},
		ObjectType: kind,
		Handler: cache.ResourceEventHandlerFuncs{
			AddFunc:    func(any) { l.touch() },
			UpdateFunc: func(any, any) { l.touch() },
			DeleteFunc: func(any) { l.touch() },
		},
		Transform: reduced,
	})
	go informer.RunWithContext(ctx)
	return store
}

// reduced is an object without what nobody is shown. Of Pods, of which there may be 10,000, little is left.
func reduced(object any) (any, error) {
	pod, isPod := object.(*corev1.Pod)
	if !isPod {
		if m, err := meta.Accessor(object); err == nil {
			m.SetManagedFields(nil)
		}
		return object, nil
	}
	small := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, ResourceVersion: pod.ResourceVersion}}
	small.Annotations = make(map[string]string)
	for _, key := range []string{frameworkv1.KeyFrameworkUID, frameworkv1.KeyTaskRoleName, frameworkv1.KeyTaskIndex} {
		if value, known := pod.Annotations[key]; known {
			small.Annotations[key] = value
		}
	}
	small.Spec.NodeName, small.Status.Phase = pod.Spec.NodeName, pod.Status.Phase
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodScheduled {
			small.Status.Conditions = append(small.Status.Conditions, condition)
		}
	}
	small.Status.InitContainerStatuses = waiting(pod.Status.InitContainerStatuses)
	small.Status.ContainerStatuses = waiting(pod.Status.ContainerStatuses)
	return small, nil
}

// waiting are the containers that wait, and for what.
func waiting(all []corev1.ContainerStatus) []corev1.ContainerStatus {
	var those []corev1.ContainerStatus
	for i := range all {
		if all[i].State.Waiting != nil {
			those = append(those, corev1.ContainerStatus{Name: all[i].Name, State: all[i].State})
		}
	}
	return those
}

func (l *Followed) touch() {
	select {
	case l.changed <- struct{}{}:
	default:
	}
}

// Changed has a value when something has changed since the last one was taken.
func (l *Followed) Changed() <-chan struct{} { return l.changed }

// Objects are what is known now. The Framework is nil if it is not there, or not known yet.
func (l *Followed) Objects() view.Objects {
	var o view.Objects
	for _, object := range l.frameworks.List() {
		o.Framework = object.(*frameworkv1.Framework)
	}
	for _, object := range l.groups.List() {
		o.PodGroup = object.(*schedulingv1alpha1.PodGroup)
	}
	for _, object := range l.pods.List() {
		o.Pods = append(o.Pods, *object.(*corev1.Pod))
	}
	for _, why := range []*atomic.Value{&l.podsUnread, &l.groupsUnread} {
		if text, _ := why.Load().(string); text != "" {
			o.Unread = append(o.Unread, text+".")
		}
	}
	return o
}
