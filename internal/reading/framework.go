// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package reading

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	"github.com/lockstep-k8s/lockstep/internal/view"
)

// maxEvents is how many events one request asks for.
const maxEvents = 200

// Framework reads a Framework.
func (r *Reader) Framework(ctx context.Context, namespace, name string) (*frameworkv1.Framework, error) {
	return r.Lockstep.FrameworkcontrollerV1().Frameworks(namespace).Get(ctx, name, metav1.GetOptions{})
}

// Objects reads a Framework and the objects that are shown with it. Objects returns an error only if the Framework
// can't be read.
func (r *Reader) Objects(ctx context.Context, namespace, name string) (view.Objects, error) {
	fw, err := r.Framework(ctx, namespace, name)
	if err != nil {
		return view.Objects{}, err
	}
	return r.ObjectsOf(ctx, fw), nil
}

// ObjectsOf reads what is shown of a Framework and of the Framework's objects.
func (r *Reader) ObjectsOf(ctx context.Context, fw *frameworkv1.Framework) view.Objects {
	o := view.Objects{Framework: fw}
	var err error
	if o.Pods, err = r.ShownPods(ctx, o.Framework); err != nil {
		o.Unread = append(o.Unread, Unread("Pods", err))
	}
	if group := podGroupName(o.Framework); group != "" {
		o.PodGroup, err = r.Lockstep.SchedulingV1alpha1().PodGroups(fw.Namespace).Get(ctx, group, metav1.GetOptions{})
		if err != nil {
			o.PodGroup = nil
			if !apierrors.IsNotFound(err) {
				o.Unread = append(o.Unread, Unread("PodGroups", err))
			}
		}
	}
	if o.Events, err = r.Events(ctx, o); err != nil {
		o.Unread = append(o.Unread, Unread("Events", err))
	}
	return o
}

// Events reads the events of a Framework and of its PodGroup, at most maxEvents of each.
func (r *Reader) Events(ctx context.Context, o view.Objects) ([]corev1.Event, error) {
	about := []types.UID{o.Framework.UID}
	if o.PodGroup != nil {
		about = append(about, o.PodGroup.UID)
	}
	return r.eventsOf(ctx, o.Framework.Namespace, about...)
}

// eventsOf reads the events of objects of a namespace, of each at most maxEvents.
func (r *Reader) eventsOf(ctx context.Context, namespace string, about ...types.UID) ([]corev1.Event, error) {
	var all []corev1.Event
	for _, uid := range about {
		events, err := r.Kube.CoreV1().Events(namespace).List(ctx, metav1.ListOptions{
			FieldSelector: fields.OneTermEqualSelector("involvedObject.uid", string(uid)).String(), Limit: maxEvents,
		})
		if err != nil {
			return all, err
		}
		all = append(all, events.Items...)
	}
	return all, nil
}

// podGroupName is that of the current attempt's PodGroup, or empty.
func podGroupName(fw *frameworkv1.Framework) string {
	if fw.Status == nil || fw.Status.AttemptStatus.PodGroup == nil {
		return ""
	}
	return fw.Status.AttemptStatus.PodGroup.Name
}

// PodSelector chooses the Pods that have the name of a Framework.
func PodSelector(framework string) string {
	return labels.Set{frameworkv1.KeyFrameworkName: framework}.String()
}

// Pods returns the Pods of the Framework, of all attempts that have any left.
func (r *Reader) Pods(ctx context.Context, fw *frameworkv1.Framework) ([]corev1.Pod, error) {
	var own []corev1.Pod
	err := r.eachPod(ctx, fw, func(pod *corev1.Pod) { own = append(own, *pod) })
	return own, err
}

// ShownPods returns the Pods, with little more than what is shown.
func (r *Reader) ShownPods(ctx context.Context, fw *frameworkv1.Framework) ([]corev1.Pod, error) {
	var own []corev1.Pod
	err := r.eachPod(ctx, fw, func(pod *corev1.Pod) { own = append(own, *reducedPod(pod)) })
	return own, err
}

// eachPod reads the Pods of a Framework.
func (r *Reader) eachPod(ctx context.Context, fw *frameworkv1.Framework, each func(*corev1.Pod)) error {
	return pages(ctx, fw.Namespace, func(ctx context.Context, namespace string, options metav1.ListOptions) (string, error) {
		options.LabelSelector = PodSelector(fw.Name)
		page, err := r.Kube.CoreV1().Pods(namespace).List(ctx, options)
		if err != nil {
			return "", err
		}
		for i := range page.Items {
			if view.IsPodOf(fw, &page.Items[i]) {
				each(&page.Items[i])
			}
		}
		return page.Continue, nil
	})
}
