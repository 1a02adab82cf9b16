// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package reading

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/internal/informing"
	"github.com/lockstep-k8s/lockstep/internal/view"
)

// Followed is a Framework with its objects, as watches show them.
type Followed struct {
	framework, group, pods *watched
	// changed has a value when something has changed since the last read.
	changed chan struct{}
}

// Follow watches a Framework until the context ends.
func (r *Reader) Follow(ctx context.Context, namespace, name string) *Followed {
	l := &Followed{changed: make(chan struct{}, 1)}
	named := func(options *metav1.ListOptions, name string) {
		options.FieldSelector = fields.OneTermEqualSelector("metadata.name", name).String()
	}
	l.framework = l.watch(ctx, "Frameworks", &frameworkv1.Framework{},
		func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			named(&o, name)
			return r.Lockstep.FrameworkcontrollerV1().Frameworks(namespace).List(ctx, o)
		}, func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			named(&o, name)
			return r.Lockstep.FrameworkcontrollerV1().Frameworks(namespace).Watch(ctx, o)
		})
	l.group = l.watch(ctx, "PodGroups", &schedulingv1alpha1.PodGroup{},
		func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			named(&o, frameworkv1.PodGroupName(name))
			return r.Lockstep.SchedulingV1alpha1().PodGroups(namespace).List(ctx, o)
		}, func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			named(&o, frameworkv1.PodGroupName(name))
			return r.Lockstep.SchedulingV1alpha1().PodGroups(namespace).Watch(ctx, o)
		})
	l.pods = l.watch(ctx, "Pods", &corev1.Pod{},
		func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			o.LabelSelector = PodSelector(name)
			return r.Kube.CoreV1().Pods(namespace).List(ctx, o)
		}, func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			o.LabelSelector = PodSelector(name)
			return r.Kube.CoreV1().Pods(namespace).Watch(ctx, o)
		})
	return l
}

// watch begins to watch a kind, which messages call `what`.
func (l *Followed) watch(ctx context.Context, what string, kind runtime.Object, list cache.ListWithContextFunc, follow cache.WatchFuncWithContext) *watched {
	w := &watched{what: what, changed: l.touch}
	store, informer := cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: &cache.ListWatch{
			ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
				informing.WantCurrent(&o) // an older state may lack what was just made
				got, err := list(ctx, o)
				if ctx.Err() == nil {
					w.listed(err)
				}
				return got, err
			}, WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
				got, err := follow(ctx, o)
				if ctx.Err() == nil {
					w.followed(err)
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
	w.store, w.synced = store, informer.HasSynced
	go informer.RunWithContext(ctx)
	go func() {
		// Nothing else shows that there is nothing.
		if cache.WaitForCacheSync(ctx.Done(), w.synced) {
			l.touch()
		}
	}()
	return w
}

func (l *Followed) touch() {
	select {
	case l.changed <- struct{}{}:
	default:
	}
}

// Changed has a value when something has changed since the last one was taken.
func (l *Followed) Changed() <-chan struct{} { return l.changed }

// Begun reports whether everything readable was read. Before that, Objects is incomplete.
func (l *Followed) Begun() bool {
	return l.framework.synced() && l.group.known() && l.pods.known()
}

// Objects returns the present state, which names what can't be read. The Framework is nil if it does not exist, or has
// not been read yet.
func (l *Followed) Objects() view.Objects {
	var o view.Objects
	for _, object := range l.framework.store.List() {
		o.Framework = object.(*frameworkv1.Framework)
	}
	for _, object := range l.group.store.List() {
		o.PodGroup = object.(*schedulingv1alpha1.PodGroup)
	}
	for _, object := range l.pods.store.List() {
		o.Pods = append(o.Pods, *object.(*corev1.Pod))
	}
	o.Unread = l.Unread()
	return o
}

// Unread returns what can't be read or watched, one sentence each.
func (l *Followed) Unread() []string {
	var unread []string
	for _, w := range []*watched{l.pods, l.group, l.framework} {
		if err := w.Err(); err != nil {
			unread = append(unread, Unread(w.told(), err)+".")
		}
	}
	return unread
}

// Err returns why the Framework can't be followed at present; nil if it can.
func (l *Followed) Err() error { return l.framework.Err() }

// reduced returns an object without fields that are never shown.
func reduced(object any) (any, error) {
	if pod, isPod := object.(*corev1.Pod); isPod {
		return reducedPod(pod), nil
	}
	if m, err := meta.Accessor(object); err == nil {
		m.SetManagedFields(nil)
	}
	return object, nil
}

// reducedPod returns a Pod with what is shown of it. There may be 10,000.
func reducedPod(pod *corev1.Pod) *corev1.Pod {
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
	return small
}

// waiting returns the containers that wait, and for what.
func waiting(all []corev1.ContainerStatus) []corev1.ContainerStatus {
	var those []corev1.ContainerStatus
	for i := range all {
		if all[i].State.Waiting != nil {
			those = append(those, corev1.ContainerStatus{Name: all[i].Name, State: all[i].State})
		}
	}
	return those
}
